/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_CKPT_H
#define TRAIN_CKPT_CKPT_H

/*
 * Checkpoints: folders SAVE/iter_0000100 with safetensors files of boxes of global tensors, further
 * files, and manifest.json, which names them all with sizes and hashes (FORMAT.md). A folder
 * appears under its name whole, by one rename, after every byte of it is on disk. The scan of the
 * folder decides what is there; latest_checkpointed_iteration.txt is only a hint for people and
 * scripts.
 *
 * Everything is in host memory. One thread per writer and per reader at a time; any number of
 * threads may call ckpt_read_box on one reader.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "train/tensor/box.h"
#include "train/tensor/fingerprint.h"

/*
 * What of a tensor is stored is named by a group: its values ("param"), or what an optimizer keeps
 * beside them. A name has 1 to CKPT_GROUP_MAX bytes of lower-case letters, digits and '_'. Any
 * group may be written and read; these are the ones that weft trains with.
 */
#define CKPT_PARAM "param"
#define CKPT_EXP_AVG "exp_avg"          /* first moments of Adam */
#define CKPT_EXP_AVG_SQ "exp_avg_sq"    /* second moments */
#define CKPT_MOMENTUM "momentum_buffer" /* of momentum, as SGD's */
#define CKPT_GSNR "gsnr"                /* a number for each block of tensors */
enum { CKPT_GROUP_MAX = 64 };

struct ckpt_pair {
    const char *key, *value;
};

/* What a reader needs besides tensors. Texts may be NULL (unknown) unless noted. */
struct ckpt_meta {
    int64_t iteration;
    int64_t consumed_samples;        /* the data cursor */
    const char *model;               /* the model as a JSON object (spec_to_json); never NULL */
    const char *tokenizer_type;      /* "SentencePieceTokenizer" */
    const char *tokenizer_digest;    /* SHA-256 of its file */
    const char *tokenizer_meaning;   /* what it does (tok/core/types.h) */
    int64_t vocab_size;              /* of the tokenizer; 0: unknown */
    int64_t eod;                     /* end-of-document id; -1: none */
    const char *data_digest;         /* of the data manifest */
    const struct ckpt_pair *kernels; /* which kernels and libraries ran, with versions */
    size_t nkernels;
    const struct ckpt_pair *state; /* further counters of the engine, by name */
    size_t nstate;
    const char *weft; /* version of the writer; set by reading, not looked at by writing */
};

/* ---- writing ------------------------------------------------------------------------------ */

struct ckpt_writer;

/*
 * A new checkpoint of `dir` (created if missing), under a temporary name until ckpt_commit.
 * Removes what killed writers left there.
 */
int ckpt_writer_open(const char *dir, int64_t iteration, struct ckpt_writer **ret, struct err *e);

/*
 * The same for a checkpoint whose making may be interrupted and continued by another process: takes
 * over the temporary folder of a dead writer that has the mark (base/io/file.h), in which its
 * shards are begun again over the bytes that are there. The commit removes the mark's file.
 */
int ckpt_writer_resume(const char *dir, int64_t iteration, const struct outdir_mark *mark,
                       enum outdir_left *ret_left, struct ckpt_writer **ret, struct err *e);

/* ckpt_writer_close leaves the folder of one that did not commit for ckpt_writer_resume. */
void ckpt_writer_keep(struct ckpt_writer *w);

/* Where the shards of all ranks write (shard.h). */
const char *ckpt_writer_folder(const struct ckpt_writer *w);

/*
 * Takes the fragment that a rank's ckpt_shard_end gave, in any order of ranks. ERR_DATA for bytes
 * that are none, for two shards of one rank and for boxes that overlap another rank's.
 */
int ckpt_add(struct ckpt_writer *w, const char *fragment, size_t n, struct err *e);

/* A further file: config.toml, the tokenizer, a foreign configuration verbatim. Written at once.
 * `name` is a plain file name; `source` a regular file of at most FILE_BESIDE_MAX bytes, else
 * ERR_DATA. */
int ckpt_put_bytes(struct ckpt_writer *w, const char *name, const void *p, size_t n, struct err *e);
int ckpt_put_file(struct ckpt_writer *w, const char *name, const char *source, struct err *e);

/*
 * Checks that the shards cover each tensor exactly once (ERR_DATA names tensor and boxes), writes
 * the manifest, syncs, renames, syncs the parent, replaces the hint. No data are read or written.
 * meta->iteration is the writer's. On failure the final name is untouched; a full disk is ERR_IO
 * with file and bytes. (Only a failed last step, the hint, leaves the checkpoint committed, and the
 * message says so.) A checkpoint of the same iteration is replaced. The writer can then only be
 * closed.
 */
int ckpt_commit(struct ckpt_writer *w, const struct ckpt_meta *meta, struct err *e);

/* Frees; without a commit removes the temporary folder. Takes NULL. */
void ckpt_writer_close(struct ckpt_writer *w);

/* Which checkpoints stay. */
struct ckpt_keep {
    int newest;          /* at least 1 */
    int64_t every;       /* those of iterations that it divides; 0: none */
    const int64_t *best; /* [nbest]: those of these iterations */
    int nbest;
};

/*
 * Removes checkpoints older than the newest ones whose manifest and sizes are right, each renamed
 * to a trash name first. Damaged ones do not count. Unless `trusted` (an iteration just committed;
 * -1: none) is among the kept, one of them must verify by its hashes, or nothing is removed.
 */
int ckpt_retain(const char *dir, const struct ckpt_keep *keep, int64_t trusted, struct err *e);

/* ---- reading ------------------------------------------------------------------------------ */

struct ckpt;

struct ckpt_tensor {
    const char *name;
    const char *group;
    int rank;
    int64_t size[2]; /* rank 1: {n, 1} */
    enum dtype dtype;
    bool has_fingerprint; /* from version 2 of the format on */
    struct fingerprint fingerprint;
};

/* From version 2 on a file has a sum (fingerprint.h) for each of its pieces, and that of the whole
 * as its digest. */
#define CKPT_PIECE (UINT64_C(64) << 20)

struct ckpt_file {
    const char *name;
    uint64_t size;
    const char *digest; /* 32 hexadecimal digits: the sum; in version 1 XXH3-128 */
    bool tensors;       /* safetensors with tensors of the manifest */
    const struct fingerprint *piece;
    size_t pieces; /* 0 in version 1 */
};

/* A checkpoint that was passed over, newest first, and why. */
struct ckpt_skipped {
    char *path;
    struct err why;
};

struct ckpt_skips {
    struct ckpt_skipped *at;
    size_t n;
};
void ckpt_skips_finish(struct ckpt_skips *s);

/*
 * Opens a checkpoint folder (SAVE/iter_0000100): manifest, sizes of all files, headers of the
 * tensor files, coverage of each tensor. No hashing. ERR_INTEGRITY for what is cut or changed,
 * ERR_DATA for what no weft has written.
 */
int ckpt_open(const char *path, struct ckpt **ret, struct err *e);

/*
 * Reads and judges every file, piece by piece, by as many threads as there are processors.
 * ERR_INTEGRITY names all files that differ and, from version 2 on, the tensors.
 */
int ckpt_verify(struct ckpt *c, struct err *e);

/* The same only for the files without tensors. */
int ckpt_verify_further(struct ckpt *c, struct err *e);

/*
 * The newest checkpoint of `dir` that opens and verifies. *ret is NULL and the code 0 when there
 * is none at all; when there are some and all are damaged, ERR_INTEGRITY names them, or
 * ERR_DATA where none has a manifest that weft wrote. `skipped`
 * (may be NULL) lists those passed over, for the caller's log, in each case; finish it.
 */
int ckpt_open_newest(const char *dir, struct ckpt **ret, struct ckpt_skips *skipped, struct err *e);

/*
 * The newest checkpoint of `dir` before the iteration `below` (INT64_MAX: any) that opens and whose
 * files other than tensors verify, as above. Its tensors are checked by ckpt_check after they were
 * read; if that fails, the caller requests an earlier one.
 */
int ckpt_open_before(const char *dir, int64_t below, struct ckpt **ret, struct ckpt_skips *skipped,
                     struct err *e);

/*
 * One iteration of `dir`, opened and verified. When it is damaged, the error's hint names the
 * newest intact one. ERR_IO when it is not there.
 */
int ckpt_open_iteration(const char *dir, int64_t iteration, struct ckpt **ret, struct err *e);

/* Adds that hint to the error of a damaged one, and returns its code. */
int ckpt_hint_intact(const char *dir, int64_t iteration, struct err *e);

void ckpt_close(struct ckpt *c);

/* All live until ckpt_close. */
const char *ckpt_path(const struct ckpt *c);
int ckpt_version(const struct ckpt *c); /* of the format */
const struct ckpt_meta *ckpt_meta(const struct ckpt *c);

/* The text of one of ckpt_meta(c)->state; NULL if the checkpoint does not have it. */
const char *ckpt_state(const struct ckpt *c, const char *key);
const struct json *ckpt_model(const struct ckpt *c); /* the object of meta->model */
/* The keys that a reader must know, an array of texts, those of the model as "model.KEY"
 * (FORMAT.md); NULL: all. */
const struct json *ckpt_must_know(const struct ckpt *c);
/* Sorted by group ("param" before the others), then by name, in byte order. */
size_t ckpt_tensors(const struct ckpt *c);
const struct ckpt_tensor *ckpt_tensor_at(const struct ckpt *c, size_t i);
const struct ckpt_tensor *ckpt_find(const struct ckpt *c, const char *group, const char *name);
size_t ckpt_files(const struct ckpt *c);
const struct ckpt_file *ckpt_file_at(const struct ckpt *c, size_t i);

/*
 * Fills to.data with the box to.box of a tensor, cast to to.dtype. ERR_USAGE when the checkpoint
 * has no such tensor, or of another shape than `size`; each names both.
 */
int ckpt_read_box(struct ckpt *c, const char *group, const char *name, int rank,
                  const int64_t *size, struct box_mem to, struct err *e);

/* One of many boxes. */
struct ckpt_want {
    const char *group, *name;
    int rank;
    const int64_t *size;
    struct box_mem to;
};

/* The same for n of them, by `threads` threads (0: one for each processor). */
int ckpt_read_all(struct ckpt *c, const struct ckpt_want *want, size_t n, int threads,
                  struct err *e);

/* The fingerprint of a tensor, by its number, from its bytes. */
int ckpt_fingerprint(const struct ckpt *c, size_t tensor, struct fingerprint *ret, struct err *e);

/*
 * Whether all that ckpt_read_box read so far is what was written: each piece of 64 MiB that was
 * read whole is judged by its sum, which was taken on the way; what was read in part is read again.
 * ERR_INTEGRITY names files and tensors. Until it has passed, nothing that was read may be trusted.
 */
int ckpt_check(struct ckpt *c, struct err *e);

/*
 * Committed checkpoints of a folder, by name only, newest first; a missing folder has none. Free
 * *ret.
 */
int ckpt_list(const char *dir, int64_t **ret, size_t *ret_n, struct err *e);

/* The path of one of them, in new memory: "DIR/iter_0000100", or its other name if the process that
 * replaced it was killed before there was a new one (FORMAT.md). */
char *ckpt_folder(const char *dir, int64_t iteration);

#endif
