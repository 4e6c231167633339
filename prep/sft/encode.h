/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_ENCODE_H
#define PREP_SFT_ENCODE_H

/*
 * A worker's part of `prep sft`: a block of records becomes examples, their packed tokens in column
 * 0 of the item and bits (packed_bits) in column 1, 1 for tokens with a loss. Records without
 * tokens give no example.
 *
 * The plan is shared and immutable; an encoder belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "dataset/shard/shard.h"
#include "prep/encode/encoder.h"
#include "prep/input/block.h"
#include "prep/sft/check.h"
#include "tok/chat/chat.h"
#include "tok/chat/mask.h"
#include "tok/tokenizer/tokenizer.h"

/* What becomes of an example that is longer than seq_length: its end is cut off; it is dropped; its
 * rest becomes further examples (trl's bfd_split). */
enum sft_overlong { OVERLONG_CUT, OVERLONG_DROP, OVERLONG_SPLIT };

struct sft_plan {
    const struct tokenizer *tok; /* encodes texts, with its file's template */
    const struct chat *chat;     /* NULL: records have a text */
    const char *text_key;
    /* NULL: the chat decides what is learnt; of a text everything */
    const struct chat_marks *marks;
    bool learn_all;
    bool add_prompt; /* chats end where the assistant is to speak */
    enum sft_overlong overlong;
    uint32_t seq_length; /* most tokens of an example */
    int32_t eod;         /* after each text, or conversation without an end; -1: none */
    int64_t pad;         /* an id that is never learnt from a text; -1: none */
    int64_t vocab_size;
    enum shard_dtype dtype;
    enum on_bad on_bad;
};

/* Numbers of examples; `empty` and `dropped` ones gave none. */
struct sft_counts {
    uint64_t empty, dropped, cut, split;
    uint64_t cut_answers; /* of those cut, within what is learnt */
    uint64_t unmatched;   /* a mark is missing */
    uint64_t barren;      /* nothing is learnt, including those unmatched */
    uint64_t learnt;      /* tokens */
    uint64_t unwritten;   /* messages of which the template writes nothing */
    uint64_t specials;    /* strings of special tokens treated as text */
    uint64_t hidden; /* tokens that end a text and are not learnt because they are padding, too */
    struct sft_checks checks;
};

struct sft_encoder;
struct sft_encoder *sft_encoder_create(const struct sft_plan *p);
void sft_encoder_destroy(struct sft_encoder *c);

/* Fills the item's outputs. Errors are in it->code or it->bad. */
void sft_encoder_run(struct sft_encoder *c, struct item *it);

void sft_encoder_counts(const struct sft_encoder *c, struct sft_counts *sum); /* adds to it */

#endif
