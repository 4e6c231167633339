/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_HF_H
#define TOK_FORMATS_HF_H

/*
 * Readers of Hugging Face's files into a struct pipe_spec. Messages begin with the spec's path and
 * name the place of an unknown component. On failure the spec has what was read so far, and the
 * caller finishes it.
 */

#include "base/format/json.h"
#include "tok/pipeline/pipeline.h"

enum { TEXT_ROOM = 64 /* readable bytes after the copy of a file */ };

/* tokenizer.json, from a file whose memory becomes the spec's, leaving it empty. */
int hf_take(struct pipe_spec *s, struct buf *file, struct err *e);
/* A vocab.json, {"piece": id, ...}. */
int hf_read_vocab(struct pipe_spec *s, const char *p, size_t n, struct err *e);

/* If s->path is called tokenizer.json, adds the tokens of the files beside it. ERR_DATA if one of
 * these is invalid. */
int hf_beside(struct pipe_spec *s, struct err *e);

/* Its components; `where` is the component's place, "pre_tokenizer". */
typedef int hf_component(struct pipe_spec *s, const struct json *j, const char *where,
                         struct err *e);
hf_component hf_version, hf_truncation, hf_padding, hf_normalizer, hf_pre_tokenizer, hf_decoder,
    hf_post_processor, hf_added_tokens;

/* The model's options; `scores`: its vocabulary has scores; `merges`: it has merges. */
int hf_model(struct pipe_spec *s, const struct json *j, bool scores, bool merges, struct err *e);

/*
 * Merges of pieces a and b, in order, for which s->pair has space. They are looked up in batches,
 * so the strings must stay in place until then, with eight readable bytes after them and the
 * pieces. A failure may be that of an earlier merge, whose `line`, any number of the caller's, is
 * `failed`.
 */
enum { HF_MERGES = 32 };

struct hf_merge {
    const char *a, *b;
    size_t na, nb, line;
    struct string_key left, right;
};

struct hf_merges {
    struct pipe_spec *s;
    struct err *e;
    struct hf_merge at[HF_MERGES];
    size_t n, failed;
};

int hf_add_merge(struct hf_merges *m, size_t line, const char *a, size_t na, const char *b,
                 size_t nb);
int hf_merges_end(struct hf_merges *m); /* after the last merge */

/* gpt2.c: for the readers of the simpler files. The pattern is Oniguruma's or Rust's; the id of a
 * special token is -1 if the vocabulary has it or it is the next one. */
int pipe_add_byte_level(struct pipe_spec *s, const char *pattern, enum regex_dialect dialect,
                        struct err *e);
void pipe_add_special(struct pipe_spec *s, const char *text, int32_t id);

#endif
