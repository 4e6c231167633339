/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/format/json.h"
#include "tok/learn/out.h"

/* tokenizer.json, formatted as serde does, with two spaces per level. */

static void json_put_text(struct buf *b, const char *s)
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
        json_put_text(b, s);
        buf_adds(b, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n"
                    "      \"rstrip\": false,\n      \"normalized\": false,\n");
        buf_addf(b, "      \"special\": %s\n    }", i + o->nuser < o->nspecial ? "true" : "false");
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

/* Digits, then the pattern, then bytes, as far as present. */
static void put_pre_tokenizer(const struct pretok_family *f, struct buf *b)
{
    static const char split[] = "{\n        \"type\": \"Split\",\n        \"pattern\": {\n"
                                "          \"Regex\": ",
                      isolated[] = "\n        },\n        \"behavior\": \"Isolated\",\n"
                                   "        \"invert\": false\n      },\n      ";
    if (f->plain && !f->digits) {
        put_byte_level(b, "  ", false, true, true);
        return;
    }
    buf_adds(b, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      ");
    if (f->digits == PRETOK_DIGITS_SINGLE)
        buf_adds(b, "{\n        \"type\": \"Digits\",\n        \"individual_digits\": true\n"
                    "      },\n      ");
    if (f->digits == PRETOK_DIGITS_THREE)
        buf_addf(b, "%s\"\\\\p{N}{1,3}\"%s", split, isolated);
    if (!f->plain) {
        buf_adds(b, split);
        json_put_text(b, f->pattern);
        buf_adds(b, isolated);
    }
    put_byte_level(b, "      ", false, true, f->plain);
    buf_adds(b, "\n    ]\n  }");
}

static void put_byte_pipeline(const struct learn_out *o, struct buf *b)
{
    buf_addf(b, "  \"normalizer\": %s,\n  \"pre_tokenizer\": ",
             o->family->nfc ? "{\n    \"type\": \"NFC\"\n  }" : "null");
    put_pre_tokenizer(o->family, b);
    buf_adds(b, ",\n  \"post_processor\": ");
    put_byte_level(b, "  ", true, false, true);
    buf_adds(b, ",\n  \"decoder\": ");
    put_byte_level(b, "  ", true, true, true);
    buf_adds(b, ",\n");
}

/* ---- BERT -------------------------------------------------------------------------------- */

static const char *yes(bool x)
{
    return x ? "true" : "false";
}

static void json_put_sequence(struct buf *b, const char *what, const char *id, int type)
{
    buf_addf(b,
             "      {\n        \"%s\": {\n          \"id\": \"%s\",\n          \"type_id\": %d\n"
             "        }\n      }",
             what, id, type);
}

static void put_template(struct buf *b, bool pair)
{
    buf_addf(b, "    \"%s\": [\n", pair ? "pair" : "single");
    json_put_sequence(b, "SpecialToken", "[CLS]", 0);
    buf_adds(b, ",\n");
    json_put_sequence(b, "Sequence", "A", 0);
    buf_adds(b, ",\n");
    json_put_sequence(b, "SpecialToken", "[SEP]", 0);
    if (pair) {
        buf_adds(b, ",\n");
        json_put_sequence(b, "Sequence", "B", 1);
        buf_adds(b, ",\n");
        json_put_sequence(b, "SpecialToken", "[SEP]", 1);
    }
    buf_adds(b, "\n    ],\n");
}

/* [CLS] A [SEP] B [SEP], if both are special tokens. */
static void put_bert_processor(const struct learn_out *o, struct buf *b)
{
    static const char *const name[] = {"[CLS]", "[SEP]"};
    int found = 0;
    for (size_t i = 0; i + o->nuser < o->nspecial; i++)
        found += strcmp(o->special[i], name[0]) == 0 || strcmp(o->special[i], name[1]) == 0;
    if (found < 2) {
        buf_adds(b, "null");
        return;
    }
    buf_adds(b, "{\n    \"type\": \"TemplateProcessing\",\n");
    put_template(b, false);
    put_template(b, true);
    buf_adds(b, "    \"special_tokens\": {\n");
    for (int i = 0; i < 2; i++)
        buf_addf(b,
                 "      \"%s\": {\n        \"id\": \"%s\",\n        \"ids\": [\n          %d\n"
                 "        ],\n        \"tokens\": [\n          \"%s\"\n        ]\n      }%s\n",
                 name[i], name[i], learn_vocab_find(o->vocab, name[i], 5), name[i], i ? "" : ",");
    buf_adds(b, "    }\n  }");
}

static void put_bert_pipeline(const struct learn_out *o, struct buf *b)
{
    const struct learn_bert *n = o->bert;
    buf_addf(b,
             "  \"normalizer\": {\n    \"type\": \"BertNormalizer\",\n    \"clean_text\": %s,\n"
             "    \"handle_chinese_chars\": %s,\n    \"strip_accents\": %s,\n"
             "    \"lowercase\": %s\n  },\n",
             yes(n->clean), yes(n->chinese), n->accents == n->lower ? "null" : yes(n->accents),
             yes(n->lower));
    buf_adds(b, "  \"pre_tokenizer\": {\n    \"type\": \"BertPreTokenizer\"\n  },\n"
                "  \"post_processor\": ");
    put_bert_processor(o, b);
    buf_adds(b, ",\n  \"decoder\": {\n    \"type\": \"WordPiece\",\n    \"prefix\": ");
    json_put_text(b, o->prefix);
    buf_adds(b, ",\n    \"cleanup\": true\n  },\n");
}

/* ---- the model --------------------------------------------------------------------------- */

static void put_pieces(const struct learn_vocab *v, struct buf *b)
{
    buf_adds(b, "    \"vocab\": {");
    for (size_t i = 0; i < v->n; i++) {
        buf_adds(b, i ? ",\n      " : "\n      ");
        jsonw_string(b, v->piece[i].text, v->piece[i].length);
        buf_addf(b, ": %zu", i);
    }
    buf_adds(b, v->n ? "\n    }" : "}");
}

static void put_wordpiece(const struct learn_out *o, struct buf *b)
{
    buf_adds(b, "  \"model\": {\n    \"type\": \"WordPiece\",\n    \"unk_token\": \"[UNK]\",\n"
                "    \"continuing_subword_prefix\": ");
    json_put_text(b, o->prefix);
    buf_adds(b, ",\n    \"max_input_chars_per_word\": 100,\n");
    put_pieces(o->vocab, b);
    buf_adds(b, "\n  }\n");
}

static void put_bpe(const struct learn_out *o, struct buf *b)
{
    const struct learn_vocab *v = o->vocab;
    buf_adds(b, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                "    \"unk_token\": null,\n    \"continuing_subword_prefix\": ");
    json_put_text(b, o->prefix);
    buf_adds(b, ",\n    \"end_of_word_suffix\": ");
    json_put_text(b, o->suffix);
    buf_adds(b, ",\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n"
                "    \"ignore_merges\": false,\n");
    put_pieces(v, b);
    buf_adds(b, ",\n    \"merges\": [");
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
    if (o->bert) {
        put_bert_pipeline(o, b);
        put_wordpiece(o, b);
    } else {
        put_byte_pipeline(o, b);
        put_bpe(o, b);
    }
    buf_adds(b, "}");
}
