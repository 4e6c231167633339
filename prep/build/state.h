/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_STATE_H
#define PREP_BUILD_STATE_H

/*
 * The inside of prep/build/build.h, shared by build.c (what was asked, the line), put.c (how the
 * line puts it into the shards) and keep.c (what is there already, what an interrupted run
 * goes on from, the end). One thread at a time.
 */

#include "base/io/file.h"
#include "dataset/shard/write.h"
#include "prep/build/build.h"
#include "prep/build/journal.h"
#include "prep/input/source.h"

enum { BUILD_OPTIONS = 24 };

/* A data set to be written. */
struct build_output {
    char *prefix;          /* PREFIX_KEY_document */
    size_t key, part;      /* part SIZE_MAX: the whole */
    size_t piece;          /* of those of its key */
    struct shard_place at; /* while it is written; owned */
};

struct build {
    const struct build_request *q;
    struct source source;
    struct encode_plan plan;
    int64_t eod; /* what the tokenizer or the framed stream says; -1: none */
    const char *eod_piece;
    char *prefix; /* of the request, and the number of the share */
    char *bad_path;
    /*
     * The streams are written as the documents come: the partitions of each key one behind the
     * other (every P-th document each), or the whole of each key. All others are copied from them
     * at the end.
     */
    struct build_output *output;
    size_t noutputs, nstreams;
    size_t parts; /* streams of each key */
    size_t first; /* the outputs from here on get names: with --shard-size the streams do not */

    /* what the work is */
    struct manifest_input *input;
    struct manifest_option option[BUILD_OPTIONS];
    int64_t *mtime;
    char *keys;         /* as one text */
    char limits[4][24]; /* of the filter */
    char partitions[24], shard[32], shard_size[24];
    bool pipe; /* an input that cannot be read again */

    /* keep.c */
    enum build_state state;
    char *folder; /* of the work: DIR/.NAME.build */
    int lock;     /* -1: the folder is not ours */
    bool marked;  /* there is a journal */
    bool keep;    /* the folder stays when the build is closed */
    bool running; /* the line is: inputs are being read */
    double marked_at;
    struct build_journal left; /* what the interrupted run left */

    /* while it runs */
    struct encoder **encoder;
    struct item *item;
    void **ring;
    struct shard_writer *writer; /* one for each output but pieces */
    size_t nwriters;
    struct outfile bad; /* path NULL: not opened yet */
    struct build_counts counts;
    size_t at;        /* input of the last item */
    uint64_t end;     /* its end there */
    uint64_t line;    /* records of that input before the next item */
    uint64_t records; /* of all inputs before the next item */
    uint64_t placed;  /* the same where places are given */
    uint64_t notes;
    bool stopped;   /* by a signal, between two items */
    struct err err; /* what stopped the line */
};

/* ---- put.c ---------------------------------------------------------------------------- */

/*
 * The pipeline's steps behind work: `arg` is the build. Of follow, store and drain one each may run
 * at a time, and several of store. The sentence of drain is in b->err.
 */
bool build_follow(void *arg, void *item);
void build_store(void *arg, void *item);
int build_drain(void *arg, void *item);

/* ---- keep.c --------------------------------------------------------------------------- */

/* What there is: sets state, and loads the journal. ERR_USAGE for outputs of other work. */
int build_look(struct build *b, struct err *e);

/* The manifest of the work as far as it is known; `keys`: with the list of keys among its options.
 */
struct manifest build_describe(struct build *b, bool keys);

/* Opens the writers, and puts all to where the journal says. */
int build_begin(struct build *b, struct err *e);

/* All so far is on the disk, and a journal says so. */
int build_mark(struct build *b, bool finished, struct err *e);

/* If it is time. */
int build_mark_in_time(struct build *b, struct err *e);

/* All shards are whole on the disk before the first gets its name. */
int build_finish(struct build *b, struct err *e);

/* Gives the names of a run that was interrupted there. *ret_done false: the outputs are not there.
 */
int build_give_names(struct build *b, bool *ret_done, struct err *e);

/* What the journal keeps of an output's place while it is written. */
void build_place(struct build *b, struct build_output *o);
int build_give_name(const struct build_output *o, struct err *e);

/* ---- split.c: --shard-size ------------------------------------------------------------ */

/* There are n pieces of each key. */
void build_set_pieces(struct build *b, const uint64_t *n);
void build_count_pieces(const struct build *b, uint64_t *ret); /* of each key */

/* As many as the manifest of the first says; one if there is none. */
void build_find_pieces(struct build *b);

/* Cuts each stream into pieces, which are whole on the disk then. */
int build_split(struct build *b, struct manifest *m, struct err *e);

/* Removes what an earlier run left behind the last piece. */
int build_remove_stale(const struct build *b, struct err *e);

/* Whether the inputs are those of the outputs that are there: reads all of them. */
int build_compare(struct build *b, struct err *e);

/* `code` stopped it: what was done is kept for the next run, or removed. */
void build_leave(struct build *b, int code);
void build_close_keep(struct build *b);

#endif
