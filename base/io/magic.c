/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/magic.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "uchardet_config.h"
#if WEFT_UCHARDET
#include <uchardet/uchardet.h>
#endif

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "base/io/zin.h"

struct signature {
    struct magic is;
    const char *bytes;
    size_t n, at;
};

#define SIGNATURE(id, name, cure, bytes, at)                                                       \
    {                                                                                              \
        {id, name, cure}, bytes, sizeof(bytes) - 1, at                                             \
    }

#define WITHOUT_CURE(name, bytes, at) SIGNATURE(MAGIC_OTHER, name, NULL, bytes, at)

#define ARROW_CURE                                                                                 \
    "write it as Parquet or JSONL first; in Python, "                                              \
    "datasets.load_from_disk(FOLDER).to_parquet('FILE.parquet')"

/* Longer signatures come before their prefixes. */
static const struct signature known[] = {
    SIGNATURE(MAGIC_GZIP, "a gzip file", "decompress it: gzip -dc FILE | ... -", "\x1f\x8b", 0),
    SIGNATURE(MAGIC_XZ, "an xz file", "decompress it: xz -dc FILE | ... -",
              "\xfd"
              "7zXZ\0",
              0),
    SIGNATURE(MAGIC_PARQUET, "a Parquet file", NULL, "PAR1", 0),
    SIGNATURE(MAGIC_OTHER, "an encrypted Parquet file",
              "write it without encryption first; in Python, pyarrow.parquet.read_table(FILE, "
              "decryption_properties=...) and pyarrow.parquet.write_table",
              "PARE", 0),
    SIGNATURE(MAGIC_ARCHIVE, "a bzip2 file", "pipe it in: bzip2 -dc FILE | ... -", "BZh91AY&", 0),
    SIGNATURE(MAGIC_ARCHIVE, "an lz4 file", "pipe it in: lz4 -dc FILE | ... -", "\x04\x22\x4d\x18",
              0),
    SIGNATURE(MAGIC_ARCHIVE, "a zip archive", "pipe it in: unzip -p FILE | ... -", "PK\3\4", 0),
    SIGNATURE(MAGIC_ARCHIVE, "an empty zip archive", NULL, "PK\5\6", 0),
    SIGNATURE(MAGIC_ARCHIVE, "a 7z archive", "pipe it in: 7z e -so FILE | ... -",
              "7z\xbc\xaf\x27\x1c", 0),
    SIGNATURE(MAGIC_ARCHIVE, "a RAR archive", "unpack it first", "Rar!\x1a\x07", 0),
    SIGNATURE(MAGIC_ARCHIVE, "a tar archive", "pipe in its contents: tar -xOf FILE | ... -",
              "ustar", 257),
    SIGNATURE(MAGIC_ARCHIVE, "a compress (.Z) file", "pipe it in: gzip -dc FILE | ... -",
              "\x1f\x9d", 0),
    SIGNATURE(MAGIC_DOCS, "a stream of tok encode --format docs, which has ids",
              "prep build --pretokenized FILE reads it", "WEFTDOCS", 0),
    SIGNATURE(MAGIC_OTHER, "an Arrow file", ARROW_CURE, "ARROW1\0\0", 0),
    SIGNATURE(MAGIC_OTHER, "a Feather file", ARROW_CURE, "FEA1", 0),
    WITHOUT_CURE("a NumPy array", "\x93NUMPY", 0),
    SIGNATURE(MAGIC_OTHER, "the index of a dataset of token ids (.idx)",
              "prep export writes its texts back", "MMIDIDX\0\0", 0),
    WITHOUT_CURE("an ELF program",
                 "\x7f"
                 "ELF",
                 0),
    WITHOUT_CURE("a PNG image", "\x89PNG\r\n\x1a\n", 0),
    WITHOUT_CURE("a JPEG image", "\xff\xd8\xff", 0),
    WITHOUT_CURE("a GIF image", "GIF87a", 0),
    WITHOUT_CURE("a GIF image", "GIF89a", 0),
    WITHOUT_CURE("a TIFF image", "II*\0", 0),
    WITHOUT_CURE("a TIFF image", "MM\0*", 0),
    SIGNATURE(MAGIC_OTHER, "a PDF document", "extract its text first: pdftotext FILE - | ... -",
              "%PDF-", 0),
    WITHOUT_CURE("an Ogg file", "OggS\0", 0),
    WITHOUT_CURE("a FLAC file", "fLaC\0", 0),
    WITHOUT_CURE("an HDF5 file", "\x89HDF\r\n\x1a\n", 0),
    WITHOUT_CURE("an SQLite database", "SQLite format 3\0", 0),
    WITHOUT_CURE("an Avro file", "Obj\1", 0),
    WITHOUT_CURE("a Microsoft Office file", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0),
    WITHOUT_CURE("a Python pickle", "\x80\2", 0),
    WITHOUT_CURE("a Python pickle", "\x80\3", 0),
    WITHOUT_CURE("a Python pickle", "\x80\4\x95", 0),
    WITHOUT_CURE("a Python pickle", "\x80\5\x95", 0),
    SIGNATURE(MAGIC_UTF, "text in UTF-32", "convert it: iconv -f UTF-32 -t UTF-8 FILE",
              "\xff\xfe\0\0", 0),
    SIGNATURE(MAGIC_UTF, "text in UTF-32", "convert it: iconv -f UTF-32 -t UTF-8 FILE",
              "\0\0\xfe\xff", 0),
    SIGNATURE(MAGIC_UTF, "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE", "\xff\xfe",
              0),
    SIGNATURE(MAGIC_UTF, "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE", "\xfe\xff",
              0),
};

/* ---- formats without a fixed signature ------------------------------------------------------- */

#define TOKENIZER_CURE "it is a tokenizer: --tokenizer FILE"

/* zstd: a frame, or a skippable frame (RFC 8878, 3.1). */
static bool is_zstd(const unsigned char *p, size_t n)
{
    return n >= 4 && (load_u32(p) == 0xfd2fb528 || (load_u32(p) & 0xfffffff0) == 0x184d2a50);
}

/* ModelProto begins with field 1, pieces, each with a text and the tag of its score. */
static bool is_sentencepiece(const unsigned char *p, size_t n)
{
    return n >= 10 && p[0] == 0x0a && p[1] < 0x80 && p[2] == 0x0a && p[3] + 7u <= p[1] &&
           n > 4u + p[3] && p[4 + p[3]] == 0x15;
}

/* The length of a JSON header, then the header itself. */
static bool is_safetensors(const unsigned char *p, size_t n)
{
    return n >= 10 && p[8] == '{' && load_u64(p) >= 2 && load_u64(p) <= 100000000;
}

/* The name, then a version in either byte order. */
static bool is_gguf(const unsigned char *p, size_t n)
{
    return n >= 8 && !memcmp(p, "GGUF", 4) && (!p[4] != !p[7]);
}

/* The stream form of Arrow: a continuation mark and the length of the schema's message. */
static bool is_arrow_stream(const unsigned char *p, size_t n)
{
    return n >= 8 && load_u32(p) == UINT32_MAX && load_u32(p + 4) > 0 && load_u32(p + 4) < 64 << 20;
}

static bool is_riff(const unsigned char *p, size_t n)
{
    return n >= 12 && !memcmp(p, "RIFF", 4) &&
           (!memcmp(p + 8, "WEBP", 4) || !memcmp(p + 8, "WAVE", 4) || !memcmp(p + 8, "AVI ", 4));
}

static bool is_mp4(const unsigned char *p, size_t n)
{
    return n >= 12 && !p[0] && !memcmp(p + 4, "ftyp", 4);
}

static const struct {
    bool (*is)(const unsigned char *p, size_t n);
    struct magic what;
} judged[] = {
    {is_zstd, {MAGIC_ZSTD, "a zstd file", "decompress it: zstd -dc FILE | ... -"}},
    {is_sentencepiece, {MAGIC_TOKENIZER, "a SentencePiece model", TOKENIZER_CURE}},
    {is_safetensors, {MAGIC_OTHER, "a safetensors file of weights", NULL}},
    {is_gguf, {MAGIC_OTHER, "a GGUF file of weights", NULL}},
    {is_arrow_stream, {MAGIC_OTHER, "an Arrow stream", ARROW_CURE}},
    {is_riff, {MAGIC_OTHER, "an image, sound or video file", NULL}},
    {is_mp4, {MAGIC_OTHER, "a video file", NULL}},
};

const struct magic *magic_find(const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        const struct signature *s = &known[i];
        if (n >= s->at + s->n && !memcmp(p + s->at, s->bytes, s->n))
            return &s->is;
    }
    for (size_t i = 0; i < sizeof(judged) / sizeof(*judged); i++)
        if (judged[i].is(p, n))
            return &judged[i].what;
    return NULL;
}

/* ---- text, or not --------------------------------------------------------------------------- */

static int hint_cure(const char *cure, const char *otherwise, struct err *e)
{
    return err_hint(e, "%s%s%s", cure ? cure : "", cure && otherwise ? "; " : "",
                    otherwise ? otherwise : "");
}

int magic_refuse(const char *name, const struct magic *m, const char *otherwise, struct err *e)
{
    err_set(e, ERR_DATA, "%s: is %s, not %s", name, m->name,
            m->id == MAGIC_UTF ? "in UTF-8" : "text in UTF-8");
    return hint_cure(m->cure, m->id == MAGIC_UTF ? NULL : otherwise, e);
}

/* UTF-16 without a byte order mark: every other byte of ASCII text is NUL. */
static bool like_utf16(const unsigned char *p, size_t n)
{
    size_t nul[2] = {0, 0};
    for (size_t i = 0; i < n; i++)
        nul[i & 1] += !p[i];
    return n >= 8 && ((!nul[0] && nul[1] > n / 4) || (!nul[1] && nul[0] > n / 4));
}

static bool begins_json(const char *p, size_t n)
{
    size_t i = n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < n && (p[i] == '{' || p[i] == '[');
}

/* The name of an encoding for iconv; "" where nobody can tell. */
static void guess_encoding(const char *p, size_t n, char ret[32])
{
    ret[0] = '\0';
#if WEFT_UCHARDET
    uchardet_t u = uchardet_new();
    if (!uchardet_handle_data(u, p, n)) {
        uchardet_data_end(u);
        snprintf(ret, 32, "%s", uchardet_get_charset(u));
    }
    uchardet_delete(u);
    if (!strcmp(ret, "UTF-8") || !strcmp(ret, "ASCII"))
        ret[0] = '\0';
#else
    (void)p, (void)n;
#endif
}

static int magic_check_utf8(const char *name, const void *p, size_t n, struct err *e)
{
    const unsigned char *b = p;
    char encoding[32], cure[160];
    size_t high = 0;
    n = n < MAGIC_LOOK ? n : MAGIC_LOOK;
    for (size_t i = 0; i < n; i++)
        high += b[i] >= 0x80;
    uint64_t wrong = high < 4 ? 0 : utf8_invalid(p, n);
    if (wrong < 4 || wrong <= high / 2)
        return 0;
    guess_encoding(p, n, encoding);
    if (encoding[0])
        err_set(e, ERR_DATA,
                "%s: is not in UTF-8 but seems to be in %s: byte %zu is of no character", name,
                encoding, utf8_good(p, n));
    else
        err_set(e, ERR_DATA, "%s: is not in UTF-8: byte %zu is of no character", name,
                utf8_good(p, n));
    snprintf(cure, sizeof(cure), "convert it: iconv -f %s -t UTF-8 FILE",
             encoding[0] ? encoding : "ENCODING");
    return hint_cure(cure, NULL, e);
}

static int magic_check(const char *name, const void *p, size_t n, bool json, const char *otherwise,
                       struct err *e)
{
    const struct magic *m = magic_find(p, n);
    if (m)
        return magic_refuse(name, m, otherwise, e);
    n = n < MAGIC_LOOK ? n : MAGIC_LOOK;
    const unsigned char *nul = n ? memchr(p, 0, n) : NULL;
    if (!nul)
        return magic_check_utf8(name, p, n, e);
    size_t at = (size_t)(nul - (const unsigned char *)p);
    if (like_utf16(p, n & ~(size_t)1)) {
        err_set(e, ERR_DATA, "%s: seems to be text in UTF-16 (byte %zu is NUL), not in UTF-8", name,
                at);
        return hint_cure("convert it: iconv -f UTF-16LE -t UTF-8 FILE", NULL, e);
    }
    if (json && begins_json(p, n))
        return 0;
    err_set(e, ERR_DATA, "%s: is a binary file, not text: byte %zu is NUL", name, at);
    return hint_cure(NULL, otherwise, e);
}

int magic_check_text(const char *name, const void *p, size_t n, const char *otherwise,
                     struct err *e)
{
    return magic_check(name, p, n, false, otherwise, e);
}

static int read_head(struct zin *z, char *p, size_t *ret_n, struct err *e)
{
    size_t n = 0, k = 1;
    int code = 0;
    while (!code && k && n < MAGIC_LOOK) {
        code = zin_read(z, p + n, MAGIC_LOOK - n, &k, e);
        n += k;
    }
    *ret_n = n;
    return code;
}

static int magic_look(struct zin *z, char *p, bool json, const char *otherwise, bool *ret_parquet,
                      struct err *e)
{
    size_t n;
    int code = read_head(z, p, &n, e);
    if (code)
        return code;
    const struct magic *m = magic_find(p, n);
    *ret_parquet = m && m->id == MAGIC_PARQUET;
    if (*ret_parquet && zin_compressed(z)) {
        err_set(e, ERR_DATA, "%s: contains a Parquet file, which is read from its end",
                zin_name(z));
        return err_hint(e, "decompress it first");
    }
    return *ret_parquet ? 0 : magic_check(zin_name(z), p, n, json, otherwise, e);
}

int magic_check_file(const char *path, bool json, const char *otherwise, bool *ret_parquet,
                     struct err *e)
{
    struct stat st;
    struct zin *z;
    *ret_parquet = false;
    if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    int code = zin_open(path, &z, e);
    if (code)
        return code;
    char *p = mem_new(MAGIC_LOOK, 1);
    code = magic_look(z, p, json, otherwise, ret_parquet, e);
    free(p);
    zin_close(z);
    return code;
}

int magic_check_utf8_file(const char *path, struct err *e)
{
    struct stat st;
    struct zin *z;
    size_t n = 0;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return 0;
    int code = zin_open(path, &z, e);
    if (code)
        return code;
    zin_take_any(z);
    char *p = mem_new(MAGIC_LOOK, 1);
    code = read_head(z, p, &n, e);
    if (!code)
        code = magic_check_utf8(path, p, n, e);
    free(p);
    zin_close(z);
    return code;
}

static size_t count_cr(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += p[i] == '\r';
    return count;
}

bool magic_warns_of_cr(const char *path, struct err *ret)
{
    struct stat st;
    struct zin *z;
    struct err ignored;
    size_t n = 0, count = 0;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || zin_open(path, &z, &ignored))
        return false;
    zin_take_any(z);
    char *p = mem_new(MAGIC_LOOK, 1);
    if (!read_head(z, p, &n, &ignored) && !begins_json(p, n) && !memchr(p, '\n', n))
        count = count_cr(p, n);
    free(p);
    zin_close(z);
    if (count < 2)
        return false;
    err_set(ret, ERR_DATA,
            "%s: has %zu CR and no line feed in its first %zu bytes: if its lines end in CR "
            "alone, convert it, tr '\\r' '\\n' <FILE >OTHER",
            path, count, n);
    return true;
}
