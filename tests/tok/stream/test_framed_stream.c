/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/framed_stream.h"

#include <string.h>

#include "base/core/bytes.h"
#include "base/io/file.h"
#include "tests/t.h"
#include "tests/tok/put_doc.h"

static struct docstream_header header(uint32_t width, uint64_t vocab)
{
    struct docstream_header h = {.vocab_size = vocab, .eod = 7, .width = width};
    memset(h.digest, 'a', 64);
    h.digest[64] = 0;
    return h;
}

static int32_t id_of(uint64_t doc, size_t i, uint64_t vocab)
{
    return (int32_t)(t_rand(doc, i) % vocab);
}

static void write_docs(struct buf *b, uint32_t width, uint64_t vocab, size_t docs)
{
    struct docstream_header h = header(width, vocab);
    docstream_put_header(b, &h);
    uint64_t ids = 0;
    for (size_t d = 0; d < docs; d++) {
        static int32_t id[400000];
        size_t n = d == 3 ? 400000 : d * 37 % 100;
        for (size_t i = 0; i < n; i++)
            id[i] = id_of(d, i, vocab);
        put_doc(b, &h, id, n);
        ids += n;
    }
    docstream_put_end(b, docs, ids);
}

/* Reads a stream to its end; the documents must be those of write_docs. */
static int read_docs(const struct buf *b, uint64_t vocab, size_t *ret_docs, struct err *e)
{
    const char *path = t_path("stream");
    struct zin *z;
    struct docstream d;
    T_OK(file_replace(path, b->data, b->len, e), e);
    T_OK(zin_open(path, &z, e), e);
    int code = docstream_open(&d, z, e);
    *ret_docs = 0;
    for (bool more = true; !code && more;) {
        const int32_t *id;
        size_t n;
        code = docstream_next(&d, &id, &n, &more, e);
        for (size_t i = 0; !code && more && i < n; i++)
            T_EQ(id[i], id_of(*ret_docs, i, vocab));
        *ret_docs += !code && more;
    }
    docstream_close(&d);
    zin_close(z);
    return code;
}

static void what_is_written_is_read(void)
{
    struct err e;
    for (uint32_t width = 2; width <= 4; width += 2) {
        uint64_t vocab = width == 2 ? 65536 : 200000;
        struct buf b = {0};
        size_t docs;
        write_docs(&b, width, vocab, 50);
        T_OK(read_docs(&b, vocab, &docs, &e), &e);
        T_EQ(docs, 50);
        buf_finish(&b);
    }
}

static void documents_come_in_parts(void)
{
    struct err e;
    struct buf b = {0};
    struct zin *z;
    struct docstream d;
    uint64_t n, doc = 0;
    bool more;
    write_docs(&b, 4, 200000, 10);
    T_OK(file_replace(t_path("parts"), b.data, b.len, &e), &e);
    T_OK(zin_open(t_path("parts"), &z, &e), &e);
    T_OK(docstream_open(&d, z, &e), &e);
    for (;; doc++) {
        T_OK(docstream_begin(&d, &n, &more, &e), &e);
        if (!more)
            break;
        T_EQ(n, doc == 3 ? 400000 : doc * 37 % 100);
        uint64_t got = 0, parts = 0;
        while (d.left) {
            const int32_t *id;
            size_t k;
            T_OK(docstream_part(&d, &id, &k, &e), &e);
            T_CHECK(k > 0 && k <= DOCSTREAM_PART);
            for (size_t i = 0; i < k; i++)
                T_EQ(id[i], id_of(doc, got + i, 200000));
            got += k;
            parts++;
        }
        T_EQ(got, n);
        T_EQ(parts, doc == 3 ? 2 : n > 0);
    }
    T_EQ(doc, 10);
    T_CHECK(d.buf.cap < 3 * DOCSTREAM_PART * sizeof(int32_t));
    docstream_close(&d);
    zin_close(z);
    buf_finish(&b);
}

static void header_is_as_documented(void)
{
    struct buf b = {0};
    struct docstream_header h = header(2, 2001);
    docstream_put_header(&b, &h);
    int32_t id[2] = {1, 2000};
    put_doc(&b, &h, id, 2);
    docstream_put_end(&b, 1, 2);
    T_EQ(b.len, 64 + 8 + 20);
    T_MEM(b.data, "WEFTDOCS\1\0\0\0\2\0\0\0\xd1\7\0\0\0\0\0\0\7\0\0\0\0\0\0\0\xaa\xaa", 34);
    T_MEM(b.data + 64, "\2\0\0\0\1\0\xd0\7\xff\xff\xff\xff\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 28);
    buf_finish(&b);
}

static void a_cut_stream_is_told(void)
{
    struct err e;
    struct buf b = {0}, cut;
    size_t docs;
    write_docs(&b, 2, 1000, 3);
    for (size_t n = 0; n < b.len; n++) {
        cut = b;
        cut.len = n;
        T_ERR(read_docs(&cut, 1000, &docs, &e), &e, ERR_DATA, "stream");
    }
    buf_addc(&b, 0);
    T_ERR(read_docs(&b, 1000, &docs, &e), &e, ERR_DATA, "something follows");
    buf_finish(&b);
}

static void spoil(size_t at, uint32_t value, const char *words)
{
    struct err e;
    struct buf b = {0};
    size_t docs;
    write_docs(&b, 2, 1000, 3);
    store_u32(b.data + at, value);
    T_ERR(read_docs(&b, 1000, &docs, &e), &e, ERR_DATA, words);
    buf_finish(&b);
}

static void lies_are_found(void)
{
    spoil(0, 0, "WEFTDOCS");
    spoil(8, 3, "version 3");
    spoil(12, 3, "width");
    spoil(16, 0, "vocabulary size");
    spoil(16, 65537, "vocabulary size");
    spoil(24, 1000, "end of document");
    /* a count without its ids: nothing of that size is allocated */
    spoil(64, 0x7fffffff, "before its end mark");
    spoil(64, 0x80000000u, "more than 2^31 - 1");
    spoil(64 + 4 + 4, 1001,
          "id 1001 is outside"); /* document 0 is empty, the next one's first ids */
}

static int read_header(const struct buf *b, struct docstream *ret, struct err *e)
{
    const char *path = t_path("named");
    struct zin *z;
    T_OK(file_replace(path, b->data, b->len, e), e);
    T_OK(zin_open(path, &z, e), e);
    int code = docstream_open(ret, z, e);
    zin_close(z);
    return code;
}

static void the_tokenizer_is_named(void)
{
    struct docstream_header h = header(2, 2001);
    struct docstream d;
    struct buf b = {0};
    struct err e;
    strcpy(h.type, "HuggingFaceTokenizer");
    memset(h.path, 'p', DOCSTREAM_PATH - 1);
    docstream_put_header(&b, &h);
    T_EQ(b.len, 64 + 2 + 20 + 2 + DOCSTREAM_PATH - 1);
    T_OK(read_header(&b, &d, &e), &e);
    T_STR(d.header.type, h.type);
    T_STR(d.header.path, h.path);
    T_STR(d.header.digest, h.digest);
    docstream_close(&d);
    b.len -= 1;
    T_ERR(read_header(&b, &d, &e), &e, ERR_DATA, "the writer was stopped");
    store_u16(b.data + 86, DOCSTREAM_PATH);
    T_ERR(read_header(&b, &d, &e), &e, ERR_DATA, "too great a length");
    b.data[70] = '\0';
    T_ERR(read_header(&b, &d, &e), &e, ERR_DATA, "a zero byte");
    buf_reset(&b);
    h.path[0] = '\0';
    docstream_put_header(&b, &h);
    T_OK(read_header(&b, &d, &e), &e);
    T_STR(d.header.path, "");
    docstream_close(&d);
    b.data[8] = 3;
    T_ERR(read_header(&b, &d, &e), &e, ERR_DATA, "of version 3, but 1 and 2 are read");
    buf_finish(&b);
}

T_MAIN(T_CASE(the_tokenizer_is_named), T_CASE(what_is_written_is_read),
       T_CASE(documents_come_in_parts), T_CASE(header_is_as_documented),
       T_CASE(a_cut_stream_is_told), T_CASE(lies_are_found))
