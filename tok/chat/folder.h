/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_FOLDER_H
#define TOK_CHAT_FOLDER_H

/*
 * The chat template of a tokenizer's folder, and the tokens that it may name, as transformers 5.23
 * finds them:
 *
 *     chat_template.jinja, with others in additional_chat_templates/NAME.jinja;
 *     else chat_template of tokenizer_config.json: a string, or a list of names and templates;
 *     else chat_template of chat_template.json, likewise
 *
 * Of several, `default` is taken, and `tool_use` for records with tools. The tokens, bos_token and
 * the like, are those of tokenizer_config.json and, where it lacks them, special_tokens_map.json.
 */

#include "base/core/err.h"
#include "base/format/json.h"

enum { FOLDER_TOKENS = 64, FOLDER_TEMPLATE_MAX = 1 << 20 };

struct folder_token {
    const char *name, *text; /* "eos_token", "</s>" */
    size_t n;
};

struct chat_folder {
    char *name, *tools_name; /* of the template, for messages: a path, with a key behind it */
    char *text, *tools;      /* templates; tools NULL: the same */
    size_t n, ntools;
    struct folder_token token[FOLDER_TOKENS];
    size_t ntokens;
    struct json_doc *config, *map, *other;
};

/*
 * `beside`: a file of the folder. `file`: the template is this file instead, with the tokens of the
 * folder; NULL: the folder's. ERR_USAGE if there is none, ERR_DATA for a malformed file.
 */
int chat_folder_open(const char *beside, const char *file, struct chat_folder *ret, struct err *e);
void chat_folder_close(struct chat_folder *f); /* also of a zeroed struct */

/* Whether a token that tokenizer_config.json adds is marked as special; in order, by index. NULL at
 * the end. */
const char *chat_folder_special(const struct chat_folder *f, size_t index);

#endif
