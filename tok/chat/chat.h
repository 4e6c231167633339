/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_CHAT_H
#define TOK_CHAT_CHAT_H

/*
 * Conversations as ids: templates by name, and which of the ids are to be learnt. Templates are
 * built in; none is ever read from a file and run.
 *
 *     chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
 *     llama3    <|begin_of_text|>, then <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>;
 *               texts lose the white space at their ends
 *     alpaca    a preamble, ### Instruction:, ### Input:, ### Response:, and the end of text
 *     vicuna    a preamble, USER: and ASSISTANT: of v1.1, and the end of text
 *     guanaco   ### Human: ...### Assistant: ...
 *     llm-jp    ### (instruction) ... ### (question) ... ### (answer) ... in Japanese
 *
 * A template's special tokens are ids, which the vocabulary must have; a message that spells one of
 * them is text. What stands between two special tokens is encoded as one text, so that a token may
 * reach across the border of a message: it counts as learnt if any of its bytes do. So the ids are
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
    CHAT_INPUT, /* what the user's message before is about; joined to it where it has no place */
    CHAT_ASSISTANT,
    CHAT_TOOL,
    CHAT_ROLES
};

const char *chat_role_name(enum chat_role r);

struct chat_message {
    enum chat_role role;
    const char *text; /* UTF-8, n bytes; the caller's */
    size_t n;
};

struct chat;

/*
 * `bare`: opened with no_template and without TOK_SPECIALS_PARSE. `framed`: the same file with its
 * own template and with TOK_SPECIALS_PARSE. It tells alpaca, vicuna, guanaco and llm-jp whether a
 * text begins with bos, guanaco and llm-jp whether it ends with eos, and has the ids of text behind
 * a special token for vocabularies to which that is another thing than a text by itself; NULL: none
 * of that. Both must outlive the chat.
 * ERR_USAGE for a name that is none, or special tokens that the vocabulary lacks.
 */
int chat_open(const char *name, const struct tokenizer *bare, const struct tokenizer *framed,
              struct chat **ret, struct err *e);
void chat_close(struct chat *c);

struct chat_work;
struct chat_work *chat_work_create(const struct chat *c);
void chat_work_destroy(struct chat_work *w);
uint64_t chat_work_specials(const struct chat_work *w); /* strings of special tokens in messages */

/*
 * Appends the ids of n messages, and to `mask` a byte for each: 1 for what an assistant says and
 * what ends its turn. With `open` the beginning of an assistant's turn stands at the end, to be
 * continued. ERR_DATA: a role without a place, a message that the tokenizer refuses or that spells
 * a token which it always matches; ids and mask then have some more or none.
 */
int chat_encode(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
                bool open, struct tok_ids *ids, struct buf *mask, struct err *e);

/*
 * How a model ends a turn of the assistant that chat_encode opened: by the special token `id` (-1:
 * by none), or by a string of the template (n 0: by none), which is that of the next question where
 * nothing closes an answer. The caller's tokenizers may have an end of text besides.
 */
struct chat_stop {
    int64_t id;
    const char *text;
    size_t n;
};

struct chat_stop chat_stop(const struct chat *c);

/* The bytes of an answer so far that belong to it whatever follows: up to the string that ends it,
 * or up to what may be the beginning of one. *ret_ended: that string is there. */
size_t chat_answer(const struct chat_stop *s, const char *text, size_t n, bool *ret_ended);

/* What chat_encode makes ids of, as text, special tokens spelt out. */
int chat_text(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
              bool open, struct buf *ret, struct err *e);

#endif
