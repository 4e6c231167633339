/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/path.h"
#include "dataset/shard/write.h"
#include "tests/dataset/steps.h"
#include "tests/t.h"

/* Document i has i % 4 sequences of 5, 10 and 15 tokens, so every fourth is empty. */
static void put_documents(struct shard_writer *w, int n)
{
    static const int32_t id[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct err e;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i % 4; k++)
            T_OK(add_sequence(w, id, (size_t)(5 * (k + 1)), &e), &e);
        T_OK(shard_writer_end_document(w, &e), &e);
    }
    T_OK(shard_writer_flush(w, &e), &e);
}

static const uint64_t document_bytes[] = {0, 10, 30, 60};

static void pieces_are_as_large_as_fits(void)
{
    enum { N = 50000 };
    static const uint64_t most[] = {1, 59, 60, 100, 163, 12345, 1 << 30};
    struct err e;
    struct shard_writer whole;
    T_OK(shard_writer_open(&whole, t_path("whole"), 100, &e), &e);
    put_documents(&whole, N);
    for (size_t m = 0; m < sizeof(most) / sizeof(*most); m++) {
        struct shard_cursor at = {0};
        uint64_t done = 0, n = 1, bytes = 0;
        while (done < N && n) {
            uint64_t want = 0, sum = 0;
            while (done + want < N && (!want || sum + document_bytes[(done + want) % 4] <= most[m]))
                sum += document_bytes[(done + want++) % 4];
            T_OK(shard_writer_fit(&whole, &at, most[m], &n, &e), &e);
            T_EQ(n, want);
            done += n;
            bytes += sum;
            T_EQ(at.bin, bytes);
        }
        T_EQ(done, N);
        T_OK(shard_writer_fit(&whole, &at, most[m], &n, &e), &e);
        T_EQ(n, 0);
    }
    shard_writer_abort(&whole);
}

static void what_is_copied_is_what_was_written(void)
{
    struct err e;
    struct shard_writer from, to, again;
    struct shard_cursor at = {0};
    struct buf want = {0}, got = {0};
    T_OK(shard_writer_open(&from, t_path("from"), 100, &e), &e);
    T_OK(shard_writer_open(&to, t_path("to"), 100, &e), &e);
    T_OK(shard_writer_open(&again, t_path("again"), 100, &e), &e);
    put_documents(&from, 103);
    put_documents(&again, 40);
    T_OK(shard_writer_copy(&to, &from, &at, 7, &e), &e);
    T_OK(shard_writer_copy(&to, &from, &at, 33, &e), &e);
    T_OK(shard_writer_finish(&to, NULL, &e), &e);
    T_OK(shard_writer_finish(&again, NULL, &e), &e);
    for (int i = 0; i < 2; i++) {
        T_OK(file_read(t_path(i ? "to.idx" : "to.bin"), 1 << 20, &got, &e), &e);
        T_OK(file_read(t_path(i ? "again.idx" : "again.bin"), 1 << 20, &want, &e), &e);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        buf_finish(&got);
        buf_finish(&want);
    }
    shard_writer_abort(&from);
}

T_MAIN(T_CASE(pieces_are_as_large_as_fits), T_CASE(what_is_copied_is_what_was_written))
