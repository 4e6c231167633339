/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/core_name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"

enum { DIGITS = 17 };

/* ---- numbers and strings as Python writes them --------------------------------------------- */

/* Does d.ddd (as digits without the dot) times 10^exponent read back as v? */
static bool reads_back(const char *digit, int exponent, double v)
{
    char text[48];
    snprintf(text, sizeof(text), "%c.%se%d", digit[0], digit + 1, exponent);
    return strtod(text, NULL) == v;
}

/*
 * Fewest digits that read back; digit[] ends with NUL. printf rounds to nearest, but just below a
 * power of two the spacing of doubles halves, so there the next digit up may be the one that reads
 * back.
 */
static int shortest(double v, char digit[DIGITS + 2])
{
    char text[48];
    int exponent = 0;
    for (int n = 1; n <= DIGITS; n++) {
        snprintf(text, sizeof(text), "%.*e", n - 1, v);
        digit[0] = text[0];
        memcpy(digit + 1, text + 2, (size_t)(n - 1));
        digit[n] = '\0';
        exponent = atoi(strchr(text, 'e') + 1);
        if (reads_back(digit, exponent, v))
            break;
        if (digit[n - 1] < '9') {
            digit[n - 1]++;
            if (reads_back(digit, exponent, v))
                break;
        }
    }
    return exponent;
}

void core_put_real(struct buf *b, double v)
{
    char digit[DIGITS + 2];
    if (v == 0) {
        buf_adds(b, signbit(v) ? "-0.0" : "0.0");
        return;
    }
    if (v < 0)
        buf_addc(b, '-');
    int exponent = shortest(fabs(v), digit), n = (int)strlen(digit);
    while (n > 1 && digit[n - 1] == '0')
        digit[--n] = '\0';
    if (exponent < -4 || exponent >= 16) {
        buf_addf(b, "%c%s%s", digit[0], n > 1 ? "." : "", digit + 1);
        buf_addf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        buf_addf(b, "0.%.*s%s", -exponent - 1, "0000", digit);
    } else {
        for (int i = 0; i <= exponent || i < n; i++)
            buf_addf(b, i == exponent + 1 ? ".%c" : "%c", i < n ? digit[i] : '0');
        if (n <= exponent + 1)
            buf_adds(b, ".0");
    }
}

/* As ASCII; an invalid byte becomes the lone surrogate that Python's surrogateescape gives it. */
static void put_string(struct buf *b, const char *s)
{
    static const char letter[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    const char *end = s + strlen(s);
    buf_addc(b, '"');
    while (s < end) {
        size_t k = utf8_char(s, end);
        uint32_t c = k ? utf8_code(s, k) : 0xdc00u + (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_addf(b, "\\%c", (int)c);
        else if (c < 32 && letter[c])
            buf_addf(b, "\\%c", letter[c]);
        else if (c >= 32 && c < 127)
            buf_addc(b, (char)c);
        else if (c < 0x10000)
            buf_addf(b, "\\u%04x", c);
        else
            buf_addf(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                     0xdc00 + ((c - 0x10000) & 0x3ff));
        s += k ? k : 1;
    }
    buf_addc(b, '"');
}

/* ---- descriptions --------------------------------------------------------------------------- */

void core_tokenizer_of(const char *type, const char *path, const char *merges, int64_t vocab_size,
                       struct core_tokenizer *ret)
{
    static const struct {
        const char *type, *name, *option, *value;
    } known[] = {
        {"SentencePieceTokenizer", "_SentencePieceTokenizer", "vocab_extra_ids", "0"},
        {"GPTSentencePieceTokenizer", "_GPTSentencePieceTokenizer", "vocab_extra_ids", "0"},
        {"Llama2Tokenizer", "_Llama2Tokenizer", "vocab_extra_ids", "0"},
        {"HuggingFaceTokenizer", "_HuggingFaceTokenizer", NULL, NULL},
        {"GPT2BPETokenizer", "_GPT2BPETokenizer", NULL, NULL},
        {"BertWordPieceLowerCase", "_BertWordPieceTokenizer", "lower_case", "True"},
        {"BertWordPieceCase", "_BertWordPieceTokenizer", "lower_case", "False"},
        {"NullTokenizer", "_NullTokenizer", "vocab_size", NULL},
    };
    *ret = (struct core_tokenizer){.name = type, .path = {path, merges}, .npath = merges ? 2 : 1};
    for (size_t i = 0; type && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].type, type) != 0)
            continue;
        ret->name = known[i].name;
        if (!known[i].option)
            return;
        ret->option[0].key = known[i].option;
        ret->noptions = 1;
        if (known[i].value)
            snprintf(ret->option[0].value, sizeof(ret->option[0].value), "%s", known[i].value);
        else
            snprintf(ret->option[0].value, sizeof(ret->option[0].value), "%" PRId64, vocab_size);
        if (strstr(known[i].type, "Bert")) {
            ret->option[1].key = "vocab_extra_ids";
            snprintf(ret->option[1].value, sizeof(ret->option[1].value), "0");
            ret->noptions = 2;
        }
    }
}

static void put_tokenizer(const struct core_tokenizer *t, struct buf *b)
{
    if (!t || !t->name) {
        buf_adds(b, "null");
        return;
    }
    buf_adds(b, "{\n        \"class\": ");
    put_string(b, t->name);
    buf_adds(b, ",\n        \"tokenizer_path\": [");
    for (size_t i = 0; i < t->npath; i++) {
        buf_adds(b, i ? ",\n            " : "\n            ");
        if (t->path[i])
            put_string(b, t->path[i]);
        else
            buf_adds(b, "null");
    }
    buf_adds(b, "\n        ]");
    for (size_t i = 0; i < t->noptions; i++) {
        buf_addf(b, ",\n        \"%s\": ", t->option[i].key);
        put_string(b, t->option[i].value);
    }
    buf_adds(b, "\n    }");
}

/* The first bound is Python's integer 0, the others are its floats. */
static void put_matrix(const struct split *s, struct buf *b)
{
    buf_adds(b, "[");
    for (int p = 0; p < PARTS; p++) {
        buf_adds(b, p ? ",\n        " : "\n        ");
        if (s->bound[p + 1] <= s->bound[p]) {
            buf_adds(b, "null");
            continue;
        }
        buf_adds(b, "[\n            ");
        if (p)
            core_put_real(b, s->bound[p]);
        else
            buf_adds(b, "0");
        buf_adds(b, ",\n            ");
        core_put_real(b, s->bound[p + 1]);
        buf_adds(b, "\n        ]");
    }
    buf_adds(b, "\n    ]");
}

int core_gpt_text(const struct core_gpt *g, struct buf *ret, struct err *e)
{
    struct split split;
    int code = g->split ? split_parse(g->split, &split, e) : 0;
    if (code)
        return code;
    buf_adds(ret, "{\n    \"class\": \"GPTDataset\",\n    \"dataset_path\": ");
    put_string(ret, g->path);
    buf_adds(ret, ",\n    \"num_samples\": ");
    if (g->samples == SAMPLES_ALL)
        buf_adds(ret, "null");
    else
        buf_addf(ret, "%" PRIu64, g->samples);
    buf_addf(ret,
             ",\n    \"index_split\": \"%s\",\n    \"random_seed\": %" PRIu32
             ",\n    \"sequence_length\": %" PRIu32 ",\n    \"split\": ",
             part_name(g->part), g->seed, g->seq_length);
    if (g->split)
        put_string(ret, g->split);
    else
        buf_adds(ret, "null");
    buf_adds(ret, ",\n    \"split_matrix\": ");
    if (g->split)
        put_matrix(&split, ret);
    else
        buf_adds(ret, "null");
    buf_adds(ret, ",\n    \"tokenizer\": ");
    put_tokenizer(g->tokenizer, ret);
    buf_adds(ret, "\n}");
    return 0;
}

void core_blend_text(const struct core_blend *b, struct buf *ret)
{
    buf_adds(ret, "{\n    \"class\": \"BlendedDataset\",\n    \"datasets\": [");
    for (size_t i = 0; i < b->n; i++) {
        buf_adds(ret, i ? ",\n        " : "\n        ");
        for (size_t k = 0; k < b->set[i].len; k++) {
            buf_addc(ret, b->set[i].data[k]);
            if (b->set[i].data[k] == '\n')
                buf_adds(ret, "        ");
        }
    }
    buf_addf(ret, "\n    ],\n    \"split\": \"%s\",\n    \"weights\": [", part_name(b->part));
    for (size_t i = 0; i < b->n; i++) {
        buf_adds(ret, i ? ",\n        " : "\n        ");
        if (b->exhaustive)
            buf_addf(ret, "%" PRIu64, b->count[i]);
        else
            core_put_real(ret, b->weight[i]);
    }
    buf_adds(ret, "\n    ],\n    \"size\": ");
    if (b->exhaustive)
        buf_adds(ret, "null");
    else
        buf_addf(ret, "%" PRIu64, b->size);
    buf_adds(ret, "\n}");
}

/* ---- files ---------------------------------------------------------------------------------- */

char *core_path(const char *folder, const char *md5, const char *class, enum part part,
                const char *what)
{
    return mem_printf("%s/%s-%s-%s-%s", folder, md5, class, part_name(part), what);
}
