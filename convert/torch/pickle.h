/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_TORCH_PICKLE_H
#define CONVERT_TORCH_PICKLE_H

/*
 * Python pickles read without executing anything. The machine knows the opcodes that torch.save
 * writes (protocols 2 to 5; Python's pickletools.py describes them) and builds a tree of plain
 * values: what a pickle would call becomes a PICKLE_CALL that somebody may look at. A name that is
 * not in the caller's list of globals ends the reading before anything after it is looked at.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/err.h"

enum { PICKLE_MAX = 32 << 20 }; /* bytes of a pickle: memory is a multiple of that */

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_REAL,
    PICKLE_TEXT,
    PICKLE_BYTES,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT, /* child: key, value, key, value ... */
    PICKLE_GLOBAL,
    PICKLE_CALL,      /* child: what is called, its arguments (a tuple) */
    PICKLE_PERSISTENT /* child: the id */
};

struct pickle_value {
    enum pickle_kind kind;
    int64_t integer;  /* of PICKLE_BOOL and PICKLE_INT; PICKLE_GLOBAL: its index */
    double real;      /* of PICKLE_REAL */
    const char *text; /* of PICKLE_TEXT and PICKLE_BYTES; with a NUL behind */
    struct pickle_value **child;
    size_t n, cap; /* of `child`; of `text` the length without the NUL */
};

/* `find` gives the index of a name that may occur, "module.name", and -1 for any other. `ordered`
 * is the index of OrderedDict, which is a PICKLE_DICT in the tree. */
struct pickle_globals {
    int64_t (*find)(const char *name);
    int64_t ordered;
};

/*
 * Values live in the arena. ERR_DATA names file and byte for what is malformed, for opcodes that no
 * file of tensors needs, and for names that are not in `globals`. The value may refer to itself.
 */
int pickle_read(const struct pickle_globals *globals, const char *name, const void *p, size_t n,
                struct arena *arena, struct pickle_value **ret, struct err *e);

#endif
