/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_JINJA_H
#define TOK_JINJA_JINJA_H

/*
 * Chat templates: Jinja as transformers 5.23 renders it, which is jinja2 3.1.6's
 * ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls and the tag
 * `generation`. README.md lists what is left out; that is refused, never rendered otherwise.
 *
 * A template is data: it sees the variables it is given, nothing else, and its steps, depth,
 * memory and output are limited. A `struct jinja` is immutable and shared by threads; a
 * `struct jinja_context` belongs to one and keeps its memory from one text to the next.
 *
 * Errors are ERR_DATA with the name, line and column of the template. Columns count characters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/format/json.h"

enum {
    JINJA_MAX_SOURCE = 1 << 20,   /* bytes of a template */
    JINJA_MAX_NEST = 100,         /* brackets and blocks inside one another, in a template */
    JINJA_MAX_HEIGHT = 400,       /* operators that one expression applies one after another */
    JINJA_MAX_DEPTH = 1000,       /* blocks, calls and values inside one another, in a rendering */
    JINJA_MAX_STEPS = 20000000,   /* nodes evaluated, items visited, runs of 64 bytes copied */
    JINJA_MAX_MEMORY = 256 << 20, /* bytes of values, of one rendering */
    JINJA_MAX_OUTPUT = 64 << 20,  /* bytes of output */
    JINJA_MAX_RANGE = 100000      /* numbers of a range(), as in jinja2's sandbox */
};

struct jinja;

/* `name` is for messages; it and the text, which is UTF-8, are copied. */
int jinja_parse(const char *name, const char *text, size_t n, struct jinja **ret, struct err *e);
void jinja_close(struct jinja *t);

/* Does the template mark with {% generation %} what a model is to say? */
bool jinja_has_generation(const struct jinja *t);

/* Does the template name this variable anywhere? */
bool jinja_names(const struct jinja *t, const char *name);

/* A date in the caller's time zone: month and day count from 1, hour from 0. */
struct jinja_date {
    int year, month, day, hour, minute, second;
};

struct jinja_context;
struct jinja_context *jinja_context_create(void);
void jinja_context_destroy(struct jinja_context *c);

/*
 * The variables of the next rendering. Names and values are the caller's and must live until that
 * is done with; a name that is set again has its new value. Integers of more than 64 bits, which
 * base/format/json.h has as reals, are refused where they are printed.
 */
void jinja_forget(struct jinja_context *c); /* all variables */
void jinja_set_bool(struct jinja_context *c, const char *name, bool value);
void jinja_set_json(struct jinja_context *c, const char *name, const struct json *value);
/* The same for the list whose items, objects, are the messages of a conversation. A role of ASCII
 * letters, digits, '-' and '_' counts as the template's own text. */
void jinja_set_messages(struct jinja_context *c, const char *name, const struct json *value);
/* Text that counts as the template's own wherever it is written, like bos_token. */
void jinja_set_literal(struct jinja_context *c, const char *name, const char *text, size_t n);
/* What strftime_now() tells; without it a template that asks is refused. Not forgotten. */
void jinja_set_date(struct jinja_context *c, struct jinja_date date);

/*
 * Where bytes of the output come from. Data: what a string or a number of a variable became,
 * through whatever filters; quotes and punctuation of its JSON or repr count as data too. All else
 * is the template's. `message` is the index of the message that data came from, -1: of none; for
 * the template's bytes, the message that the innermost `for` over messages was at, macros called
 * from it included, when they were made.
 */
struct jinja_run {
    size_t n; /* bytes, at least 1; neighbours differ */
    int32_t message;
    bool is_data;
    bool is_generated; /* a {% generation %} block wrote it */
};

struct jinja_output {
    const char *text;
    size_t n;
    const struct jinja_run *run;
    size_t nruns;
};

/* The output belongs to the context and is valid until its next rendering. */
int jinja_render(const struct jinja *t, struct jinja_context *c, struct jinja_output *ret,
                 struct err *e);

#endif
