/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/utf8_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/tokenizer/tokenizer.h"

/* Where utf8_char first fails; n: nowhere. */
static size_t twin(const char *p, size_t n)
{
    size_t i = 0;
    for (size_t k; i < n && (k = utf8_char(p + i, p + n)); i += k)
        ;
    return i;
}

static void parts_are_judged_as_the_whole(void)
{
    static const unsigned char some[] = {'a',  'b',  0x80, 0xbf, 0xc2, 0xc1, 0xe0, 0xa0, 0xe3,
                                         0x81, 0xed, 0x9f, 0xf0, 0x90, 0xf4, 0x8f, 0xf5, 0xff};
    for (uint64_t i = 0; i < 200000; i++) {
        char text[24];
        size_t n = t_rand(1, i) % 9, cut = n ? t_rand(2, i) % n : 0, ascii = t_rand(4, i) % 2 * 9;
        memset(text, 'x', ascii);
        for (size_t k = 0; k < n; k++)
            text[ascii + k] = (char)some[t_rand(3, i * 16 + k) % sizeof(some)];
        struct strict s = {0};
        bool good = strict_add(&s, text, ascii + cut, false) &&
                    strict_add(&s, text + ascii + cut, n - cut, true);
        size_t want = twin(text, ascii + n);
        T_EQ(good, want == ascii + n);
        T_CHECK(good || s.begun == want);
    }
}

static void a_tokenizer_says_where(void)
{
    static const char vocab[] = "{\"<unk>\": 0, \"a\": 1}";
    struct err e;
    struct tokenizer *t;
    struct tok_ids ids = {0};
    struct tok_options o = {.path = t_path("vocab.json"), .strict = true};
    T_OK(file_replace(o.path, vocab, strlen(vocab), &e), &e);
    T_OK(tok_open(&o, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    T_OK(tok_encode(t, w, "a a", 3, &ids, &e), &e);
    T_ERR(tok_encode(t, w, "a \xe3\x81 a", 6, &ids, &e), &e, ERR_DATA, "byte 2 of the text");
    T_EQ(ids.n, 2);
    T_OK(tok_encode_part(t, w, "a \xe3", 3, false, &ids, &e), &e);
    T_OK(tok_encode_part(t, w, "\x81\x82 a", 4, false, &ids, &e), &e);
    T_ERR(tok_encode_part(t, w, "\xc3", 1, true, &ids, &e), &e, ERR_DATA, "byte 7 of the text");
    T_OK(tok_encode_part(t, w, "a", 1, true, &ids, &e), &e);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
}

T_MAIN(T_CASE(parts_are_judged_as_the_whole), T_CASE(a_tokenizer_says_where))
