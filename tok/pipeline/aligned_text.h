/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_ALIGNED_TEXT_H
#define TOK_PIPELINE_ALIGNED_TEXT_H

/*
 * A text that is changed and remembers where it comes from: for each of its bytes, which bytes of
 * the original it stands for. Changes are told as Hugging Face's tokenizers 0.23.3 tells them
 * (NormalizedString, rebuilt by asking it), since its offsets are what comes out: each character of
 * the new text either replaces the next one of the old, or is put behind what was taken so far, or
 * replaces the next and takes some more away. What it gets is the place of the character that
 * it replaces, or of the last one taken; so characters that change places do not take their
 * places with them, and what is removed belongs to nobody.
 *
 * Belongs to one thread. A zeroed struct is empty. Texts are UTF-8.
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
    struct buf text;  /* 64 readable bytes behind it */
    struct place *at; /* of each byte; those of a character have the same */
    size_t cap;
    uint32_t base; /* where the part of the original begins that this text is */
};

void aligned_finish(struct aligned *a);

/* `a` becomes n bytes, the original; each has the place of its character, or with `bytes` its own.
 * A maximal run of bytes that are no UTF-8 is the character U+FFFD. */
void aligned_set(struct aligned *a, const char *text, size_t n, bool bytes);

/* `a` becomes from[begin .. end). */
void aligned_slice(struct aligned *a, const struct aligned *from, size_t begin, size_t end);

/* Appends n bytes, all with the place given. */
void aligned_add(struct aligned *a, const char *text, size_t n, struct place at);

/* How many bytes at the beginning stand for the beginning of the original. */
size_t aligned_zero(const struct aligned *a);

/* 64 readable bytes behind the text. */
void aligned_close(struct aligned *a);

/* What is put behind the byte at - 1. */
struct place aligned_behind(const struct aligned *a, size_t at);

/* take: 0 replaces the next character, -k takes k more away, above 0 takes none. */
struct change {
    uint32_t c;
    int32_t take;
};

struct changes {
    struct change *item;
    size_t n, cap;
    size_t skip; /* characters at the beginning that go */
};

void changes_finish(struct changes *c);
void changes_add(struct changes *c, uint32_t code, int32_t take);

/* Replaces all of the text; `c` is empty then. */
void aligned_change(struct aligned *a, struct changes *c);

#endif
