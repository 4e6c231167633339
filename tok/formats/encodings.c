/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/encodings.h"

#include <string.h>

#include "tok/formats/hf.h"

/* A special token, or `count` of them with numbers from `first` on in place of '#'. */
struct run {
    const char *text;
    int32_t id; /* 0: the id after the one before, or after the ranks */
    int first, count;
};

#define GPT2_PATTERN                                                                               \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CASED_PATTERN                                                                              \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"    \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]" \
    "+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct run r50k[] = {{.text = "<|endoftext|>", .id = 50256}, {.text = NULL}};

static const struct run cl100k[] = {{.text = "<|endoftext|>", .id = 100257},
                                    {.text = "<|fim_prefix|>"},
                                    {.text = "<|fim_middle|>"},
                                    {.text = "<|fim_suffix|>"},
                                    {.text = "<|endofprompt|>", .id = 100276},
                                    {.text = NULL}};

static const struct run o200k[] = {{.text = "<|endoftext|>", .id = 199999},
                                   {.text = "<|endofprompt|>", .id = 200018},
                                   {.text = NULL}};

static const struct run llama3[] = {
    {.text = "<|begin_of_text|>"},
    {.text = "<|end_of_text|>"},
    {.text = "<|reserved_special_token_#|>", .count = 2},
    {.text = "<|finetune_right_pad_id|>"},
    {.text = "<|step_id|>"},
    {.text = "<|start_header_id|>"},
    {.text = "<|end_header_id|>"},
    {.text = "<|eom_id|>"},
    {.text = "<|eot_id|>"},
    {.text = "<|python_tag|>"},
    {.text = "<|image|>"},
    {.text = "<|reserved_special_token_#|>", .first = 2, .count = 244},
    {.text = NULL},
};

/* As in the tokenizer.json of Llama 3.1 to 3.3: without <|step_id|> and <|image|>. */
static const struct run llama3_hf[] = {
    {.text = "<|begin_of_text|>"},
    {.text = "<|end_of_text|>"},
    {.text = "<|reserved_special_token_#|>", .count = 2},
    {.text = "<|finetune_right_pad_id|>"},
    {.text = "<|reserved_special_token_#|>", .first = 2, .count = 1},
    {.text = "<|start_header_id|>"},
    {.text = "<|end_header_id|>"},
    {.text = "<|eom_id|>"},
    {.text = "<|eot_id|>"},
    {.text = "<|python_tag|>"},
    {.text = "<|reserved_special_token_#|>", .first = 3, .count = 245},
    {.text = NULL},
};

static const struct run llama4[] = {
    {.text = "<|begin_of_text|>"},
    {.text = "<|end_of_text|>"},
    {.text = "<|fim_prefix|>"},
    {.text = "<|fim_middle|>"},
    {.text = "<|fim_suffix|>"},
    {.text = "<|header_start|>"},
    {.text = "<|header_end|>"},
    {.text = "<|eom|>"},
    {.text = "<|eot|>"},
    {.text = "<|step|>"},
    {.text = "<|text_post_train_reserved_special_token_#|>", .count = 6},
    {.text = "<|python_start|>"},
    {.text = "<|python_end|>"},
    {.text = "<|finetune_right_pad|>"},
    {.text = "<|text_post_train_reserved_special_token_#|>", .first = 8, .count = 61},
    {.text = "<|image_start|>"},
    {.text = "<|image_end|>"},
    {.text = "<|vision_reserved_special_token_#|>", .count = 2},
    {.text = "<|tile_x_separator|>"},
    {.text = "<|tile_y_separator|>"},
    {.text = "<|vision_reserved_special_token_#|>", .first = 2, .count = 4},
    {.text = "<|image|>"},
    {.text = "<|vision_reserved_special_token_#|>", .first = 6, .count = 1},
    {.text = "<|patch|>"},
    {.text = "<|vision_reserved_special_token_#|>", .first = 7, .count = 1041},
    {.text = "<|reasoning_reserved_special_token_#|>", .count = 8},
    {.text = "<|reasoning_thinking_start|>"},
    {.text = "<|reasoning_thinking_end|>"},
    {.text = "<|reserved_special_token_#|>", .count = 904},
    {.text = NULL},
};

static const struct run qwen[] = {{.text = "<|endoftext|>"},
                                  {.text = "<|im_start|>"},
                                  {.text = "<|im_end|>"},
                                  {.text = "<|extra_#|>", .count = 205},
                                  {.text = NULL}};

struct encoding {
    const char *name;
    size_t ranks;
    const char *pattern;
    const struct run *special;
    bool nfc;
};

#define LLAMA3_PATTERN                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+" \
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Of those with the same number of ranks, the first is recognised by it. */
static const struct encoding encodings[] = {
    {"r50k", 50256, GPT2_PATTERN, r50k, false},
    {"p50k", 50280, GPT2_PATTERN, r50k, false},
    {"cl100k", 100256,
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++"
     "[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     cl100k, false},
    {"o200k", 199998, CASED_PATTERN, o200k, false},
    {"llama3", 128000, LLAMA3_PATTERN, llama3, false},
    {"llama3-hf", 128000, LLAMA3_PATTERN, llama3_hf, false},
    {"llama4", 200000, CASED_PATTERN, llama4, false},
    {"qwen", 151643,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+"
     "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     qwen, true},
};

/* Megatron-LM's, by their names there. */
static const char *const megatron_pattern[] = {
    "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
    "\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

enum { ENCODINGS = sizeof(encodings) / sizeof(*encodings) };

static bool is_named(const struct encoding *c, const char *name)
{
    size_t n = strlen(c->name);
    return !strncmp(name, c->name, n) && (!name[n] || !strcmp(name + n, "_base"));
}

const struct encoding *encoding_find(const char *name, size_t ranks)
{
    for (size_t i = 0; i < ENCODINGS; i++)
        if (name ? is_named(&encodings[i], name) : ranks == encodings[i].ranks)
            return &encodings[i];
    return name && !strcmp(name, "gpt2") ? &encodings[0] : NULL;
}

const char *encoding_name(const struct encoding *c)
{
    return c->name;
}

const char *encoding_pattern(const char *name)
{
    const struct encoding *c = encoding_find(name, 0);
    if (name[0] == 'v' && (name[1] == '1' || name[1] == '2') && !name[2])
        return megatron_pattern[name[1] - '1'];
    return c ? c->pattern : name;
}

void encoding_apply(const struct encoding *c, size_t ranks, struct pipe_spec *s)
{
    struct buf b = {0};
    int32_t id = (int32_t)ranks;
    if (c->nfc)
        pipe_add_norm(s, NORM_NFC);
    for (const struct run *r = c->special; r->text && ranks == c->ranks; r++) {
        const char *hole = strchr(r->text, '#');
        id = r->id ? r->id : id;
        if (!hole)
            pipe_add_special(s, r->text, id++);
        for (int i = 0; hole && i < r->count; i++) {
            buf_reset(&b);
            buf_addf(&b, "%.*s%d%s", (int)(hole - r->text), r->text, r->first + i, hole + 1);
            pipe_add_special(s, buf_str(&b), id++);
        }
    }
    buf_finish(&b);
}
