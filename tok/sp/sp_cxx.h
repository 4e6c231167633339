/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_SP_CXX_H
#define TOK_SP_SP_CXX_H

/*
 * libsentencepiece in plain C (sp_cxx.cc holds all C++ of this module). Every exception becomes an
 * error. The library's own log lines are suppressed while it loads and encodes.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct sp_lib;  /* a loaded model; immutable, shared by threads */
struct sp_room; /* one thread's scratch */

/* `p` must have passed sp_check. ERR_DATA if the library still refuses it (its own self-test
 * failed). */
int sp_lib_open(const char *name, const void *p, size_t n, struct sp_lib **ret, struct err *e);
void sp_lib_close(struct sp_lib *l);

struct sp_room *sp_room_create(void);
void sp_room_destroy(struct sp_room *r);

/* *ret_id is valid until the next call with `r`. Text and ids must be shorter than 2^29. */
int sp_lib_encode(const struct sp_lib *l, struct sp_room *r, const char *text, size_t n,
                  const int **ret_id, size_t *ret_n, struct err *e);

/* Appends the text. Ids must be inside the vocabulary. */
int sp_lib_decode(const struct sp_lib *l, struct sp_room *r, const int *id, size_t n,
                  struct buf *text, struct err *e);

/*
 * Training. `next` yields one sentence at a time: 1 with *ret_text and *ret_n (valid until the next
 * call), 0 at the end, -1 when reading failed (the caller knows why; *ret is then not set).
 * `keys` and `values` are the library's options, `seed` its random seed (-1: not set). *ret
 * becomes the serialized model. ERR_USAGE with the library's own message, without positions in its
 * source. The library ends the process on some failures: tok/learn/sp/library_trainer.c calls this
 * in a child.
 */
typedef int sp_next_fn(void *arg, const char **ret_text, size_t *ret_n);

int sp_lib_train(const char *const *keys, const char *const *values, size_t n, int64_t seed,
                 sp_next_fn *next, void *arg, struct buf *ret, struct err *e);

#endif
