/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_TOKEN_H
#define TRAIN_LAUNCH_TOKEN_H

/*
 * The job token: what the processes of a job know and a stranger does not. It is given by its user
 * (a file, or WEFT_JOB_TOKEN), made by the program that starts all of them, or derived from what
 * the launcher calls the job; then it keeps jobs apart, but not a person who can guess it. The
 * token itself is never sent (greet.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/hash.h"
#include "train/launch/place.h"

enum token_kind { TOKEN_NONE, TOKEN_GIVEN, TOKEN_MADE, TOKEN_DERIVED };

enum { TOKEN_LEAST = 16, TOKEN_MOST = 1024, TOKEN_JOB = 16, TOKEN_TEXT = 65 };

/* The variable by which a launcher hands a token that it has made to the processes it starts. */
#define TOKEN_MADE_VARIABLE "WEFT_MADE_TOKEN"

struct job_token {
    enum token_kind kind;
    char source[320];       /* "the file job.token", "Slurm's job id 7.0"; "" for TOKEN_NONE */
    uint8_t key[SHA_BYTES]; /* secret, of the proofs */
    uint8_t job[TOKEN_JOB]; /* public: tells jobs apart */
};

struct token_wish {
    const char *file; /* --job-token-file; NULL: not given */
    bool none;        /* --no-job-token: goes on where there is none */
};

/*
 * The token of a job of several processes. Of several sources the first counts: the file,
 * WEFT_JOB_TOKEN, the one made by this program's launcher, what the launcher `p->by` calls the job.
 * ERR_USAGE: there is none (with the line that sets one as the hint), or it is too short or too
 * long, or others may read the file. ERR_IO: the file cannot be read.
 */
int token_find(struct job_token *ret, const struct launch_place *p, char *const *environment,
               const struct token_wish *wish, struct err *e);

/* Whether the user has given one, of which token_find has still to say whether it is good. */
bool token_is_given(char *const *environment, const struct token_wish *wish);

/* A random one, 64 hexadecimal digits. */
void token_make(char ret[TOKEN_TEXT]);

/* As TOKEN_GIVEN. */
void token_of_text(struct job_token *ret, const char *text);

#endif
