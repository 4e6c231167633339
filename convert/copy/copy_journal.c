/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/copy_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { LINE = 160, JOURNAL_MAX = 1 << 30 };

static const char file_name[] = "journal";

struct range {
    int part;
    size_t target, n;
    uint64_t at;
    struct fingerprint sum;
};

struct copy_journal {
    int fd;
    char *path;
    struct range *range; /* of earlier runs, sorted by place; equal ones in the order of the file */
    size_t n;
    pthread_mutex_t lock; /* of the file */
};

struct outdir_mark copy_journal_mark(const char *identity, struct buf *text)
{
    char digest[XXH_TEXT];
    xxh_once(identity, strlen(identity), digest);
    buf_addf(text, "weft-copy 1 %s\n", digest);
    return (struct outdir_mark){file_name, buf_str(text), ".safetensors"};
}

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

static bool parse_line(const char *line, struct range *ret)
{
    char sum[FINGERPRINT_TEXT], end;
    return sscanf(line, "%d %zu %" SCNu64 " %zu %32[0-9a-f]%c", &ret->part, &ret->target, &ret->at,
                  &ret->n, sum, &end) == 6 &&
           end == '\n' && fingerprint_parse(sum, &ret->sum);
}

static int read_ranges(struct copy_journal *j, struct err *e)
{
    struct buf text = {0};
    int code = file_read(j->path, JOURNAL_MAX, &text, e);
    if (code)
        return code;
    const char *end = text.data + text.len;
    for (const char *p = strchr(buf_str(&text), '\n'); p && ++p < end; p = strchr(p, '\n')) {
        j->range = mem_grow(j->range, j->n + 1, sizeof(*j->range));
        j->n += parse_line(p, &j->range[j->n]);
    }
    if (j->n)
        qsort(j->range, j->n, sizeof(*j->range), by_place);
    buf_finish(&text);
    return 0;
}

static int append(struct copy_journal *j, const char *line, size_t n, struct err *e)
{
    pthread_mutex_lock(&j->lock);
    int code = fd_write_all(j->fd, j->path, line, n, e);
    pthread_mutex_unlock(&j->lock);
    return code;
}

static uint64_t total(const struct copy_journal *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < j->n; i++)
        sum += j->range[i].n;
    return sum;
}

int copy_journal_open(const char *folder, const struct outdir_mark *mark, enum outdir_left left,
                      const char *path, struct copy_journal **ret, struct err *e)
{
    struct copy_journal *j = mem_new(1, sizeof(*j));
    int code = 0;
    j->path = path_join(folder, file_name);
    pthread_mutex_init(&j->lock, NULL);
    j->fd = open(j->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (j->fd < 0)
        code = err_sys(e, errno, "%s: cannot create", j->path);
    else if (left == OUTDIR_RESUMED)
        code = read_ranges(j, e);
    else
        code = append(j, mark->text, strlen(mark->text), e);
    if (!code && left == OUTDIR_RESUMED) /* lest a line that was cut short runs into the next */
        code = append(j, "\n", 1, e);
    if (left == OUTDIR_STALE)
        log_info("%s: what a conversion with other options or from other files had begun is "
                 "removed",
                 path);
    if (!code && j->n)
        log_info("%s: an interrupted conversion is continued, %llu bytes are there", path,
                 (unsigned long long)total(j));
    if (code)
        copy_journal_close(j);
    else
        *ret = j;
    return code;
}

void copy_journal_close(struct copy_journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    pthread_mutex_destroy(&j->lock);
    free(j->range);
    free(j->path);
    free(j);
}

int copy_journal_remove(const char *folder, struct err *e)
{
    char *path = path_join(folder, file_name);
    int code = unlink(path) ? err_sys(e, errno, "%s: cannot remove", path) : 0;
    free(path);
    return code;
}

bool copy_journal_find(const struct copy_journal *j, int part, size_t target, uint64_t at, size_t n,
                       struct fingerprint *ret)
{
    const struct range key = {.part = part, .target = target, .at = at, .n = n};
    const struct range *r =
        j->n ? bsearch(&key, j->range, j->n, sizeof(*j->range), by_place) : NULL;
    if (r)
        *ret = r->sum;
    return r != NULL;
}

int copy_journal_add(struct copy_journal *j, int part, size_t target, uint64_t at, size_t n,
                     struct fingerprint sum, struct err *e)
{
    char line[LINE], text[FINGERPRINT_TEXT];
    fingerprint_text(sum, text);
    int k = snprintf(line, sizeof(line), "%d %zu %" PRIu64 " %zu %s\n", part, target, at, n, text);
    return append(j, line, (size_t)k, e);
}

bool copy_journal_resumed(const struct copy_journal *j)
{
    return j->n > 0;
}

bool copy_journal_worth(int code)
{
    return code == ERR_IO || code == ERR_RESOURCE;
}
