/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn_out.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define WORD "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MARK "[^\\r\\n\\p{L}\\p{N}]?"
#define ENDING "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SIGNS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"

const struct learn_family learn_families[] = {
    {"gpt2",
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", true,
     false},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     false, false},
    {"llama3", WORD "|" MARK "\\p{L}+|\\p{N}{1,3}" SIGNS ENDING, false, false},
    {"qwen2", WORD "|" MARK "\\p{L}+|\\p{N}" SIGNS ENDING, false, true},
    {"o200k",
     MARK UPPER "*" LOWER "+" WORD "?|" MARK UPPER "+" LOWER "*" WORD
                "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" ENDING,
     false, false},
    {.name = NULL},
};

/* ---- tokenizer.json ---------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *s)
{
    if (s)
        jsonw_string(b, s, strlen(s));
    else
        buf_adds(b, "null");
}

static void put_added(const struct learn_out *o, struct buf *b)
{
    buf_adds(b, "  \"added_tokens\": [");
    for (size_t i = 0; i < o->nspecial; i++) {
        const char *s = o->special[i];
        buf_addf(b, "%s\n    {\n      \"id\": %d,\n      \"content\": ", i ? "," : "",
                 learn_vocab_find(o->vocab, s, strlen(s)));
        put_text(b, s);
        buf_adds(b, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n"
                    "      \"rstrip\": false,\n      \"normalized\": false,\n"
                    "      \"special\": true\n    }");
    }
    buf_adds(b, o->nspecial ? "\n  ],\n" : "],\n");
}

static void put_byte_level(struct buf *b, const char *indent, bool space, bool trim, bool regex)
{
    buf_addf(b,
             "{\n%s  \"type\": \"ByteLevel\",\n%s  \"add_prefix_space\": %s,\n"
             "%s  \"trim_offsets\": %s,\n%s  \"use_regex\": %s\n%s}",
             indent, indent, space ? "true" : "false", indent, trim ? "true" : "false", indent,
             regex ? "true" : "false", indent);
}

static void put_pipeline(const struct learn_out *o, struct buf *b)
{
    buf_addf(b, "  \"normalizer\": %s,\n  \"pre_tokenizer\": ",
             o->family->nfc ? "{\n    \"type\": \"NFC\"\n  }" : "null");
    if (o->family->plain) {
        put_byte_level(b, "  ", false, true, true);
    } else {
        buf_adds(b, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      {\n"
                    "        \"type\": \"Split\",\n        \"pattern\": {\n"
                    "          \"Regex\": ");
        put_text(b, o->family->pattern);
        buf_adds(b, "\n        },\n        \"behavior\": \"Isolated\",\n"
                    "        \"invert\": false\n      },\n      ");
        put_byte_level(b, "      ", false, true, false);
        buf_adds(b, "\n    ]\n  }");
    }
    buf_adds(b, ",\n  \"post_processor\": ");
    put_byte_level(b, "  ", true, false, true);
    buf_adds(b, ",\n  \"decoder\": ");
    put_byte_level(b, "  ", true, true, true);
    buf_adds(b, ",\n");
}

static void put_model(const struct learn_out *o, struct buf *b)
{
    const struct learn_vocab *v = o->vocab;
    buf_adds(b, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                "    \"unk_token\": null,\n    \"continuing_subword_prefix\": ");
    put_text(b, o->prefix);
    buf_adds(b, ",\n    \"end_of_word_suffix\": ");
    put_text(b, o->suffix);
    buf_adds(b, ",\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n"
                "    \"ignore_merges\": false,\n    \"vocab\": {");
    for (size_t i = 0; i < v->n; i++) {
        buf_adds(b, i ? ",\n      " : "\n      ");
        jsonw_string(b, v->piece[i].text, v->piece[i].length);
        buf_addf(b, ": %zu", i);
    }
    buf_adds(b, v->n ? "\n    },\n    \"merges\": [" : "},\n    \"merges\": [");
    for (size_t i = 0; i < v->nmerges; i++) {
        const struct learn_piece *l = &v->piece[v->merge[i].left];
        const struct learn_piece *r = &v->piece[v->merge[i].right];
        buf_adds(b, i ? ",\n      [\n        " : "\n      [\n        ");
        jsonw_string(b, l->text, l->length);
        buf_adds(b, ",\n        ");
        jsonw_string(b, r->text, r->length);
        buf_adds(b, "\n      ]");
    }
    buf_adds(b, v->nmerges ? "\n    ]\n  }\n" : "]\n  }\n");
}

void learn_put_tokenizer(const struct learn_out *o, struct buf *b)
{
    buf_adds(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    put_added(o, b);
    put_pipeline(o, b);
    put_model(o, b);
    buf_adds(b, "}");
}

/* ---- vocab.json, merges.txt -------------------------------------------------------------- */

void learn_put_vocab(const struct learn_out *o, struct buf *b)
{
    for (size_t i = 0; i < o->vocab->n; i++) {
        buf_addc(b, i ? ',' : '{');
        jsonw_string(b, o->vocab->piece[i].text, o->vocab->piece[i].length);
        buf_addf(b, ":%zu", i);
    }
    buf_adds(b, o->vocab->n ? "}" : "{}");
}

void learn_put_merges(const struct learn_out *o, struct buf *b)
{
    const struct learn_vocab *v = o->vocab;
    buf_adds(b, "#version: 0.2\n");
    for (size_t i = 0; i < v->nmerges; i++)
        buf_addf(b, "%s %s\n", v->piece[v->merge[i].left].text, v->piece[v->merge[i].right].text);
}

int learn_write(const struct learn_out *o, const char *prefix, struct err *e)
{
    static void (*const put[])(const struct learn_out *, struct buf *) = {
        learn_put_vocab, learn_put_merges, learn_put_tokenizer};
    static const char *const name[] = {"vocab.json", "merges.txt", "tokenizer.json"};
    struct outfile f[3] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
    size_t n = strlen(prefix);
    int code = 0;
    for (int i = 0; i < 3 && !code; i++) {
        struct buf b = {0};
        char *path = mem_printf("%s%s%s", prefix, n && prefix[n - 1] != '/' ? "-" : "", name[i]);
        put[i](o, &b);
        code = outfile_open(&f[i], path, e);
        if (!code)
            code = outfile_write(&f[i], b.data, b.len, e);
        if (!code)
            code = outfile_sync(&f[i], e);
        buf_finish(&b);
        free(path);
    }
    for (int i = 0; i < 3 && !code; i++)
        code = outfile_commit(&f[i], e);
    for (int i = 0; i < 3; i++)
        outfile_abort(&f[i]);
    return code;
}
