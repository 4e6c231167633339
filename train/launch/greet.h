/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_GREET_H
#define TRAIN_LAUNCH_GREET_H

/*
 * How two processes of a job know each other on a new connection: a greeting, in which each proves
 * to the other by HMAC-SHA-256 that it has the job token, which itself is not sent. Plain bytes in
 * and out, no sockets. Integers are little-endian.
 *
 *     hello   of the one that connects   "weftmeet", u32 version, u32 world, u32 its rank, u32 the
 *                                        rank it calls, u32 the port where it listens, u32 0, the
 *                                        job's id (16 bytes), random bytes (32)
 *     answer  of the one that accepts    "weftmeet", u32 version, u32 verdict; if that is
 *                                        GREET_FINE random bytes (32), and its proof (32): the HMAC
 *                                        of "weft accepts", hello, and the answer up to here
 *     proof   of the one that connects   32 bytes: the HMAC of "weft connects", hello, answer
 *
 * Each proof covers the other's random bytes, both ranks, the world and the side, so one that was
 * heard elsewhere, or comes back to its sender, is none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/launch/token.h"

enum { GREET_VERSION = 2, GREET_HELLO = 80, GREET_ANSWER = 80, GREET_PROOF = SHA_BYTES };

enum greet_verdict {
    GREET_FINE,
    GREET_GARBAGE,       /* it does not speak this protocol */
    GREET_OTHER_VERSION, /* of the protocol */
    GREET_OTHER_JOB,     /* the job's id is another */
    GREET_OTHER_RANK,    /* it calls a rank that is not here */
    GREET_NO_TOKEN,      /* its proof is wrong */
    GREET_VERDICTS
};

struct greet_self {
    int rank, world, port;
    const struct job_token *token;
};

struct greet {
    const struct greet_self *self;
    bool accepts;
    bool over; /* nothing more is expected; what there is to send is still to be sent */
    enum greet_verdict verdict;
    uint32_t version, world, rank, port; /* the other's; proven if it is over and GREET_FINE */
    uint8_t hello[GREET_HELLO], answer[GREET_ANSWER], proof[GREET_PROOF];
    uint8_t *in;
    const uint8_t *out;
    size_t in_bytes, got, out_bytes;
};

/* `self` stays the caller's. */
void greet_connect(struct greet *g, const struct greet_self *self, int to);
void greet_accept(struct greet *g, const struct greet_self *self);

/* Where received bytes go, and how many there may be; 0: none are expected. */
size_t greet_room(const struct greet *g, uint8_t **ret);
/* So many have been put there. */
void greet_take(struct greet *g, size_t n);

/* What is to be sent next; 0: nothing. */
size_t greet_output(const struct greet *g, const uint8_t **ret);
void greet_sent(struct greet *g, size_t n);

/* What is wrong with the other side, as a part of a sentence: "it is of another job". What it has
 * sent is made plain. */
void greet_reason(const struct greet *g, char *ret, size_t size);

#endif
