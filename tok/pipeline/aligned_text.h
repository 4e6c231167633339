/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_ALIGNED_TEXT_H
#define TOK_PIPELINE_ALIGNED_TEXT_H

/*
 * A text that is changed and remembers, for each of its bytes, which bytes of the original it
 * stands for. Changes are expressed as in Hugging Face's tokenizers 0.23.3 (NormalizedString, as
 * observed from outside), since its offsets are the result: each character of the new text either
 * replaces the next one of the old, or is inserted after what was consumed so far, or replaces the
 * next and removes some more. It gets the place of the character that it replaces, or of the last
 * one consumed; so characters that change places do not take their places with them, and removed
 * ones belong to nothing.
 *
 * For one thread. A zeroed struct is empty. Texts are UTF-8.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct place {
    uint32_t begin, end; /* bytes of the original */
};

struct aligned {
    struct buf text;  /* 64 bytes after it are readable */
    struct place *at; /* by byte; equal for the bytes of a character */
    size_t cap;
    uint32_t base; /* where this part of the original begins */
};

void aligned_finish(struct aligned *a);

/* `a` becomes n bytes of an original; each byte has the place of its character, or with `bytes` its
 * own. A maximal invalid sequence is the character U+FFFD. */
void aligned_set(struct aligned *a, const char *text, size_t n, bool bytes);

/* `a` becomes from[begin .. end). */
void aligned_slice(struct aligned *a, const struct aligned *from, size_t begin, size_t end);

/* Appends n bytes, all with the given place. */
void aligned_add(struct aligned *a, const char *text, size_t n, struct place at);

/* How many leading bytes stand for the beginning of the original. */
size_t aligned_zero(const struct aligned *a);

/* Makes 64 bytes after the text readable. */
void aligned_close(struct aligned *a);

/* The place of an insertion after byte at - 1. */
struct place aligned_behind(const struct aligned *a, size_t at);

/* take: 0 replaces the next character, -k removes k more, above 0 is an insertion. */
struct change {
    uint32_t c;
    int32_t take;
};

struct changes {
    struct change *item;
    size_t n, cap;
    size_t skip; /* leading characters that are removed */
};

void changes_finish(struct changes *c);
void changes_add(struct changes *c, uint32_t code, int32_t take);

/* Replaces all of the text; `c` is empty then. */
void aligned_change(struct aligned *a, struct changes *c);

#endif
