/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_OPEN_H
#define TOK_PRETOK_SCAN_OPEN_H

/*
 * The scanners of tok/pretok/scan.h over a text of which more will come: how far the pre-tokens are
 * sure, and a short text that stands for what a pre-token of any length begins with.
 */

#include "base/core/buf.h"
#include "tok/pretok/scan.h"

/* Scratch of one thread; zeroed before the first use. */
struct scan_open {
    struct buf text;
    uint32_t *other;
    size_t room;
};

void scan_open_finish(struct scan_open *w);

/*
 * As scan_starts. Returns a position that begins a character, such that the starts below it are
 * those of any text that begins with this one; whether a pre-token begins there is open.
 */
size_t scan_sure(enum scan_family f, struct scan_open *w, const char *text, size_t n, uint32_t *at,
                 size_t *ret_count);

/*
 * Appends a shorter text that a pre-token which begins with text[0 .. n), a sure part of it, may
 * begin with instead: what follows is split alike. Its end, of at least 64 bytes or all, is the
 * text's own.
 */
void scan_shorten(const char *text, size_t n, struct buf *out);

#endif
