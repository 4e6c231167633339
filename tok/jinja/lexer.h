/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_LEXER_H
#define TOK_JINJA_LEXER_H

/* The text of a template as tokens, with white space removed where jinja2 removes it. */

#include "base/core/arena.h"
#include "base/core/err.h"
#include "tok/jinja/context.h"

enum token_kind {
    T_DATA,
    T_PRINT_BEGIN,
    T_PRINT_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_REAL,
    T_OPERATOR,
    T_END
};

/* Operators of two characters, beside those that are their character. */
enum { OP_EQ = 256, OP_NE, OP_LE, OP_GE, OP_FLOOR, OP_POW };

struct token {
    enum token_kind kind;
    int op;
    uint32_t at;      /* byte of the template */
    const char *text; /* of data, names and strings (without quotes and escapes) */
    size_t n;
    int64_t integer;
    double real;
};

struct tokens {
    struct token *token; /* ends with T_END; freed by free() */
    size_t n, cap;
};

/* Strings with escapes go to the template's arena. */
int jinja_lex(struct jinja *t, struct tokens *ret, struct err *e);

/* A token in words for a message, in `ret`. */
const char *token_words(const struct token *t, char ret[64]);

/* ERR_DATA at a byte of the template. */
int jinja_error(const struct jinja *t, uint32_t at, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
