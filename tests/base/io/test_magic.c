/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/magic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io/file.h"
#include "tests/base/fresh.h"
#include "tests/t.h"
#include "uchardet_config.h"

struct sample {
    const char *bytes;
    size_t n;
    const char *name; /* part of the name that is expected; NULL: text */
};

#define SAMPLE(bytes, name)                                                                        \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, name                                                             \
    }

static const struct sample samples[] = {
    SAMPLE("\x1f\x8b\x08 gzip", "gzip"),
    SAMPLE("\x28\xb5\x2f\xfd zstd", "zstd"),
    SAMPLE("\x53\x2a\x4d\x18 skipped", "zstd"),
    SAMPLE("\xfd"
           "7zXZ\0..",
           "xz"),
    SAMPLE("PAR1\x15\x04", "Parquet"),
    SAMPLE("PARE\x15\x04", "encrypted Parquet"),
    SAMPLE("BZh91AY&SY", "bzip2"),
    SAMPLE("PK\3\4\x14", "zip"),
    SAMPLE("ARROW1\0\0", "Arrow file"),
    SAMPLE("\xff\xff\xff\xff\x78\1\0\0", "Arrow stream"),
    SAMPLE("\x93NUMPY\1\0", "NumPy"),
    SAMPLE("MMIDIDX\0\0\1", ".idx"),
    SAMPLE("WEFTDOCS\1\0\0\0", "tok encode --format docs"),
    SAMPLE("\x40\0\0\0\0\0\0\0{\"a\":", "safetensors"),
    SAMPLE("GGUF\3\0\0\0", "GGUF"),
    SAMPLE("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2", "SentencePiece"),
    SAMPLE("%PDF-1.7\n", "PDF"),
    SAMPLE("\x7f"
           "ELF\2\1",
           "ELF"),
    SAMPLE("\x89PNG\r\n\x1a\n", "PNG"),
    SAMPLE("\xff\xd8\xff\xe0", "JPEG"),
    SAMPLE("RIFF\1\2\3\4WEBP", "image"),
    SAMPLE("\x80\2}q", "pickle"),
    SAMPLE("\xff\xfe{\0", "UTF-16"),
    SAMPLE("\xfe\xff\0{", "UTF-16"),
    SAMPLE("\xff\xfe\0\0{\0\0\0", "UTF-32"),
    SAMPLE("\0\0\xfe\xff\0\0\0{", "UTF-32"),
    SAMPLE("", NULL),
    SAMPLE("{\"text\": \"a\"}\n", NULL),
    SAMPLE("\xef\xbb\xbf text behind a mark", NULL),
    SAMPLE("GGUF is a format of weights", NULL),
    SAMPLE("PKZIP was a program", NULL),
    SAMPLE("RIFF: a file format", NULL),
    SAMPLE("\n\n\n\n a text after empty lines\n", NULL),
    SAMPLE("BZh is how this text begins", NULL),
    SAMPLE("\xe3\x81\x82\xe3\x81\x84", NULL),
    SAMPLE("\xff Latin-1, which is no known format", NULL),
};

static void first_bytes_tell_the_format(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        const struct sample *s = &samples[i];
        char *copy = malloc(s->n + 1); /* a read past the end is found by the sanitizer */
        memcpy(copy, s->bytes, s->n);
        copy = realloc(copy, s->n ? s->n : 1);
        const struct magic *m = magic_find(copy, s->n);
        free(copy);
        if (!m != !s->name || (m && !strstr(m->name, s->name)))
            t_fail(__FILE__, __LINE__, "sample %zu: %s, not %s", i, m ? m->name : "text",
                   s->name ? s->name : "text");
    }
}

static void a_cut_signature_is_none(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        const struct magic *whole = magic_find(samples[i].bytes, samples[i].n);
        for (size_t n = 0; n < 2 && n < samples[i].n; n++)
            T_CHECK(!magic_find(samples[i].bytes, n));
        T_CHECK(whole || !samples[i].name);
    }
}

static void a_tar_archive(void)
{
    char block[512] = "a.txt";
    T_CHECK(!magic_find(block, sizeof(block)));
    memcpy(block + 257, "ustar\00000", 8);
    T_CHECK(strstr(magic_find(block, sizeof(block))->name, "tar"));
    T_CHECK(!magic_find(block, 261));
}

static void what_is_no_text_is_refused(void)
{
    struct err e;
    static char text[MAGIC_LOOK + 2];
    memset(text, 'a', sizeof(text));
    T_OK(magic_check_text("x", text, sizeof(text), MAGIC_AS_TEXT, &e), &e);
    text[MAGIC_LOOK] = '\0';
    T_OK(magic_check_text("x", text, sizeof(text), MAGIC_AS_TEXT, &e), &e);
    text[MAGIC_LOOK - 1] = '\0';
    T_ERR(magic_check_text("x", text, sizeof(text), MAGIC_AS_TEXT, &e), &e, ERR_DATA,
          "x: is a binary file");
    T_CHECK(strstr(e.msg, "byte 65535"));
    T_CHECK(strstr(e.hint, "--input-format text"));
    T_ERR(magic_check_text("x", "a\0b\0c\0d\0e\0", 10, MAGIC_AS_TEXT, &e), &e, ERR_DATA, "UTF-16");
    T_CHECK(strstr(e.hint, "iconv"));
    T_ERR(magic_check_text("x", "%PDF-1.4", 8, MAGIC_AS_TEXT, &e), &e, ERR_DATA,
          "x: is a PDF document, not text");
    T_CHECK(strstr(e.hint, "pdftotext"));
}

/* Sentences long enough to be told apart, in the encodings that people have. */
static void text_in_another_encoding_is_named(void)
{
    static const struct {
        const char *text, *name;
    } t[] = {
        {"\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7"
         "\x81\x42",
         "SHIFT_JIS"},
        {"\xa4\xb3\xa4\xec\xa4\xcf\xc6\xfc\xcb\xdc\xb8\xec\xa4\xce\xca\xb8\xbe\xcf\xa4\xc7\xa4\xb9"
         "\xa1\xa3",
         "EUC-JP"},
        {"Un \xe9l\xe8ve fran\xe7"
         "ais \xe0 la fen\xeatre, o\xf9 il a \xe9t\xe9. ",
         ""},
    };
    struct err e;
    struct buf b = {0};
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        buf_reset(&b);
        for (int k = 0; k < 9; k++)
            buf_adds(&b, t[i].text);
        T_ERR(magic_check_text("x", b.data, b.len, NULL, &e), &e, ERR_DATA, "x: is not in UTF-8");
        T_CHECK(strstr(e.hint, "convert it: iconv -f ") && strstr(e.hint, " -t UTF-8 FILE"));
#if WEFT_UCHARDET
        T_CHECK(strstr(e.msg, "seems to be in ") && strstr(e.msg, t[i].name));
#endif
    }
    buf_reset(&b);
    buf_adds(
        &b,
        "caf\xc3\xa9 na\xc3\xafve \xc3\xa9\xc3\xa8 and four bytes of none: \xff \xfe \xff \xfe");
    T_OK(magic_check_text("x", b.data, b.len, NULL, &e), &e);
    T_OK(magic_check_text("x", "caf\xe9 na\xefve", 10, NULL, &e), &e);
    buf_finish(&b);
}

static void lines_that_end_in_cr_alone(void)
{
    static const struct {
        const char *text;
        bool warns;
    } of[] = {
        {"a\rb\r", true}, {"a\rb\rc\n", false}, {"a\r\nb\r\n", false},       {"a\r", false},
        {"a b", false},   {"", false},          {"{\"a\": 1}\r{}\r", false}, {"\r\r\r", true}};
    struct err e;
    const char *path = t_path("cr.txt");
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        T_OK(file_replace(path, of[i].text, strlen(of[i].text), &e), &e);
        T_EQ(magic_warns_of_cr(path, &e), of[i].warns);
        if (of[i].warns)
            T_CHECK(strstr(e.msg, "cr.txt: has ") && strstr(e.msg, "tr '\\r' '\\n'"));
    }
    T_CHECK(!magic_warns_of_cr(t_path("none"), &e));
}

static int check_json(const char *p, size_t n, struct err *e)
{
    bool parquet;
    T_OK(file_replace(t_path("x.jsonl"), p, n, e), e);
    return magic_check_file(t_path("x.jsonl"), true, NULL, &parquet, e);
}

static void json_may_have_a_bad_record(void)
{
    static const char line[] = "{\"text\": \"a\"}\n{\"text\": \"a\0\"}\n";
    struct err e;
    T_OK(check_json(line, sizeof(line) - 1, &e), &e);
    T_ERR(magic_check_text("x", line, sizeof(line) - 1, NULL, &e), &e, ERR_DATA, "byte 25 is NUL");
    T_ERR(check_json("a\0bcdefgh", 10, &e), &e, ERR_DATA, "byte 1 is NUL");
    T_ERR(check_json("{\0\"\0t\0\"\0", 8, &e), &e, ERR_DATA, "UTF-16");
}

static void put_gzip(const char *path, const char *p, size_t n)
{
    gzFile f = gzopen(path, "wb");
    T_CHECK(f && gzwrite(f, p, (unsigned)n) == (int)n && gzclose(f) == Z_OK);
}

static void files_are_judged_decompressed(void)
{
    struct err e;
    bool parquet;
    const char *dir = fresh_dir("d");
    put_gzip(in(dir, "a.gz"), "plain text\n", 11);
    T_OK(magic_check_file(in(dir, "a.gz"), true, NULL, &parquet, &e), &e);
    T_CHECK(!parquet);
    put_gzip(in(dir, "a.gz"), "%PDF-1.4 compressed", 19);
    T_ERR(magic_check_file(in(dir, "a.gz"), true, NULL, &parquet, &e), &e, ERR_DATA,
          "a.gz: is a PDF");
    T_OK(file_replace(in(dir, "p"), "PAR1.......", 11, &e), &e);
    T_OK(magic_check_file(in(dir, "p"), true, NULL, &parquet, &e), &e);
    T_CHECK(parquet);
    put_gzip(in(dir, "p.gz"), "PAR1.......", 11); /* which cannot be read from its end */
    T_ERR(magic_check_file(in(dir, "p.gz"), true, NULL, &parquet, &e), &e, ERR_DATA,
          "p.gz: contains a Parquet");
    T_ERR(magic_check_file(in(dir, "none"), true, NULL, &parquet, &e), &e, ERR_IO,
          "none: cannot open");
    T_OK(magic_check_file("/dev/null", true, NULL, &parquet, &e), &e);
}

T_MAIN(T_CASE(first_bytes_tell_the_format), T_CASE(a_cut_signature_is_none), T_CASE(a_tar_archive),
       T_CASE(what_is_no_text_is_refused), T_CASE(text_in_another_encoding_is_named),
       T_CASE(lines_that_end_in_cr_alone), T_CASE(json_may_have_a_bad_record),
       T_CASE(files_are_judged_decompressed))
