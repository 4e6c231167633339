/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/parquet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/parquet/column.h"
#include "base/parquet/ids.h"
#include "base/parquet/meta.h"

enum { TAIL = 8, SMALLEST = 12, SKIP = 64 << 10 };

struct parquet {
    char *path;
    struct pq_file file;
    uint64_t size, row;
    const char *const *key;
    struct pq_meta meta;
    struct pq_file *part; /* for each column, the file under a name of its own */
    char **name;          /* these: "a.parquet: column \"text\"" */
    struct pq_column *column;
    struct pq_ids *ids; /* one for each column; NULL: they are texts */
    size_t ncolumns;
    size_t group;  /* the next row group */
    uint64_t left; /* rows left in the current one */
};

static int bytes_at(const struct parquet *p, uint64_t at, void *to, size_t n, struct err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(p->file.fd, (char *)to + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(e, k < 0 ? errno : EIO, "%s: cannot read at byte %llu", p->path,
                           (unsigned long long)(at + done));
        done += (size_t)k;
    }
    return 0;
}

static int no_parquet(const struct parquet *p, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: %s", p->path, why);
}

static int read_footer(struct parquet *p, const char *const *key, size_t nkeys, bool ids,
                       struct err *e)
{
    unsigned char tail[TAIL], head[4];
    void *footer;
    if (p->size < SMALLEST)
        return no_parquet(p, "is too short for a Parquet file", e);
    int code = bytes_at(p, p->size - TAIL, tail, TAIL, e);
    if (!code)
        code = bytes_at(p, 0, head, 4, e);
    if (code)
        return code;
    if (!memcmp(tail + 4, "PARE", 4))
        return no_parquet(p, "is an encrypted Parquet file, which is not supported", e);
    if (memcmp(head, "PAR1", 4) != 0 || memcmp(tail + 4, "PAR1", 4) != 0)
        return no_parquet(p, "is not a Parquet file: no PAR1 at its beginning and end", e);
    uint64_t n = load_u32(tail);
    if (n > p->size - SMALLEST)
        return err_set(e, ERR_DATA, "%s: footer size %llu exceeds the file size %llu", p->path,
                       (unsigned long long)n, (unsigned long long)p->size);
    code = mem_try(n, 1, "the footer of a Parquet file", &footer, e);
    if (code)
        return code;
    p->file.size = p->size - TAIL - n;
    code = bytes_at(p, p->file.size, footer, n, e);
    const struct pq_footer f = {p->path, footer, n, p->file.size};
    if (!code)
        code = pq_meta_parse(&p->meta, &f, key, nkeys, ids, e);
    free(footer);
    return code;
}

static int parquet_open_file(struct parquet *p, struct err *e)
{
    struct stat st;
    p->file = (struct pq_file){.name = p->path};
    p->file.fd = open(p->path, O_RDONLY | O_CLOEXEC);
    if (p->file.fd < 0 || fstat(p->file.fd, &st))
        return err_sys(e, errno, "%s: cannot open", p->path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_IO,
                       "%s: a Parquet file is read from its end; this is not a regular file",
                       p->path);
    p->size = (uint64_t)st.st_size;
    return 0;
}

static void open_columns(struct parquet *p, bool ids, const char *beside)
{
    size_t n = p->meta.nkeys;
    p->part = mem_new(n, sizeof(*p->part));
    p->name = mem_new(n, sizeof(*p->name));
    p->column = mem_new(n, sizeof(*p->column));
    p->ids = ids ? mem_new(n, sizeof(*p->ids)) : NULL;
    p->ncolumns = n;
    for (size_t k = 0; k < n; k++) {
        p->part[k] = p->file;
        p->part[k].name = p->name[k] = mem_printf("%s: column \"%s\"", p->path, p->key[k]);
        pq_column_init(&p->column[k], &p->part[k], beside, &p->meta.leaf[k]);
        if (ids)
            pq_ids_init(&p->ids[k], &p->column[k], &p->meta.leaf[k]);
    }
}

int parquet_open(const char *path, const char *const *key, size_t nkeys, bool ids,
                 const char *beside, struct parquet **ret, struct err *e)
{
    struct parquet *p = mem_new(1, sizeof(*p));
    p->path = mem_strdup(path);
    p->key = key;
    int code = parquet_open_file(p, e);
    if (!code)
        code = read_footer(p, key, nkeys, ids, e);
    if (!code) {
        open_columns(p, ids, beside);
        *ret = p;
    } else {
        parquet_close(p);
    }
    return code;
}

void parquet_close(struct parquet *p)
{
    if (!p)
        return;
    for (size_t k = 0; k < p->ncolumns; k++) {
        pq_column_close(&p->column[k]);
        if (p->ids)
            pq_ids_close(&p->ids[k]);
        free(p->name[k]);
    }
    pq_meta_finish(&p->meta);
    if (p->file.fd >= 0)
        close(p->file.fd);
    free(p->part);
    free(p->name);
    free(p->column);
    free(p->ids);
    free(p->path);
    free(p);
}

uint64_t parquet_rows(const struct parquet *p)
{
    return p->meta.total;
}

uint64_t parquet_row(const struct parquet *p)
{
    return p->row;
}

uint64_t parquet_size(const struct parquet *p)
{
    return p->size;
}

static int end_group(struct parquet *p, struct err *e)
{
    int code = 0;
    for (size_t k = 0; p->group && k < p->ncolumns && !code; k++) {
        code = p->ids ? pq_ids_end(&p->ids[k], e) : 0;
        if (!code)
            code = pq_column_end(&p->column[k], e);
    }
    return code;
}

static void begin_group(struct parquet *p)
{
    const struct pq_chunk *chunk = p->meta.chunk + p->group * p->ncolumns;
    for (size_t k = 0; k < p->ncolumns; k++)
        pq_column_begin(&p->column[k], &chunk[k]);
    for (size_t k = 0; p->ids && k < p->ncolumns; k++)
        pq_ids_begin(&p->ids[k]);
    p->left = p->meta.rows[p->group++];
}

int parquet_next(struct parquet *p, uint64_t *ret_n, bool *ret_more, struct err *e)
{
    int code = 0;
    while (!p->left && !code) {
        code = end_group(p, e);
        if (!code && p->group == p->meta.ngroups) {
            *ret_more = false;
            return 0;
        }
        if (!code)
            begin_group(p);
    }
    for (size_t k = 0; k < p->ncolumns && !code; k++) {
        bool there;
        code = p->ids ? pq_ids_next(&p->ids[k], &there, &ret_n[k], e)
                      : pq_column_next(&p->column[k], &there, &ret_n[k], e);
        if (code)
            return code;
        if (!there)
            ret_n[k] = PARQUET_NULL;
    }
    if (!code) {
        p->left--;
        p->row++;
    }
    *ret_more = !code;
    return code;
}

int parquet_take(struct parquet *p, size_t key, void *to, size_t n, struct err *e)
{
    return p->ids ? pq_ids_take(&p->ids[key], to, n, e) : pq_column_take(&p->column[key], to, n, e);
}

/* Skips whole row groups unread. */
int parquet_seek(struct parquet *p, uint64_t row, struct err *e)
{
    int code = 0;
    bool more = true;
    while (p->row == 0 && !p->left && p->group < p->meta.ngroups && p->meta.rows[p->group] <= row)
        row -= p->meta.rows[p->group++];
    char *bin = mem_new(SKIP, 1);
    uint64_t *n = mem_new(p->ncolumns, sizeof(*n));
    uint64_t done = 0;
    for (size_t g = 0; g < p->group; g++)
        done += p->meta.rows[g];
    p->row = done;
    while (row-- && more && !code) {
        code = parquet_next(p, n, &more, e);
        for (size_t k = 0; k < p->ncolumns && !code && more; k++)
            for (uint64_t left = n[k] == PARQUET_NULL ? 0 : n[k]; left && !code;) {
                size_t step = left < SKIP ? (size_t)left : SKIP;
                code = parquet_take(p, k, bin, step, e);
                left -= step;
            }
    }
    if (!code && !more)
        code = err_set(e, ERR_DATA, "%s: has %llu rows, but more of them were read before", p->path,
                       (unsigned long long)p->row);
    free(bin);
    free(n);
    return code;
}
