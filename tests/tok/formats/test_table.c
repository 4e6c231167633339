/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/letters.h"
#include "tests/tok/make.h"
#include "tok/formats/folder.h"
#include "tok/text/base64.h"
#include "tok/tokenizer/options.h"

/*
 * Every row of the table with a small file of its format: recognised, opened as each of its types,
 * read as components, found in a folder under each of its names. A new row needs a sample here.
 */
static void put_hf(struct buf *b)
{
    hf_text(b, &(struct hf_make){0});
}

static void put_base64(struct buf *b, int byte)
{
    char c = (char)byte;
    base64_put(b, &c, 1);
}

static void put_tekken(struct buf *b)
{
    buf_adds(b, "{\"config\":{\"pattern\":\"a+\",\"version\":\"v3\",\"default_vocab_size\":278,"
                "\"default_num_special_tokens\":22},\"special_tokens\":null,\"vocab\":");
    for (int i = 0; i < 256; i++) {
        buf_addf(b, "%s{\"rank\":%d,\"token_bytes\":\"", i ? "," : "[", i);
        put_base64(b, i);
        buf_adds(b, "\",\"token_str\":null}");
    }
    buf_adds(b, "]}");
}

static void put_gpt2(struct buf *b)
{
    put_letters_vocab(b, "{\"a\":0,\"b\":1,\"ab\":2,\"\u0120\":3,\"<|endoftext|>\":4}", 5);
}

static void put_words(struct buf *b)
{
    buf_adds(b, "{\"<unk>\":0,\"a\":1}");
}

static void put_ranks(struct buf *b)
{
    for (int i = 0; i < 256; i++) {
        put_base64(b, i);
        buf_addf(b, " %d\n", i);
    }
}

static void put_bert(struct buf *b)
{
    buf_adds(b, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
}

static void put_sp(struct buf *b)
{
    make_pieces(b);
    make_piece(b, "<EOD>", 0, SP_CONTROL);
}

static const struct sample {
    const char *format;
    void (*put)(struct buf *b);
    const char *merges; /* a merges.txt next to it */
    const char *pattern;
} samples[] = {
    {"huggingface", put_hf, NULL, NULL},     {"tekken", put_tekken, NULL, NULL},
    {"gpt2", put_gpt2, "a b\n", NULL},       {"words", put_words, NULL, NULL},
    {"tiktoken", put_ranks, NULL, "cl100k"}, {"bert", put_bert, NULL, NULL},
    {"sentencepiece", put_sp, NULL, NULL},
};

static const struct sample *sample_of(const struct format *f)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++)
        if (!strcmp(samples[i].format, f->name))
            return &samples[i];
    t_fail(__FILE__, __LINE__, "no sample of the format %s", f->name);
}

/* The sample as FORMAT.N/NAME; "*.model" is x.model. Returns the folder. */
static char *put_sample(const struct format *f, int number, const char *name, char **ret_path)
{
    const struct sample *s = sample_of(f);
    struct buf b = {0};
    struct err e;
    char *folder = mem_printf("%s/%s.%d", t_dir(), f->name, number);
    T_EQ(mkdir(folder, 0700), 0);
    s->put(&b);
    *ret_path = mem_printf("%s/%s%s", folder, *name == '*' ? "x" : "", name + (*name == '*'));
    T_OK(file_replace(*ret_path, b.data, b.len, &e), &e);
    if (s->merges) {
        char *merges = mem_printf("%s/merges.txt", folder);
        T_OK(file_replace(merges, s->merges, strlen(s->merges), &e), &e);
        free(merges);
    }
    buf_finish(&b);
    return folder;
}

/* Opens a path and encodes and decodes "a". */
static void opens(const struct sample *s, const char *path, enum tok_type type, enum tok_type want)
{
    struct tok_options o = {.path = path, .type = type, .pattern = s->pattern};
    struct tokenizer *t;
    struct err e;
    struct tok_ids ids = {0};
    struct buf text = {0};
    T_OK(tok_open(&o, &t, &e), &e);
    T_EQ(tok_info(t)->type, want);
    T_STR(tok_info(t)->type_name, tok_type_name(want));
    struct tok_work *w = tok_work_create(t);
    T_OK(tok_encode(t, w, "a", 1, &ids, &e), &e);
    T_OK(tok_decode(t, w, ids.id, ids.n, &text, &e), &e);
    T_CHECK(strstr(buf_str(&text), "a") != NULL);
    buf_finish(&text);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void a_file_is_recognised_and_opened_as_each_type(void)
{
    size_t n;
    const struct format *f = formats_all(&n);
    for (size_t i = 0; i < n; i++) {
        char *path = NULL;
        struct buf b = {0};
        struct err e;
        if (!f[i].looks)
            continue;
        char *folder = put_sample(&f[i], 0, f[i].file[0].name, &path);
        T_OK(file_read(path, 1 << 20, &b, &e), &e);
        struct tok_options o = {.path = path};
        T_STR(format_of_file(&o, b.data, b.len)->name, f[i].name);
        opens(sample_of(&f[i]), path, TOK_AUTO, f[i].type[0].type);
        for (const struct format_type *t = f[i].type; t->type != TOK_AUTO; t++)
            opens(sample_of(&f[i]), path, t->type, t->type);
        for (enum tok_type type = TOK_AUTO + 1; type < TOK_TYPE_END; type++) {
            const struct format *other = format_of_type(type, NULL);
            struct tokenizer *t;
            o = (struct tok_options){.path = path, .type = type};
            if (!other->looks || !strcmp(other->holds, f[i].holds) || format_has_type(&f[i], type))
                continue;
            T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, f[i].holds);
        }
        buf_finish(&b);
        free(folder);
        free(path);
    }
}

static void a_folder_stands_for_each_name(void)
{
    size_t n;
    const struct format *f = formats_all(&n);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; f[i].looks && f[i].file[k].name; k++) {
            char *path = NULL;
            char *folder = put_sample(&f[i], k + 1, f[i].file[k].name, &path);
            opens(sample_of(&f[i]), folder, TOK_AUTO, f[i].type[0].type);
            opens(sample_of(&f[i]), folder, f[i].type[0].type, f[i].type[0].type);
            free(folder);
            free(path);
        }
}

static void parts_are_read(void)
{
    size_t n;
    const struct format *f = formats_all(&n);
    for (size_t i = 0; i < n; i++) {
        struct pipe_spec s;
        struct buf b = {0};
        struct tok_info info = {.eod = -1};
        struct err e;
        char *path = NULL;
        T_CHECK(!f[i].read == !f[i].ids && !f[i].read != !f[i].open);
        if (!f[i].read)
            continue;
        char *folder = put_sample(&f[i], 100, f[i].file[0].name, &path);
        struct tok_options o = {.path = path, .pattern = sample_of(&f[i])->pattern};
        T_OK(file_read(path, 1 << 20, &b, &e), &e);
        pipe_spec_init(&s, path);
        T_OK(f[i].read(&s, &o, &b, &info, &e), &e);
        T_CHECK(s.vocab.npieces > 0);
        pipe_spec_finish(&s);
        buf_finish(&b);
        free(folder);
        free(path);
    }
}

static void every_type_has_a_row(void)
{
    struct buf choices = {0};
    buf_adds(&choices, tok_type_name(TOK_AUTO));
    for (enum tok_type type = TOK_AUTO + 1; type < TOK_TYPE_END; type++) {
        const struct format_type *t = NULL;
        T_CHECK(format_of_type(type, &t) != NULL);
        T_EQ(t->type, type);
        T_EQ(tok_type_named(tok_type_name(type)), type);
        buf_addf(&choices, "|%s", tok_type_name(type));
    }
    T_STR(buf_str(&choices), TOK_FLAG_TYPES);
    T_EQ(tok_type_named("auto"), TOK_AUTO);
    T_EQ(tok_type_named("NoSuchTokenizer"), TOK_AUTO);
    T_CHECK(format_of_type(TOK_AUTO, NULL) == NULL);
    buf_finish(&choices);
}

/* Names and turns are distinct; what shares a turn shares the name. */
static void rows_agree(void)
{
    size_t n;
    const struct format *f = formats_all(&n);
    for (size_t i = 0; i < n; i++) {
        T_CHECK(format_named(f[i].name) == &f[i]);
        T_CHECK(f[i].title && !f[i].looks == !f[i].file[0].name && !f[i].looks == !f[i].holds);
        for (const struct format_type *t = f[i].type; t->type != TOK_AUTO; t++)
            T_CHECK(!t->option || f[i].reads);
        for (size_t j = 0; j < n; j++)
            for (const struct format_file *a = f[i].file; a->name; a++)
                for (const struct format_file *b = f[j].file; b->name; b++)
                    T_EQ(a->turn == b->turn, !strcmp(a->name, b->name));
    }
}

static void facts_follow_the_types(void)
{
    T_CHECK(format_type_has(TOK_LLAMA2, "template"));
    T_CHECK(format_type_has(TOK_LLAMA2, "sentencepiece"));
    T_CHECK(!format_type_has(TOK_SENTENCEPIECE, "template"));
    T_CHECK(!format_type_has(TOK_SENTENCEPIECE, "sentence"));
    T_CHECK(format_type_has(TOK_TIKTOKEN, "vocab-size"));
    T_CHECK(!format_type_has(TOK_NULL, "special"));
    T_CHECK(format_knows("matches-eod") && format_knows("template") && !format_knows("eod"));
    T_CHECK(format_ends_name("a/b.spm") && format_ends_name("b.txt") && !format_ends_name("b.bin"));
}

T_MAIN(T_CASE(a_file_is_recognised_and_opened_as_each_type), T_CASE(a_folder_stands_for_each_name),
       T_CASE(parts_are_read), T_CASE(every_type_has_a_row), T_CASE(rows_agree),
       T_CASE(facts_follow_the_types))
