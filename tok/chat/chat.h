/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_CHAT_H
#define TOK_CHAT_CHAT_H

/*
 * Conversations as ids, by a template, and which of the ids are to be learnt. Templates are built
 * in (templates.h) or published with a model, in Jinja, which tok/jinja renders.
 *
 * A template's special tokens are ids, which the vocabulary must have; a message that spells one is
 * text. A published template's are those that its own text spells, or bos_token and the like, or a
 * role between the template's text. All text between two special tokens is encoded together, so a
 * token may span the border of a message: it is learnt if any of its bytes are. So the ids are
 * those that Hugging Face's tokenizers give for the whole text of a conversation in which no
 * message spells a special token.
 *
 * A `struct chat` is immutable and shared by threads; a `struct chat_work` belongs to one.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"

enum chat_role {
    CHAT_SYSTEM,
    CHAT_USER,
    CHAT_INPUT, /* what the user's message before it refers to; appended to that if it has no place
                 */
    CHAT_ASSISTANT,
    CHAT_TOOL,
    CHAT_ROLES
};

const char *chat_role_name(enum chat_role r);

struct chat_message {
    enum chat_role role;
    const char *text; /* UTF-8, n bytes; owned by the caller */
    size_t n;
    bool unlearnt; /* an assistant's that is not to be learnt */
};

struct chat;

enum chat_learn { CHAT_LEARN_ANSWERS, CHAT_LEARN_LAST };

/* What is learnt and how texts are encoded; zeroed: answers, special tokens of messages are text.
 */
struct chat_rules {
    enum chat_learn learn;
    bool learn_think; /* also an empty thought that a published template writes itself */
    bool parse;       /* the whole text with its special tokens, as transformers encodes it */
};

/*
 * `name`: of templates.h; "auto", the template of the folder of `bare`; or a file with a template.
 * `bare`: opened with no_template and without TOK_SPECIALS_PARSE. `framed`: the same file with its
 * own template and with TOK_SPECIALS_PARSE, or NULL. It decides, for
 * templates that leave it to the tokenizer, whether a text begins with bos and ends with eos, and
 * encodes text after a special token for vocabularies where that differs from text by itself. Both
 * must outlive the chat. ERR_USAGE for an unknown name, a folder without a template, or special
 * tokens that the vocabulary lacks; ERR_DATA for a malformed template.
 */
int chat_open(const char *name, const struct tokenizer *bare, const struct tokenizer *framed,
              struct chat **ret, struct err *e);
void chat_close(struct chat *c);

/* To be called before the first work is created. ERR_USAGE: the tokenizer cannot encode whole
 * texts so that it is known which token is whose. */
int chat_set_rules(struct chat *c, struct chat_rules r, struct err *e);

/* SHA-256 of a published template, NULL of a built-in one. */
const char *chat_digest(const struct chat *c);
/* The date that a published template may write, that of chat_open: "2026-11-24". NULL: it asks for
 * none. */
const char *chat_date(const struct chat *c);

struct chat_work;
struct chat_work *chat_work_create(const struct chat *c);
void chat_work_destroy(struct chat_work *w);
uint64_t chat_work_specials(const struct chat_work *w); /* special strings in messages */
/* Messages with something to say of which a published template wrote nothing. */
uint64_t chat_work_unwritten(const struct chat_work *w);

/*
 * Appends the ids of n messages, and to `mask` a byte for each: 1 for the assistant's text and what
 * ends its turn. With `open`, ends with the beginning of an assistant's turn, to be continued.
 * ERR_DATA: a role without a place, a message that the tokenizer refuses or that spells a token
 * which it always matches; ids and mask may then have grown.
 */
int chat_encode(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
                bool open, struct tok_ids *ids, struct buf *mask, struct err *e);

/* The same of a JSON record (read.h; whole.h for published templates), n bytes. */
int chat_encode_record(struct chat_work *w, const char *line, size_t n, bool open,
                       struct tok_ids *ids, struct buf *mask, struct err *e);

/*
 * How a model ends an assistant's turn that chat_encode opened: by the special token `id` (-1:
 * none), or by a string of the template (n 0: none), which is that of the next question if nothing
 * ends an answer. The caller's tokenizers may have an end of text besides.
 */
struct chat_stop {
    int64_t id;
    const char *text;
    size_t n;
};

struct chat_stop chat_stop(const struct chat *c);

/* The bytes of an answer so far that belong to it whatever follows: up to the string that ends it,
 * or to what may be its beginning. *ret_ended: the string was found. */
size_t chat_answer(const struct chat_stop *s, const char *text, size_t n, bool *ret_ended);

/* The text of what was encoded last, with special tokens spelled out. */
void chat_last_text(const struct chat_work *w, struct buf *ret);

/* The text that chat_encode encodes, with special tokens spelled out. */
int chat_text(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
              bool open, struct buf *ret, struct err *e);

#endif
