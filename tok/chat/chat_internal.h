/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_CHAT_INTERNAL_H
#define TOK_CHAT_CHAT_INTERNAL_H

/*
 * A chat and its work, for the files of this module. A template, built in or published, lays a
 * conversation out as parts: runs of text and special tokens, each to be learnt or not. encode.c
 * makes them ids.
 */

#include "tok/chat/chat.h"
#include "tok/chat/form.h"
#include "tok/chat/special.h"
#include "tok/chat/whole.h"

enum { CHAT_FORM_SPECIALS = 8 };

struct published;
struct published_work;

struct chat {
    const struct chat_form *form; /* NULL: the template is published */
    struct published *published;
    const struct tokenizer *tok, *framed;
    struct chat_special own[CHAT_FORM_SPECIALS]; /* of the form */
    const struct chat_special *special;          /* these, or those of the published template */
    size_t nspecials;
    int32_t first, last;  /* range of their ids */
    size_t before, after; /* ids that the template of `framed` puts around a text */
    bool looks_back;      /* text after a special token has other ids than by itself */
    bool strips;          /* a special token takes white space beside it */
    struct chat_rules rules;
    struct chat_stop stop;
};

/* A run of text, or a special token. */
struct chat_part {
    const char *text;
    size_t n;
    const struct chat_special *special; /* NULL: text */
    bool learnt;
    bool data; /* the text came with the record */
};

struct chat_work {
    const struct chat *chat;
    struct tok_work *work, *framed;
    struct chat_part *part;
    size_t nparts, cap;
    struct buf run;                    /* text between two special tokens, or all of it */
    struct buf run_mask;               /* one byte for each byte of it */
    const struct chat_special *behind; /* the special token before it; NULL: it begins a text */
    struct tok_ids head;               /* ids of its beginning, which is not learnt */
    struct buf spelt;                  /* that token's string, and the run */
    struct tok_ids with;               /* ids of both */
    uint64_t twice;                    /* special strings in texts that were encoded twice */
    struct tok_ranges ranges, places;
    struct chat_whole whole; /* the record */
    struct published_work *published;
    uint64_t unwritten;
};

void chat_put(struct chat_work *w, struct chat_part part);

/* The parts as ids and mask. */
int chat_encode_parts(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e);

/* What the tokenizer's own template puts before and after a text; -1: nothing. */
struct chat_frame {
    int32_t bos, eos;
};

/* Sets `before` and `after`, and `framed` to NULL if it is of no use. */
struct chat_frame chat_find_frame(struct chat *c);

/* Finds out what the tokenizer does around the chat's special tokens; `special` is set. */
void chat_probe(struct chat *c);

/* Ids of a text by a work of its own. */
int chat_encode_once(const struct tokenizer *t, const char *text, struct tok_ids *ret,
                     struct err *e);

#endif
