/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_SFT_H
#define PREP_SFT_SFT_H

/*
 * `prep sft`: records for supervised training in, a packed set out (dataset/packed/packed.h). The
 * bytes depend on the inputs, the options and the tokenizer, not on the number of workers. No file
 * has its final name before all are complete; an interrupted run starts over.
 *
 * Memory: a fixed number of blocks for any input size, and some 40 bytes for each of SFT_WINDOW
 * examples; tokens go into an unnamed file beside the output until their window is full and is
 * packed by best fit.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "prep/encode/encoder.h"
#include "prep/sft/encode.h"
#include "tok/tokenizer/options.h"

enum { SFT_WINDOW = 1 << 19, SFT_NOTES = 10 };

struct sft_report {
    bool there; /* a set from the same inputs, options and tokenizer: nothing was done */
    uint64_t records, examples, sequences, tokens;
    uint64_t bad;  /* records skipped or quarantined */
    uint64_t read; /* bytes of the inputs */
    struct sft_counts counts;
    char dated[16]; /* the date that the template writes, "": none */
};

struct sft_request {
    const char *const *input; /* names or patterns, "-" for standard input */
    size_t ninputs;
    const char *prefix;                    /* NULL: nothing is built, with `show` */
    const char *template;                  /* as chat_open takes it; "text": records have a text */
    struct chat_rules rules;               /* of conversations */
    const struct tokenizer *tok;           /* for texts, as the user opened it */
    const struct tokenizer *bare, *framed; /* for chat_open; bare for marks, too */
    const char *text_key;
    const char *answer, *question; /* strings that begin them, or NULL */
    bool learn_all, append_eod, overwrite;
    bool add_prompt; /* conversations end where the assistant is to speak */
    enum sft_overlong overlong;
    bool pack; /* else each example is a sequence */
    uint32_t seq_length;
    const char *specials;            /* as the user spells it, for the manifest */
    const struct tok_choice *choice; /* of the tokenizer, likewise (tok_flags_choices) */
    size_t nchoices;
    enum on_bad on_bad;
    int workers;   /* >= 1 */
    size_t window; /* examples that are packed together; 0: SFT_WINDOW */

    const volatile sig_atomic_t *stop; /* not 0: stop soon, ERR_FAIL */
    /* On the caller's thread, several times a second; `total`: bytes of all inputs, 0 if unknown.
     */
    void (*progress)(void *arg, const struct sft_report *r, uint64_t total);
    /* A sentence about a skipped record; only the first SFT_NOTES. */
    void (*note)(void *arg, const char *sentence);
    /* The first `show` examples, in the order of the inputs, each id with a byte that is 1 if it is
     * learnt. Those of a set that is there already are made once more. */
    uint64_t show;
    int (*shown)(void *arg, uint64_t number, const int32_t *id, const unsigned char *learn,
                 size_t n, struct err *e);
    void *arg;
};

/*
 * ERR_USAGE for options that exclude each other, and for an existing set from other inputs, options
 * or tokenizer; ERR_DATA for a bad record (file, line, reason).
 */
int sft_run(const struct sft_request *q, struct sft_report *ret, struct err *e);

/* The share of padding in sequences of seq_length. */
double sft_padding(const struct sft_report *r, uint32_t seq_length);

#endif
