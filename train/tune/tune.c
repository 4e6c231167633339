/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tune/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/path.h"

enum { FILE_MAX = 16 << 20 };
static const char prefix[] = "matmul ";

void tune_finish(struct tune *t)
{
    free(t->at);
    *t = (struct tune){0};
}

static void add_choice(struct tune *t, const struct ops_choice *c)
{
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 32;
        t->at = mem_grow(t->at, t->room, sizeof(*t->at));
    }
    t->at[t->n++] = *c;
}

static const struct ops_choice *find(const struct tune *t, size_t from, size_t to, const char *what)
{
    for (size_t i = from; i < to; i++)
        if (!strcmp(t->at[i].what, what))
            return &t->at[i];
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* The next word of a line, which is cut off; "" at its end. */
static char *word(char **line)
{
    char *begin = *line + strspn(*line, " \t\r"), *end = begin + strcspn(begin, " \t\r");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return begin;
}

static bool read_number(char **line, double *ret)
{
    char *end, *s = word(line);
    *ret = *s ? strtod(s, &end) : 0;
    return !*s || (!*end && *ret > 0 && *ret < 1e12);
}

static bool read_choice(char *line, struct ops_choice *ret)
{
    *ret = (struct ops_choice){0};
    char *what = word(&line), *how = word(&line);
    if (!*how || strlen(what) >= sizeof(ret->what) || strlen(how) >= sizeof(ret->how))
        return false;
    memcpy(ret->what, what, strlen(what));
    memcpy(ret->how, how, strlen(how));
    return read_number(&line, &ret->us) && read_number(&line, &ret->first_us) && !*word(&line);
}

static int read_rows(struct tune *t, const char *path, struct err *e)
{
    struct buf text = {0};
    size_t number = 1;
    int code = file_exists(path) ? file_read(path, FILE_MAX, &text, e) : 0;
    char *line = code ? NULL : text.len ? text.data : NULL;
    if (line && strlen(buf_str(&text)) != text.len)
        code = err_set(e, ERR_DATA, "%s: expected text, but it has a zero byte", path);
    for (line = text.data; !code && line && *line; number++) {
        struct ops_choice c;
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        line += strspn(line, " \t\r");
        if (*line && *line != '#') {
            if (read_choice(line, &c))
                add_choice(t, &c);
            else
                code = err_set(e, ERR_DATA,
                               "%s:%zu: expected the shape of a matrix product, its algorithm and "
                               "microseconds",
                               path, number);
        }
        line = next;
    }
    t->in_file = t->n;
    buf_finish(&text);
    return code;
}

static void add_checkpoint(struct tune *t, const struct ckpt_meta *m)
{
    for (size_t i = 0; i < m->nkernels; i++) {
        const char *key = m->kernels[i].key, *value = m->kernels[i].value;
        struct ops_choice c = {0};
        if (strncmp(key, prefix, sizeof(prefix) - 1) != 0)
            continue;
        key += sizeof(prefix) - 1;
        if (strlen(key) >= sizeof(c.what) || strlen(value) >= sizeof(c.how))
            continue;
        memcpy(c.what, key, strlen(key));
        memcpy(c.how, value, strlen(value));
        add_choice(t, &c);
    }
}

int tune_open(struct tune *t, const char *path, const struct ckpt_meta *m, struct err *e)
{
    int code = path ? read_rows(t, path, e) : 0;
    if (!code && m)
        add_checkpoint(t, m);
    return code;
}

/* ---- what came of it --------------------------------------------------------------------- */

struct tune_result tune_result(const struct tune *t, const struct ops *o)
{
    struct tune_result r = {0};
    struct ops_choice c;
    for (size_t i = 0; o->choice && o->choice(o, i, &c); i++) {
        const struct ops_choice *was = find(t, t->in_file, t->n, c.what);
        r.products++;
        r.timed += c.origin == OPS_TIMED;
        r.lacking += c.origin == OPS_REFUSED || c.origin == OPS_FIRST;
        if (was && strcmp(was->how, c.how) != 0 && !r.others++)
            memcpy(r.example, c.what, sizeof(r.example));
    }
    return r;
}

static void print_row(struct buf *b, const struct ops_choice *c)
{
    buf_addf(b, "%s %s", c->what, c->how);
    if (c->us > 0)
        buf_addf(b, " %.3f", c->us);
    if (c->us > 0 && c->first_us > 0)
        buf_addf(b, " %.3f", c->first_us);
    buf_adds(b, "\n");
}

/* The choices of `o`, and after them what else the file had. `device`: for a comment. */
static int tune_write(const struct tune *t, const struct ops *o, const char *path,
                      const char *device, struct err *e)
{
    struct outfile f;
    struct buf b = {0};
    struct tune now = {0};
    struct ops_choice c;
    for (size_t i = 0; o->choice && o->choice(o, i, &c); i++) {
        const struct ops_choice *was = find(t, 0, t->in_file, c.what);
        if (was && !strcmp(was->how, c.how))
            c = *was; /* with its times */
        add_choice(&now, &c);
    }
    buf_addf(&b,
             "# Algorithms of matrix products on %s: shape, algorithm, microseconds, those of the "
             "library's first choice.\n",
             device);
    for (size_t i = 0; i < now.n; i++)
        print_row(&b, &now.at[i]);
    for (size_t i = 0; i < t->in_file; i++)
        if (!find(&now, 0, now.n, t->at[i].what) && !find(t, 0, i, t->at[i].what))
            print_row(&b, &t->at[i]);
    int code = outfile_open(&f, path, e);
    if (!code) {
        code = outfile_write(&f, b.data, b.len, e);
        if (code)
            outfile_abort(&f);
        else
            code = outfile_commit(&f, e);
    }
    tune_finish(&now);
    buf_finish(&b);
    return code;
}

int tune_report(const struct tune *t, const struct ops *o, const char *path, struct err *e)
{
    struct tune_result r = tune_result(t, o);
    int code = path && r.timed ? tune_write(t, o, path, o->dev->desc.name, e) : 0;
    if (code)
        return code;
    if (path && !o->choice)
        log_warn("--tune-gemm has no effect on the CPU");
    else if (path && r.timed)
        log_info("timed %zu of %zu shapes of matrix products: %s", r.timed, r.products, path);
    else if (path && r.lacking)
        log_warn("%zu of %zu shapes of matrix products have no algorithm in %s that the library "
                 "takes: its first choice does them; a run of one process times them",
                 r.lacking, r.products, path);
    if (r.others)
        log_warn("%zu of %zu shapes of matrix products are done by another algorithm than in the "
                 "checkpoint's run, so the run does not continue bit for bit (%s)",
                 r.others, r.products, r.example);
    return 0;
}

void tune_pairs(struct tune_pairs *ret, const struct ops *o)
{
    const struct ckpt_pair first[] = {{"matmul", o->entry[OP_MATMUL].backend},
                                      {"norm", o->entry[OP_NORM].backend},
                                      {"attention", o->entry[OP_ATTENTION].backend}};
    struct ops_choice c;
    size_t n = sizeof(first) / sizeof(first[0]), k = 0;
    while (o->choice && o->choice(o, k, &c))
        k++;
    *ret = (struct tune_pairs){.pair = mem_new(n + k, sizeof(*ret->pair)),
                               .n = n + k,
                               .text = mem_new(k + 1, sizeof(*ret->text))};
    memcpy(ret->pair, first, sizeof(first));
    for (size_t i = 0; i < k && o->choice(o, i, &c); i++) {
        snprintf(ret->text[i][0], sizeof(ret->text[i][0]), "%s%s", prefix, c.what);
        snprintf(ret->text[i][1], sizeof(ret->text[i][1]), "%s", c.how);
        ret->pair[n + i] = (struct ckpt_pair){ret->text[i][0], ret->text[i][1]};
    }
}

void tune_pairs_finish(struct tune_pairs *p)
{
    free(p->pair);
    free(p->text);
    *p = (struct tune_pairs){0};
}
