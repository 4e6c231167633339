/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_HF_MAKE_H
#define TESTS_TOK_HF_MAKE_H

/* Small tokenizer.json files for tests. */

#include <string.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "tests/t.h"
#include "tok/tokenizer/tokenizer.h"

/* The components of a file; NULL: null, or [] for added_tokens. */
struct hf_make {
    const char *added, *norm, *pre, *post, *dec, *model;
};

#define HF_BPE(options)                                                                            \
    "{\"type\":\"BPE\"," options                                                                   \
    "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"\\u0120a\":5,\"abc\":6,"          \
    "\"bc\":7,\"<unk>\":8,\"\\u0120ab\":9,\"\\u00c3\":10,\"\\u00a9\":11},"                         \
    "\"merges\":[\"a b\",[\"\\u0120\",\"a\"],\"ab c\",\"b c\",\"\\u0120a b\"]}"
#define HF_LEVEL(prefix)                                                                           \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix                                         \
    ",\"trim_offsets\":true,\"use_regex\":true}"
#define HF_TOKEN(text, flags)                                                                      \
    "{\"id\":0,\"content\":\"" text "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"  \
    "\"normalized\":false,\"special\":true" flags "}"

static inline void hf_text(struct buf *b, const struct hf_make *m)
{
    buf_addf(b, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[%s],",
             m->added ? m->added : "");
    buf_addf(b, "\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,\"decoder\":%s,",
             m->norm ? m->norm : "null", m->pre ? m->pre : "null", m->post ? m->post : "null",
             m->dec ? m->dec : "null");
    buf_addf(b, "\"model\":%s}", m->model ? m->model : HF_BPE(""));
}

static inline int hf_open_text(const char *text, size_t n, enum tok_specials mode,
                               struct tokenizer **ret, struct err *e)
{
    const char *path = t_path("tokenizer.json");
    struct tok_options o = {.path = path, .specials = mode};
    T_OK(file_replace(path, text, n, e), e);
    return tok_open(&o, ret, e);
}

static inline int hf_open(const struct hf_make *m, enum tok_specials mode, struct tokenizer **ret,
                          struct err *e)
{
    struct buf b = {0};
    hf_text(&b, m);
    int code = hf_open_text(b.data, b.len, mode, ret, e);
    buf_finish(&b);
    return code;
}

/* The ids in decimal with spaces between. */
static inline void gives(const struct tokenizer *t, const char *text, const char *want)
{
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct buf b = {0};
    struct err e;
    T_OK(tok_encode(t, w, text, strlen(text), &ids, &e), &e);
    for (size_t i = 0; i < ids.n; i++)
        buf_addf(&b, "%s%d", i ? " " : "", ids.id[i]);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
}

#endif
