/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_CHECK_H
#define PREP_SFT_CHECK_H

/*
 * What may be wrong with an example although it can be trained on: no end of an answer is learnt,
 * it begins twice, an empty thought is learnt. A checker belongs to one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/chat/chat.h"
#include "tok/tokenizer/tokenizer.h"

struct sft_checks {
    uint64_t endless; /* something is learnt, and no token that ends a text or an answer */
    uint64_t twice;   /* two tokens that begin a text, one after the other */
    uint64_t thought; /* a learnt <think> with nothing but white space up to </think> */
};

struct sft_checker;
/* `chat` may be NULL; both must outlive the checker. */
struct sft_checker *sft_checker_create(const struct tokenizer *tok, const struct chat *chat);
void sft_checker_destroy(struct sft_checker *c);

/* Whether an id ends a text or an answer. */
bool sft_checker_ends(const struct sft_checker *c, int32_t id);

struct sft_example {
    const int32_t *id; /* [n] */
    const char *learn; /* [n]: 1 for ids that are learnt */
    size_t n;
    bool cut;         /* its end is missing, which is no fault of its own */
    const char *line; /* its record, of `bytes` bytes */
    size_t bytes;
};

/* Adds what it finds. */
void sft_check(struct sft_checker *c, const struct sft_example *x, struct sft_checks *sum);

#endif
