/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_BUILD_STATE_H
#define PREP_BUILD_STATE_H

/*
 * Internal to prep/build, shared by build.c (the request, the pipeline), put.c (tokens into shards)
 * and keep.c (existing outputs, resuming, finishing). One thread at a time.
 */

#include "base/io/file.h"
#include "dataset/shard/write.h"
#include "prep/build/build.h"
#include "prep/build/journal.h"
#include "prep/input/source.h"

enum { BUILD_OPTIONS = 24 };

/* A dataset to be written. */
struct build_output {
    char *prefix;          /* PREFIX_KEY_document */
    size_t key, part;      /* part SIZE_MAX: the whole dataset */
    size_t piece;          /* number among the pieces of its key */
    struct shard_place at; /* while it is written; owned */
};

struct build {
    const struct build_request *q;
    struct source source;
    struct encode_plan plan;
    atomic_uint_least64_t under_way; /* of the plan */
    atomic_uint_least64_t filled;    /* bytes of the inputs read by the last fill */
    bool cr;                         /* lines of an input end in CR alone */
    int64_t eod;                     /* of the tokenizer or the framed stream; -1: none */
    const char *eod_piece;
    char *prefix; /* of the request, with the number of the share */
    char *bad_path;
    /*
     * The streams are written as documents arrive: the partitions of each key (every P-th
     * document), or one stream per key. All other outputs are copied from them at the end.
     */
    struct build_output *output;
    size_t noutputs, nstreams;
    size_t parts; /* streams of each key */
    size_t first; /* outputs from here on are committed: with --shard-size the streams are not */

    /* description of the work */
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
    int lock;     /* -1: the folder is not locked by us */
    bool marked;  /* there is a journal */
    bool keep;    /* build_close keeps the folder */
    bool running; /* the pipeline is running: inputs are being read */
    double marked_at;
    struct build_journal left; /* what the interrupted run left */

    /* while it runs */
    struct encoder **encoder;
    struct item *item;
    void **ring;
    struct shard_writer *writer; /* one per output, except pieces */
    size_t nwriters;
    struct outfile bad; /* path NULL: not opened yet */
    struct build_counts counts;
    size_t at;        /* input of the last item */
    uint64_t end;     /* its end there */
    uint64_t line;    /* records of that input before the next item */
    uint64_t records; /* of all inputs before the next item */
    uint64_t placed;  /* the same at the step that reserves places */
    uint64_t notes;
    bool stopped;   /* by a signal, between two items */
    struct err err; /* what stopped the line */
};

/* ---- put.c ---------------------------------------------------------------------------- */

/*
 * The pipeline's steps after work; `arg` is the build. Follow, store and drain may run at the same
 * time, and store on several threads. The error of drain is in b->err.
 */
bool build_follow(void *arg, void *item);
void build_store(void *arg, void *item);
int build_drain(void *arg, void *item);

/* Calls the request's progress. */
void build_tell(struct build *b);

/* ---- keep.c --------------------------------------------------------------------------- */

/* Looks at what exists: sets state, loads the journal. ERR_USAGE for outputs of other work. */
int build_look(struct build *b, struct err *e);

/* Opens the writers and restores the position of the journal. */
int build_begin(struct build *b, struct err *e);

/* Syncs everything so far, then writes the journal, if the interval has passed. */
int build_mark_in_time(struct build *b, struct err *e);

/* Completes and syncs all shards before the first one is renamed. */
int build_finish(struct build *b, struct err *e);

/* Finishes the renames of an interrupted run. *ret_done false: its outputs do not exist. */
int build_give_names(struct build *b, bool *ret_done, struct err *e);

/* Sets an output's temporary place. */
void build_place(struct build *b, struct build_output *o);

/* ---- split.c: --shard-size ------------------------------------------------------------ */

/* Sets the numbers of pieces; n[k] for key k. */
void build_set_pieces(struct build *b, const uint64_t *n);
void build_count_pieces(const struct build *b, uint64_t *ret); /* of each key */

/* The same from the manifests of the first pieces; one if there is none. */
void build_find_pieces(struct build *b);

/* Splits each stream into pieces and syncs them. */
int build_split(struct build *b, struct manifest *m, struct err *e);

/* Removes pieces of an earlier run after the last one. */
int build_remove_stale(const struct build *b, struct err *e);

/* Checks that existing outputs come from these inputs: reads all of them. */
int build_compare(struct build *b, struct err *e);

/* After failure `code`: keeps the work for the next run, or removes it. */
void build_leave(struct build *b, int code);
void build_close_keep(struct build *b);

#endif
