/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_HF_MEMBER_H
#define TOK_FORMATS_HF_MEMBER_H

/*
 * Members of a component of tokenizer.json. Messages begin with the file and the component's place
 * in it: "x.json: pre_tokenizer.pretokenizers[1]: ...". Returned strings are in the spec's arena,
 * NUL-terminated.
 */

#include "base/format/json.h"
#include "tok/pipeline/pipeline.h"

struct get {
    const char *path; /* file and place */
    const struct json *j;
    struct err *e;
};

typedef int get_step(struct pipe_spec *s, const struct get *g);

/* Runs `step` on a component, or on each of the array g->j[key], with its place. */
int get_begin(struct pipe_spec *s, const struct json *j, const char *where, struct err *e,
              get_step *step);
int get_each(struct pipe_spec *s, const struct get *g, const char *key, get_step *step);

int get_type(const struct get *g, const char **ret);
bool get_bool(const struct get *g, const char *key, bool missing); /* null counts as missing */
int64_t get_int(const struct get *g, const char *key, int64_t missing);
int get_text(struct pipe_spec *s, const struct get *g, const char *key, struct string_ref *ret);
int get_char(struct pipe_spec *s, const struct get *g, const char *key, struct string_ref *ret);
int get_pattern(const struct get *g, struct regex **ret); /* {"String": ..} or {"Regex": ..} */
int get_search(const struct get *g, struct regex **ret);  /* the same for regex_next */

/* ERR_DATA: the member is not `what`; the component's type is unknown. */
int get_bad(const struct get *g, const char *key, const char *what);
int get_unknown(const struct get *g, const char *kind, const char *type);

#endif
