/* SPDX-License-Identifier: Apache-2.0 */

/* The CRC-32 sums of an archive's members, taken while their bytes are read in any order. */

#include "convert/torch/pt_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/core/mem.h"

enum { SEEN_MAX = 1 << 20, CHECK_CHUNK = 1 << 20 };

void pt_saw(const struct st_file *s, uint64_t at, const void *p, size_t n)
{
    struct pt_own *own = s->own;
    struct pt_seen piece = {at, n, (uint32_t)crc32_z(0, p, n)};
    pthread_mutex_lock(&own->lock);
    if (own->nseen == own->cap && own->cap < SEEN_MAX)
        own->seen = mem_grow(own->seen, own->cap = own->cap ? 2 * own->cap : 64, sizeof(piece));
    if (own->nseen < own->cap)
        own->seen[own->nseen++] = piece;
    else
        own->lost = true;
    pthread_mutex_unlock(&own->lock);
}

static int pieces_by_place(const void *a, const void *b)
{
    const struct pt_seen *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* The first piece that does not begin before `at`. */
static size_t first_piece(const struct pt_own *own, uint64_t at)
{
    size_t low = 0, high = own->nseen;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (own->seen[mid].at < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The member's sum, if what was read of it are pieces that follow one another and are all of it. */
static bool put_together(const struct pt_own *own, const struct pt_member *m, size_t i,
                         uint32_t *ret)
{
    uint64_t at = m->at;
    uLong sum = 0;
    for (; !own->lost && i < own->nseen && own->seen[i].at == at && at < m->at + m->size; i++) {
        sum = crc32_combine(sum, own->seen[i].crc, (z_off_t)own->seen[i].n);
        at += own->seen[i].n;
    }
    *ret = (uint32_t)sum;
    bool more = i < own->nseen && own->seen[i].at < m->at + m->size;
    return at == m->at + m->size && !more && !own->lost;
}

static int read_again(const struct st_file *s, const struct pt_member *m, uint32_t *ret,
                      struct err *e)
{
    char *p = mem_new(CHECK_CHUNK, 1);
    uLong sum = 0;
    int code = 0;
    for (uint64_t at = 0, n; !code && at < m->size; at += n) {
        n = m->size - at < CHECK_CHUNK ? m->size - at : CHECK_CHUNK;
        code = st_raw(s, m->at + at, p, (size_t)n, e);
        sum = crc32_z(sum, (unsigned char *)p, (size_t)n);
    }
    *ret = (uint32_t)sum;
    free(p);
    return code;
}

/* The tensors that lie in a member. */
static int bad_sum(const struct st_file *s, const struct pt_member *m, uint32_t is, struct err *e)
{
    const char *name = "?";
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct st_entry *t = &s->entry[i];
        if (t->begin < m->at || t->begin >= m->at + m->size)
            continue;
        name = n++ ? name : t->name;
    }
    char more[48] = "";
    if (n > 1)
        snprintf(more, sizeof(more), " and %zu more", n - 1);
    return err_set(e, ERR_INTEGRITY,
                   "%s: tensor '%.200s'%s: the bytes of zip member '%.200s' have the CRC-32 %08x, "
                   "the archive says %08x",
                   s->path, name, more, m->name, is, m->crc);
}

/* One that was read is right, or has no sum. */
static int check_member(const struct st_file *s, const struct pt_member *m, struct err *e)
{
    const struct pt_own *own = s->own;
    size_t i = first_piece(own, m->at);
    bool seen = own->lost || (i < own->nseen && own->seen[i].at < m->at + m->size);
    uint32_t is;
    int code = 0;
    if (!m->crc || !m->size || !seen)
        return 0;
    if (!put_together(own, m, i, &is))
        code = read_again(s, m, &is, e);
    return code || is == m->crc ? code : bad_sum(s, m, is, e);
}

int pt_check(const struct st_file *s, struct err *e)
{
    struct pt_own *own = s->own;
    int code = 0;
    if (own->nseen)
        qsort(own->seen, own->nseen, sizeof(*own->seen), pieces_by_place);
    for (size_t i = 0; !code && i < own->members; i++)
        code = check_member(s, &own->member[i], e);
    return code;
}
