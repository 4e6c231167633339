// SPDX-License-Identifier: Apache-2.0
/*
 * Tells stories: expands the grammar of grammar.h with random numbers.
 *
 * A story is a pure function of (seed, number). Only integers decide, so every machine tells the
 * same. A teller belongs to one thread. A fault in the tables is our bug and aborts with its name.
 */
#ifndef SAMPLES_STORIES_TELL_H
#define SAMPLES_STORIES_TELL_H

#include <stddef.h>
#include <stdint.h>

struct teller;

// NULL when memory is short.
struct teller *teller_create(uint64_t seed);
void teller_destroy(struct teller *teller);

/*
 * Tells story number. *ret_text (a string of *ret_len bytes: ASCII, newlines between paragraphs)
 * stays the teller's and holds until the next call. Returns 0, or -1 when memory is short.
 */
int teller_tell(struct teller *teller, uint64_t number, const char **ret_text, size_t *ret_len);

#endif
