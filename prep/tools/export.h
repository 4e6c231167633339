/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_EXPORT_H
#define PREP_TOOLS_EXPORT_H

/*
 * `prep export`: a shard back to JSONL, one line per document: its text, decoded, or its ids. The
 * output does not depend on the number of threads. Memory holds the lines in progress, so one long
 * document counts in full.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/io/zblock.h"
#include "tok/tokenizer/tokenizer.h"

struct export_request {
    const char *prefix;
    const struct tokenizer *tok; /* decodes; NULL: write ids */
    bool tokenizer_differs;      /* from the one of the manifest: a warning */
    const char *key;             /* of the text or the ids in each line */
    bool keep_eod;               /* else a document's final end of document is dropped */
    enum zblock kind;
    int workers; /* >= 1 */
    /* Called in order. Anything but 0 stops. */
    int (*write)(void *to, const void *p, size_t n, struct err *e);
    void *to;
    const volatile sig_atomic_t *stop;                          /* may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* documents; may be NULL */
    void *arg;
};

struct export_report {
    uint64_t documents, tokens;
    uint64_t eods; /* ends of document dropped */
    int64_t eod;   /* -1: unknown, none dropped */
};

/*
 * ERR_USAGE for another tokenizer than the manifest's, ERR_DATA for an inconsistent shard or an id
 * that the tokenizer does not have.
 */
int export_run(const struct export_request *q, struct export_report *ret, struct err *e);

#endif
