/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/shard/write.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static void check_file(const char *name, const void *want, size_t n)
{
    struct err e;
    struct buf b = {0};
    T_OK(file_read(t_path(name), 1 << 20, &b, &e), &e);
    T_EQ(b.len, n);
    T_MEM(b.data, want, n);
    buf_finish(&b);
}

/* Files in t_dir() whose names begin so, temporary ones included. */
static int files_of(const char *begin)
{
    int n = 0;
    DIR *d = opendir(t_dir());
    for (struct dirent *f; (f = readdir(d));)
        n += strncmp(f->d_name + (f->d_name[0] == '.'), begin, strlen(begin)) == 0;
    closedir(d);
    return n;
}

/* Bytes that Megatron-LM's builder wrote for the same documents. */
static void golden_is_written(void)
{
    static const unsigned char bin[12] = {1, 0, 2, 0, 3, 0, 0x50, 0xc4, 5, 0, 0x50, 0xc4};
    static const unsigned char idx[90] = {
        'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0,
        0,   0,   0,   4,   0,   0,   0,   0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        0,   0,   0,   0,   8,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
        0,   0,   0,   0,   0,   1,   0,   0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
    struct err e;
    struct shard_writer w;
    T_OK(shard_writer_open(&w, t_path("g"), 50257, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1, 2, 3, 50256}, 4, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(add_sequence(&w, NULL, 0, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){5, 50256}, 2, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    check_file("g.bin", bin, sizeof(bin));
    check_file("g.idx", idx, sizeof(idx));
    T_EQ(files_of("g"), 2);
}

static void known_corpora(void)
{
    const struct recipe *r[3] = {&recipe_a, &recipe_b, &recipe_c};
    for (int i = 0; i < 3; i++) {
        write_recipe(t_path("r"), r[i]);
        check_md5(t_path("r.bin"), r[i]->bin_md5);
        check_md5(t_path("r.idx"), r[i]->idx_md5);
    }
}

static void dtype_follows_the_vocabulary(void)
{
    T_EQ(shard_dtype_for(1), SHARD_U16);
    T_EQ(shard_dtype_for(65499), SHARD_U16);
    T_EQ(shard_dtype_for(65500), SHARD_I32);
    T_EQ(shard_dtype_for(65536), SHARD_I32);
    T_EQ(shard_dtype_for(0), SHARD_I32);
    T_EQ(shard_dtype_for(-1), SHARD_I32);
}

static void ids_outside_the_vocabulary_are_refused(void)
{
    struct err e;
    int32_t packed[3];
    T_OK(shard_pack(SHARD_U16, 100, (int32_t[]){0, 99, 1}, 3, packed, &e), &e);
    T_MEM(packed, ((uint16_t[]){0, 99, 1}), 6);
    T_OK(shard_pack(SHARD_I32, 0, (int32_t[]){0, INT32_MAX, 1}, 3, packed, &e), &e);
    T_ERR(shard_pack(SHARD_U16, 100, (int32_t[]){0, 5, 100}, 3, packed, &e), &e, ERR_DATA,
          "token 2 has id 100, which is not in 0..99");
    T_ERR(shard_pack(SHARD_U16, 100, (int32_t[]){-1, 5, 7}, 3, packed, &e), &e, ERR_DATA,
          "token 0 has id -1");
    T_ERR(shard_pack(SHARD_I32, 70000, (int32_t[]){0, 70000, -7}, 3, packed, &e), &e, ERR_DATA,
          "token 1 has id 70000");
    T_ERR(shard_pack(SHARD_I32, 0, (int32_t[]){0, INT32_MIN, 1}, 3, packed, &e), &e, ERR_DATA,
          "token 1 has id -2147483648");
    struct shard_writer w;
    T_OK(shard_writer_open(&w, t_path("v"), 100, &e), &e);
    T_ERR(add_sequence(&w, (int32_t[]){3, 100}, 2, &e), &e, ERR_DATA, "document 0");
    shard_writer_abort(&w);
    T_OK(shard_writer_open(&w, t_path("v"), 100, &e), &e);
    struct shard_watch none = {.id = -1};
    struct buf b = {0};
    shard_writer_place(&w, 4, &b);
    const struct shard_run *run = (const struct shard_run *)(const void *)b.data;
    T_CHECK(!shard_runs_store(run, 1, (int32_t[]){3, 4, 99, 100}, &none));
    T_CHECK(shard_runs_store(run, 1, (int32_t[]){3, 4, 99, 0}, &none));
    T_OK(shard_writer_documents(&w, (uint32_t[]){1, 0, 2}, 3, &e), &e);
    T_OK(shard_writer_check(&w, (int32_t[]){99, 0}, 2, &e), &e);
    T_ERR(shard_writer_check(&w, (int32_t[]){6, -7}, 2, &e), &e, ERR_DATA,
          "v, document 3: token 1 has id -7");
    buf_finish(&b);
    shard_writer_abort(&w);
    shard_writer_abort(&w);
    T_EQ(files_of("v"), 0);
}

static void too_long_a_sequence_is_refused(void)
{
    struct err e;
    struct shard_writer w;
    T_OK(shard_writer_open(&w, t_path("l"), 100, &e), &e);
    T_ERR(shard_writer_put(&w, "", (size_t)INT32_MAX + 1, &e), &e, ERR_DATA, "2147483648 tokens");
    shard_writer_abort(&w);
}

/* More words than the buffer of lengths holds, in every mixture of sequences and documents. */
static void many_documents_come_back(void)
{
    enum { DOCS = 60000 };
    struct err e;
    struct shard_writer w;
    struct shard s;
    struct shard_stats st;
    int32_t next = 0, got[8];
    uint64_t seqs = 0, empty = 0, tokens = 0;
    T_OK(shard_writer_open(&w, t_path("many"), 70000, &e), &e);
    for (uint32_t d = 0; d < DOCS; d++) {
        uint32_t n = t_rand(1, d) % 4;
        empty += n == 0;
        for (uint32_t k = 0; k < n; k++) {
            int32_t id[8];
            uint32_t len = 1 + t_rand(2, seqs) % 8;
            for (uint32_t i = 0; i < len; i++, next = (next + 1) % 70000)
                id[i] = next;
            T_OK(add_sequence(&w, id, len, &e), &e);
            seqs++;
            tokens += len;
        }
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    T_OK(shard_open(&s, t_path("many"), &e), &e);
    struct shard_check c = {.limit = 70000, .eod = 17};
    T_OK(shard_check(&s, &c, &st, &e), &e);
    T_EQ(st.documents, DOCS);
    T_EQ(st.sequences, seqs);
    T_EQ(st.empty_documents, empty);
    T_EQ(st.tokens, tokens);
    T_EQ(st.shortest, 1);
    T_EQ(st.longest, 8);
    T_EQ(st.highest_id, 69999);
    T_EQ(st.eods, (tokens + 70000 - 18) / 70000);
    next = 0;
    for (uint64_t i = 0, d = 0, a = 0, b = 0; i < seqs; i++) {
        while (i >= b)
            T_OK(shard_document(&s, d++, &a, &b, &e), &e);
        T_EQ(shard_length(&s, i), 1 + t_rand(2, i) % 8);
        T_EQ(b - a, t_rand(1, d - 1) % 4);
        uint32_t len = (uint32_t)shard_length(&s, i);
        T_OK(shard_read(&s, i, 0, len, 70000, got, &e), &e);
        for (uint32_t k = 0; k < len; k++, next = (next + 1) % 70000)
            T_EQ(got[k], next);
    }
    shard_close(&s);
}

static void nothing_shows_before_the_end(void)
{
    struct err e;
    struct shard_writer w;
    write_counting(t_path("keep"), (uint32_t[]){3, 4}, 2);
    struct buf before = {0};
    T_OK(file_read(t_path("keep.bin"), 1000, &before, &e), &e);
    T_OK(shard_writer_open(&w, t_path("keep"), 1000, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1}, 1, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    check_file("keep.bin", before.data, before.len);
    shard_writer_abort(&w);
    check_file("keep.bin", before.data, before.len);
    T_EQ(files_of("keep"), 2);
    buf_finish(&before);
}

static void a_sequence_may_come_in_parts(void)
{
    struct err e;
    struct shard_writer w;
    struct shard s;
    const uint16_t id[7] = {1, 2, 3, 4, 5, 6, 7};
    int32_t got[6];
    T_OK(shard_writer_open(&w, t_path("parts"), 100, &e), &e);
    T_OK(shard_writer_part(&w, id, 2, &e), &e);
    T_OK(shard_writer_part(&w, id + 2, 0, &e), &e);
    T_OK(shard_writer_part(&w, id + 2, 3, &e), &e);
    T_OK(shard_writer_put(&w, id + 5, 1, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_part(&w, id + 6, 1, &e), &e);
    T_OK(shard_writer_put(&w, "", 0, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_EQ(w.ntokens, 7);
    T_ERR(shard_writer_part(&w, "", (size_t)INT32_MAX + 1, &e), &e, ERR_DATA, "2147483648 tokens");
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    T_OK(shard_open(&s, t_path("parts"), &e), &e);
    T_EQ(s.nseq, 2);
    T_EQ(shard_length(&s, 0), 6);
    T_OK(shard_read(&s, 0, 0, 6, 100, got, &e), &e);
    for (int i = 0; i < 6; i++)
        T_EQ(got[i], i + 1);
    T_OK(shard_read(&s, 1, 0, 1, 100, got, &e), &e);
    T_EQ(got[0], 7);
    shard_close(&s);
}

static void two_shards_are_committed_together(void)
{
    struct err e;
    struct shard_writer w;
    struct manifest m = {.weft_version = "t", .tokenizer_type = "", .vocab_size = 10, .eod = -1};
    T_OK(shard_writer_open(&w, t_path("both"), 10, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1, 2}, 2, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_prepare(&w, &m, &e), &e);
    T_CHECK(!file_exists(t_path("both.bin")) && !file_exists(t_path("both.idx")));
    T_CHECK(!file_exists(t_path("both.manifest.json")));
    T_OK(shard_writer_commit(&w, &e), &e);
    T_EQ(files_of("both"), 3);
    T_OK(shard_writer_open(&w, t_path("both"), 10, &e), &e);
    T_OK(shard_writer_prepare(&w, &m, &e), &e);
    shard_writer_abort(&w);
    T_EQ(files_of("both"), 3);
}

static int write_new(void *prefix)
{
    struct manifest m = {.weft_version = "new", .tokenizer_type = "", .vocab_size = 10, .eod = -1};
    struct shard_writer w;
    int code = shard_writer_open(&w, prefix, 10, NULL);
    for (int i = 0; i < 5 && !code; i++)
        code = add_sequence(&w, (int32_t[]){i, 9}, 2, NULL);
    if (!code)
        code = shard_writer_end_document(&w, NULL);
    return code ? code : shard_writer_finish(&w, &m, NULL);
}

/* The old shard, of two documents, or the new one, of one: each whole. True: the new one. */
static bool old_or_new(const char *prefix)
{
    struct err e;
    struct shard s;
    struct shard_stats st;
    struct manifest m;
    bool found;
    const struct shard_check c = {.limit = 10, .eod = 9};
    T_OK(shard_open(&s, prefix, &e), &e);
    T_OK(shard_check(&s, &c, &st, &e), &e);
    T_OK(manifest_read(prefix, &m, &found, &e), &e);
    bool is_new = s.ndocs == 1;
    T_EQ(found, is_new);
    T_EQ(st.tokens, is_new ? 10 : 7);
    T_EQ(st.eods, is_new ? 5 : 0);
    if (found) {
        T_OK(manifest_fits_shard(&m, &s, &e), &e);
        T_OK(manifest_verify(&m, &s, &e), &e);
        manifest_close(&m);
    }
    shard_close(&s);
    return is_new;
}

/*
 * A writer that is killed at each of its system calls in turn. A reader that does not know commits
 * gets the files as they are before ours may finish the commit.
 */
static void kill_9_leaves_the_old_shard_or_the_new(void)
{
    struct err e;
    int stops = 0, with_new = 0, without = 0;
    struct buf idx[2] = {{0}, {0}}, got = {0};
    write_counting(t_path("kill"), (uint32_t[]){3, 4}, 2);
    T_OK(file_read(t_path("kill.idx"), 1000, &idx[0], &e), &e);
    T_EQ(write_new((void *)(uintptr_t)t_path("lone")), 0);
    T_OK(file_read(t_path("lone.idx"), 1000, &idx[1], &e), &e);
    for (bool done = false; !done; stops += 2) {
        T_CHECK(stops < 2000);
        write_counting(t_path("kill"), (uint32_t[]){3, 4}, 2);
        done = t_killed_at(stops, write_new, (void *)(uintptr_t)t_path("kill"));
        if (file_exists(t_path("kill.idx"))) {
            uint64_t bin;
            T_OK(file_read(t_path("kill.idx"), 1000, &got, &e), &e);
            T_OK(file_size(t_path("kill.bin"), &bin, &e), &e);
            bool is_new = got.len == idx[1].len && !memcmp(got.data, idx[1].data, got.len);
            T_CHECK(is_new || !memcmp(got.data, idx[0].data, got.len));
            T_EQ(bin, is_new ? 20 : 28);
            buf_finish(&got);
        } else {
            without++;
        }
        with_new += old_or_new(t_path("kill"));
        T_CHECK(files_of("kill.commit") == 0);
    }
    T_CHECK(stops > 60);
    T_CHECK(with_new >= 6 && without >= 3);
    T_CHECK(stops / 2 - with_new > 20);
    T_EQ(files_of("kill"), 3);
    buf_finish(&idx[0]);
    buf_finish(&idx[1]);
}

static void no_documents_make_a_shard(void)
{
    struct err e;
    struct shard s;
    write_counting(t_path("no"), NULL, 0);
    T_OK(shard_open(&s, t_path("no"), &e), &e);
    T_EQ(s.nseq, 0);
    T_EQ(s.ndocs, 0);
    shard_close(&s);
    write_counting(t_path("no"), (uint32_t[]){0, 0}, 2);
    T_OK(shard_open(&s, t_path("no"), &e), &e);
    T_EQ(s.nseq, 0);
    T_EQ(s.ndocs, 2);
    shard_close(&s);
}

static void a_missing_folder_is_named(void)
{
    struct err e;
    struct shard_writer w;
    T_ERR(shard_writer_open(&w, t_path("nowhere/x"), 10, &e), &e, ERR_IO,
          "nowhere/x: cannot create");
}

static void manifest_tells_of_the_shard(void)
{
    struct err e;
    struct shard_writer w;
    struct shard s;
    bool found;
    struct manifest m = {.weft_version = "test", .vocab_size = 100, .eod = 99}, back;
    T_OK(shard_writer_open(&w, t_path("m"), 100, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1, 2, 99}, 3, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, &m, &e), &e);
    T_OK(manifest_read(t_path("m"), &back, &found, &e), &e);
    T_CHECK(found);
    T_EQ(back.documents, 2);
    T_EQ(back.sequences, 1);
    T_EQ(back.tokens, 3);
    T_EQ(back.bin_bytes, 6);
    T_OK(shard_open(&s, t_path("m"), &e), &e);
    T_OK(manifest_fits_shard(&back, &s, &e), &e);
    T_OK(manifest_verify(&back, &s, &e), &e);
    shard_close(&s);
    manifest_close(&back);
    /* a shard that is written over it without a manifest takes the old one away */
    write_counting(t_path("m"), (uint32_t[]){3}, 1);
    T_OK(manifest_read(t_path("m"), &back, &found, &e), &e);
    T_CHECK(!found);
}

/* Places for all in two halves, of which the second is stored first. */
static void put_at_once(struct shard_writer *w, const int32_t *id, const uint32_t *length, size_t n,
                        struct shard_watch *watch)
{
    struct err e;
    struct buf b = {0};
    size_t all = 0, half, halves, runs;
    for (size_t i = 0; i < n; i++)
        all += length[i];
    half = all / 2;
    shard_writer_place(w, half, &b);
    halves = b.len / sizeof(struct shard_run);
    shard_writer_place(w, all - half, &b);
    runs = b.len / sizeof(struct shard_run);
    const struct shard_run *run = (const struct shard_run *)(const void *)b.data;
    T_CHECK(shard_runs_store(run + halves, runs - halves, id + half, watch));
    T_CHECK(shard_runs_store(run, halves, id, watch));
    T_OK(shard_writer_documents(w, length, n, &e), &e);
    T_OK(shard_runs_take(run, runs, &e), &e);
    buf_finish(&b);
}

static void many_documents_at_once(void)
{
    enum { N = 3000, MOST = 200 };
    struct err e;
    struct shard_writer one, all;
    struct buf ids = {0}, packed = {0}, want = {0}, got = {0};
    struct shard_watch watch = {.id = 31337};
    uint64_t watched = 0;
    uint32_t *length = mem_new(N, sizeof(*length));
    T_OK(shard_writer_open(&one, t_path("one"), 60000, &e), &e);
    T_OK(shard_writer_open(&all, t_path("all"), 60000, &e), &e);
    for (uint32_t i = 0; i < N; i++) {
        int32_t id[MOST];
        length[i] = i * 37 % 11 ? i * 31 % MOST : 0;
        for (uint32_t k = 0; k < length[i]; k++)
            id[k] = k % 97 == 5 ? 31337 : (int32_t)((i * 7919 + k * 104729) % 31337);
        T_OK(shard_pack(SHARD_U16, 60000, id, length[i], buf_reserve(&packed, 2 * MOST), &e), &e);
        T_OK(shard_writer_put(&one, packed.data, length[i], &e), &e);
        T_OK(shard_writer_end_document(&one, &e), &e);
        buf_add(&ids, id, length[i] * sizeof(*id));
        watched += (length[i] + 91) / 97;
    }
    T_OK(shard_writer_async(&all, &e), &e);
    put_at_once(&all, (const int32_t *)(const void *)ids.data, length, N, &watch);
    T_OK(shard_writer_documents(&all, length, 0, &e), &e);
    T_EQ(watch.n, watched);
    T_EQ(all.ntokens, one.ntokens);
    T_EQ(all.nseq, one.nseq);
    T_OK(shard_writer_finish(&one, NULL, &e), &e);
    T_OK(shard_writer_finish(&all, NULL, &e), &e);
    for (int i = 0; i < 2; i++) {
        const char *const name[] = {"one.bin", "all.bin", "one.idx", "all.idx"};
        T_OK(file_read(t_path(name[2 * i]), 1 << 24, &want, &e), &e);
        T_OK(file_read(t_path(name[2 * i + 1]), 1 << 24, &got, &e), &e);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        buf_finish(&want);
        buf_finish(&got);
    }
    buf_finish(&packed);
    buf_finish(&ids);
    free(length);
}

static void put_one(struct shard_writer *w, int32_t first, size_t n)
{
    struct err e;
    int32_t id[9];
    for (size_t i = 0; i < n; i++)
        id[i] = first + (int32_t)i;
    T_OK(add_sequence(w, id, n, &e), &e);
    T_OK(shard_writer_end_document(w, &e), &e);
}

static void a_writer_goes_on_from_a_mark(void)
{
    struct err e;
    struct shard_writer w;
    struct shard_mark none = {0}, mark;
    struct buf want = {0}, got = {0}, b = {0};
    char *folder = mem_strdup(t_path("work.new")), *lengths = mem_strdup(t_path("work.lengths"));
    const struct shard_place at = {folder, lengths};
    T_OK(shard_writer_open(&w, t_path("plain"), 100, &e), &e);
    put_one(&w, 1, 3);
    put_one(&w, 0, 0);
    put_one(&w, 7, 9);
    put_one(&w, 50, 2);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    T_OK(shard_writer_resume(&w, t_path("on"), SHARD_U16, 100, &at, &none, &e), &e);
    put_one(&w, 1, 3);
    put_one(&w, 0, 0);
    shard_writer_place(&w, 7, &b); /* neither is what was not taken */
    T_OK(shard_writer_mark(&w, &mark, &e), &e);
    T_EQ(mark.documents, 2);
    T_EQ(mark.bin_bytes, 6);
    const struct shard_run *run = (const struct shard_run *)(const void *)b.data;
    struct shard_watch nothing = {.id = -1};
    T_CHECK(shard_runs_store(run, 1, (int32_t[]){60, 61, 62, 63, 64, 5, 6}, &nothing));
    T_OK(shard_writer_sequence(&w, 5, &e), &e); /* not in the mark: to be cut off */
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_sequence(&w, 2, &e), &e);
    T_OK(shard_runs_take(run, 1, &e), &e);
    buf_finish(&b);
    shard_writer_leave(&w);
    T_CHECK(!file_exists(t_path("on.bin")));
    T_OK(shard_writer_resume(&w, t_path("on"), SHARD_U16, 100, &at, &mark, &e), &e);
    T_EQ(w.ntokens, 3);
    put_one(&w, 7, 9);
    put_one(&w, 50, 2);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    for (int i = 0; i < 2; i++) {
        const char *const name[] = {"plain.bin", "on.bin", "plain.idx", "on.idx"};
        T_OK(file_read(t_path(name[2 * i]), 1000, &want, &e), &e);
        T_OK(file_read(t_path(name[2 * i + 1]), 1000, &got, &e), &e);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        buf_finish(&want);
        buf_finish(&got);
    }
    T_CHECK(!file_exists(folder) && !file_exists(lengths));
    free(folder);
    free(lengths);
}

static void what_changed_behind_a_writer_is_told(void)
{
    struct err e;
    struct shard_writer w;
    struct shard_mark none = {0}, mark;
    char *folder = mem_strdup(t_path("c.new")), *lengths = mem_strdup(t_path("c.lengths"));
    const struct shard_place at = {folder, lengths};
    T_OK(shard_writer_resume(&w, t_path("c"), SHARD_I32, 0, &at, &none, &e), &e);
    put_one(&w, 1, 3);
    T_OK(shard_writer_mark(&w, &mark, &e), &e);
    shard_writer_leave(&w);
    T_OK(file_replace(t_path("c.new/c.bin"), "123456789012", 12, &e), &e);
    T_ERR(shard_writer_resume(&w, t_path("c"), SHARD_I32, 0, &at, &mark, &e), &e, ERR_INTEGRITY,
          "its first 12 bytes have XXH3-128");
    T_OK(file_replace(t_path("c.new/c.bin"), "1234", 4, &e), &e);
    T_ERR(shard_writer_resume(&w, t_path("c"), SHARD_I32, 0, &at, &mark, &e), &e, ERR_DATA,
          "has 4 bytes, expected at least 12");
    free(folder);
    free(lengths);
}

T_MAIN(T_CASE(golden_is_written), T_CASE(known_corpora), T_CASE(dtype_follows_the_vocabulary),
       T_CASE(ids_outside_the_vocabulary_are_refused), T_CASE(too_long_a_sequence_is_refused),
       T_CASE(many_documents_come_back), T_CASE(nothing_shows_before_the_end),
       T_CASE(a_sequence_may_come_in_parts), T_CASE(two_shards_are_committed_together),
       T_CASE(kill_9_leaves_the_old_shard_or_the_new), T_CASE(no_documents_make_a_shard),
       T_CASE(a_missing_folder_is_named), T_CASE(manifest_tells_of_the_shard),
       T_CASE(many_documents_at_once), T_CASE(a_writer_goes_on_from_a_mark),
       T_CASE(what_changed_behind_a_writer_is_told))
