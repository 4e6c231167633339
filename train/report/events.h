/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_EVENTS_H
#define TRAIN_REPORT_EVENTS_H

/*
 * TensorBoard's event files. A record is a length (u64), the masked CRC-32C of its eight bytes, the
 * payload, and the masked CRC-32C of the payload, all little-endian; a payload is a protobuf
 * message Event (tensorflow/core/util/event.proto, summary.proto):
 *
 *     1 wall_time double   2 step varint   3 file_version string: "brain.Event:2", in the first one
 *     5 summary { 1 value { 1 tag string, 2 simple_value float } }
 *
 * A run writes one file each time it starts. TensorBoard shows all files of a folder as one run, so
 * what a run that died wrote beyond its checkpoint is cut from the file that it was in
 * (events_cut). The files of a run are known by a list in its --save.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct events {
    FILE *file; /* NULL: closed */
    char *path;
    struct buf pending; /* whole records */
};

/* A new file in `dir`, which is made if it is missing, with its first record; `now`: seconds since
 * 1970. ERR_IO. */
int events_open(struct events *ret, const char *dir, double now, struct err *e);

/* A point of a curve, for events_flush. */
void events_scalar(struct events *ev, double wall_time, int64_t step, const char *tag,
                   double value);

/* A text, for its "Text" page, in Markdown. */
void events_text(struct events *ev, double wall_time, int64_t step, const char *tag,
                 const char *text);

/* Hands all points to the system; with `sync` they are on disk. */
int events_flush(struct events *ev, bool sync, struct err *e);
void events_close(struct events *ev); /* zeroed or closed: nothing */

/* Steps that stay: of tags that end in " vs samples", ",x=samples", " vs tokens" and ",x=tokens"
 * the number of these, else of iterations. */
struct events_limit {
    int64_t iteration, samples, tokens;
};

/* Cuts the points of later steps from a file, and a record at its end that is not whole. ERR_DATA:
 * it is not an event file. */
int events_cut(const char *path, const struct events_limit *most, struct err *e);

/* CRC-32C (Castagnoli); 0xE3069283 of "123456789". */
uint32_t events_crc32c(const void *p, size_t n);

#endif
