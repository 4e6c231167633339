/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLES_STORIES_TELL_H
#define SAMPLES_STORIES_TELL_H

/*
 * Tells stories: expands the rules of the tables with random numbers.
 *
 * A story is a pure function of (seed, number). Only integers decide, so every machine tells the
 * same. A teller belongs to one thread. A mistake in the tables is our bug and aborts with its
 * place.
 */

#include <stddef.h>
#include <stdint.h>

struct teller;

struct teller *teller_create(uint64_t seed);
void teller_destroy(struct teller *t);

/*
 * Story `number`: a string of *ret_len bytes, ASCII, with newlines between paragraphs. It stays the
 * teller's and holds until the next call.
 */
const char *teller_tell(struct teller *t, uint64_t number, size_t *ret_len);

#endif
