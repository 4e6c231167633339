/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/torch/zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

enum {
    END_SIZE = 22, /* end of central directory, without its comment */
    END_TAIL = END_SIZE + 65535,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30
};

static const char end_mark[] = "PK\5\6", locator_mark[] = "PK\6\7", end64_mark[] = "PK\6\6";
static const char entry_mark[] = "PK\1\2", local_mark[] = "PK\3\4";

struct directory {
    uint64_t at, size, members;
};

static bool has_mark(const unsigned char *p, const char *mark)
{
    return !memcmp(p, mark, 4);
}

/* ---- where the directory is ----------------------------------------------------------------- */

static int read_end64(const struct zip_bytes *b, const unsigned char *locator, struct directory *d,
                      struct err *e)
{
    unsigned char p[END64_SIZE];
    uint64_t at = load_u64(locator + 8);
    if (at > b->size || b->size - at < END64_SIZE)
        return err_set(e, ERR_DATA, "%s: the zip64 end record lies outside the file", b->name);
    int code = b->read(b, at, p, sizeof(p), e);
    if (code)
        return code;
    if (!has_mark(p, end64_mark))
        return err_set(e, ERR_DATA, "%s: byte %llu is not a zip64 end record", b->name,
                       (unsigned long long)at);
    d->members = load_u64(p + 32);
    d->size = load_u64(p + 40);
    d->at = load_u64(p + 48);
    return 0;
}

/* The end record is the last one whose comment reaches the end of the file. */
static int find_end(const struct zip_bytes *b, struct directory *d, struct err *e)
{
    size_t n = b->size < END_TAIL + LOCATOR_SIZE ? (size_t)b->size : END_TAIL + LOCATOR_SIZE;
    unsigned char *p = mem_new(n + 1, 1);
    size_t i = n < END_SIZE ? 0 : n - END_SIZE + 1;
    int code = b->read(b, b->size - n, p, n, e);
    while (!code && i &&
           !(has_mark(p + i - 1, end_mark) && load_u16(p + i - 1 + 20) == n - (i - 1) - END_SIZE))
        i--;
    if (!code && !i) {
        err_set(e, ERR_DATA, "%s: not a zip archive, or cut short: it has no end record", b->name);
        code = err_hint(e, "torch.save of PyTorch 1.6 and later writes zip archives");
    }
    if (!code) {
        const unsigned char *end = p + --i;
        *d = (struct directory){load_u32(end + 16), load_u32(end + 12), load_u16(end + 10)};
        if (i >= LOCATOR_SIZE && has_mark(end - LOCATOR_SIZE, locator_mark))
            code = read_end64(b, end - LOCATOR_SIZE, d, e);
    }
    free(p);
    if (!code && (d->at > b->size || d->size > b->size - d->at))
        code =
            err_set(e, ERR_DATA, "%s: the zip directory lies outside the file: cut short", b->name);
    if (!code && (d->size > ZIP_DIRECTORY_MAX || d->members > ZIP_MEMBERS_MAX ||
                  d->members > d->size / ENTRY_SIZE))
        code = err_set(e, ERR_DATA, "%s: the zip directory cannot have %llu members in %llu bytes",
                       b->name, (unsigned long long)d->members, (unsigned long long)d->size);
    return code;
}

/* ---- members -------------------------------------------------------------------------------- */

static int bad_member(const struct zip_bytes *b, const struct zip_member *m, const char *why,
                      struct err *e)
{
    return err_set(e, ERR_DATA, "%s: zip member '%.200s' %s", b->name, m->name, why);
}

/* Numbers that 32 bits cannot hold stand in the extra field 1, in this order, each if it is needed.
 */
static bool read_extra(const unsigned char *p, size_t n, uint64_t *const number[3])
{
    while (n >= 4) {
        size_t size = load_u16(p + 2);
        if (size > n - 4)
            return false;
        if (load_u16(p) == 1) {
            const unsigned char *at = p + 4;
            for (int i = 0; i < 3; i++) {
                if (*number[i] != UINT32_MAX)
                    continue;
                if (size < 8)
                    return false;
                *number[i] = load_u64(at);
                at += 8;
                size -= 8;
            }
            return true;
        }
        p += 4 + size;
        n -= 4 + size;
    }
    return *number[0] != UINT32_MAX && *number[1] != UINT32_MAX && *number[2] != UINT32_MAX;
}

/* Where the data of a member begin, whose local header is at m->at. */
static int find_data(const struct zip_bytes *b, uint64_t limit, struct zip_member *m, struct err *e)
{
    unsigned char p[LOCAL_SIZE];
    if (m->at > limit || limit - m->at < LOCAL_SIZE)
        return bad_member(b, m, "lies outside the file", e);
    int code = b->read(b, m->at, p, sizeof(p), e);
    if (code)
        return code;
    if (!has_mark(p, local_mark))
        return bad_member(b, m, "has no local header", e);
    uint64_t gap = LOCAL_SIZE + (uint64_t)load_u16(p + 26) + load_u16(p + 28);
    if (limit - m->at < gap || limit - m->at - gap < m->size)
        return bad_member(b, m, "lies outside the file", e);
    m->at += gap;
    return 0;
}

/* One record of the directory, of *n bytes that are left. */
static int read_member(struct zip *z, const struct zip_bytes *b, uint64_t limit,
                       const unsigned char **p, size_t *n, struct err *e)
{
    const unsigned char *q = *p;
    if (*n < ENTRY_SIZE || !has_mark(q, entry_mark))
        return err_set(e, ERR_DATA, "%s: the zip directory breaks off after %zu members", b->name,
                       z->n);
    size_t name = load_u16(q + 28), extra = load_u16(q + 30);
    size_t all = ENTRY_SIZE + name + extra + load_u16(q + 32);
    if (all > *n)
        return err_set(e, ERR_DATA, "%s: the zip directory breaks off after %zu members", b->name,
                       z->n);
    const char *text = (const char *)q + ENTRY_SIZE;
    if (memchr(text, 0, name) || utf8_good(text, name) < name)
        return err_set(e, ERR_DATA, "%s: the name of zip member %zu is not UTF-8 without NUL",
                       b->name, z->n);
    struct zip_member m = {.name = arena_strndup(&z->arena, text, name)};
    uint64_t whole = load_u32(q + 24);
    m.size = load_u32(q + 20);
    m.at = load_u32(q + 42);
    if (!read_extra(q + ENTRY_SIZE + name, extra, (uint64_t *const[]){&whole, &m.size, &m.at}))
        return bad_member(b, &m, "lacks its zip64 sizes", e);
    if (load_u16(q + 8) & 1)
        return bad_member(b, &m, "is encrypted", e);
    m.stored = !load_u16(q + 10) && whole == m.size;
    m.crc = load_u32(q + 16);
    int code = find_data(b, limit, &m, e);
    z->member[z->n++] = m;
    *p += all;
    *n -= all;
    return code;
}

static int by_place(const void *a, const void *b)
{
    const struct zip_member *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct zip_member *)a)->name, ((const struct zip_member *)b)->name);
}

static int check_members(struct zip *z, const struct zip_bytes *b, struct err *e)
{
    if (!z->n)
        return 0;
    qsort(z->member, z->n, sizeof(*z->member), by_place);
    for (size_t i = 1; i < z->n; i++)
        if (z->member[i].at - z->member[i - 1].at < z->member[i - 1].size)
            return bad_member(b, &z->member[i], "overlaps another one", e);
    qsort(z->member, z->n, sizeof(*z->member), by_name);
    for (size_t i = 1; i < z->n; i++)
        if (!strcmp(z->member[i].name, z->member[i - 1].name))
            return bad_member(b, &z->member[i], "comes twice", e);
    return 0;
}

int zip_open(struct zip *ret, const struct zip_bytes *b, struct err *e)
{
    struct directory d = {0};
    struct zip z = {0};
    void *text = NULL;
    int code = find_end(b, &d, e);
    if (!code)
        code = mem_try((size_t)d.size + 1, 1, "a zip directory", &text, e);
    if (!code)
        code = b->read(b, d.at, text, (size_t)d.size, e);
    z.member = mem_new(code ? 1 : (size_t)d.members + 1, sizeof(*z.member));
    const unsigned char *p = text;
    size_t n = (size_t)d.size;
    for (uint64_t i = 0; !code && i < d.members; i++)
        code = read_member(&z, b, d.at, &p, &n, e);
    if (!code)
        code = check_members(&z, b, e);
    free(text);
    if (code)
        zip_finish(&z);
    else
        *ret = z;
    return code;
}

void zip_finish(struct zip *z)
{
    free(z->member);
    arena_finish(&z->arena);
    *z = (struct zip){0};
}

const struct zip_member *zip_find(const struct zip *z, const char *name)
{
    struct zip_member key = {.name = name};
    return z->n ? bsearch(&key, z->member, z->n, sizeof(key), by_name) : NULL;
}
