/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/blend.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/format/json.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { LIST_MAX = 256 << 20 };

/* ---- lists ---------------------------------------------------------------------------------- */

/* What Python's float() accepts: decimal, not hexadecimal. */
static bool blend_number(const char *s, double *ret)
{
    char *end;
    if (!*s || strpbrk(s, "xXpP"))
        return false;
    *ret = strtod(s, &end);
    while (isspace((unsigned char)*end))
        end++;
    return end != s && !*end;
}

bool blend_is_number(const char *word)
{
    double w;
    return blend_number(word, &w);
}

static char *stripped(const char *s)
{
    size_t n;
    while (isspace((unsigned char)*s))
        s++;
    for (n = strlen(s); n && isspace((unsigned char)s[n - 1]);)
        n--;
    return mem_strndup(s, n);
}

static int check_weight(const char *who, const char *word, double w, const char *prefix,
                        struct err *e)
{
    if (w > 0 && isfinite(w))
        return 0;
    err_set(e, ERR_USAGE, "%s: the weight %s of %s is not above 0", who, word, prefix);
    return err_hint(e, "omit datasets that are not to be used");
}

int blend_list_words(const char *who, const char *const *word, size_t n, struct blend_list *ret,
                     struct err *e)
{
    double w;
    size_t numbers = 0;
    *ret = (struct blend_list){0};
    for (size_t i = 0; n % 2 == 0 && i < n; i += 2)
        numbers += blend_number(word[i], &w);
    if (numbers && numbers != n / 2)
        return err_set(e, ERR_USAGE,
                       "%s: %zu of %zu words at the places of weights are numbers: expected a "
                       "weight before each prefix, or none at all",
                       who, numbers, n / 2);
    size_t step = numbers ? 2 : 1, sources = n / step;
    if (sources > BLEND_MAX)
        return err_set(e, ERR_USAGE, "%s: %zu datasets, at most %d can be blended", who, sources,
                       BLEND_MAX);
    ret->prefix = mem_new(sources, sizeof(*ret->prefix));
    ret->weight = numbers ? mem_new(sources, sizeof(*ret->weight)) : NULL;
    int code = 0;
    for (; ret->n < sources && !code; ret->n++) {
        const char *const *at = word + ret->n * step;
        ret->prefix[ret->n] = stripped(at[step - 1]);
        if (!numbers)
            continue;
        blend_number(at[0], &ret->weight[ret->n]);
        code = check_weight(who, at[0], ret->weight[ret->n], at[1], e);
    }
    return code;
}

void blend_list_finish(struct blend_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->prefix[i]);
    free(l->prefix);
    free(l->weight);
    *l = (struct blend_list){0};
}

/* `text` is split in place. */
static int list_text(const char *who, char *text, struct blend_list *ret, struct err *e)
{
    const char **word = NULL;
    size_t n = 0, room = 0;
    char *rest;
    for (char *w = strtok_r(text, " \t\n\v\f\r", &rest); w;
         w = strtok_r(NULL, " \t\n\v\f\r", &rest)) {
        ARRAY_GROW(word, n, room);
        word[n++] = w;
    }
    int code = blend_list_words(who, word, n, ret, e);
    free(word);
    return code;
}

int blend_list_file(const char *path, struct blend_list *ret, struct err *e)
{
    struct buf b = {0};
    *ret = (struct blend_list){0};
    int code = file_read(path, LIST_MAX, &b, e);
    if (!code && memchr(b.data, '\0', b.len))
        code = err_set(e, ERR_DATA, "%s: contains a NUL byte: not a list of datasets", path);
    if (!code)
        code = list_text(path, buf_str(&b), ret, e);
    if (!code && !ret->n)
        code = err_set(e, ERR_USAGE, "%s: names no dataset", path);
    buf_finish(&b);
    return code;
}

static int list_array(const char *path, const struct json *a, struct blend_list *ret, struct err *e)
{
    const char **word = mem_new(a->length, sizeof(*word));
    char **text = mem_new(a->length, sizeof(*text));
    int code = 0;
    for (size_t i = 0; i < a->length && !code; i++) {
        if (a->child[i].kind != JSON_STRING || memchr(a->child[i].string, 0, a->child[i].length))
            code = err_set(e, ERR_DATA, "%s: \"%s\"[%zu] is not a string", path, a->key, i);
        else
            word[i] = text[i] = mem_strndup(a->child[i].string, a->child[i].length);
    }
    if (!code)
        code = blend_list_words(path, word, a->length, ret, e);
    for (size_t i = 0; i < a->length; i++)
        free(text[i]);
    free(text);
    free(word);
    return code;
}

static int list_value(const char *path, const struct json *v, struct blend_list *ret, struct err *e)
{
    if (v->kind == JSON_ARRAY)
        return list_array(path, v, ret, e);
    if (v->kind != JSON_STRING || memchr(v->string, 0, v->length))
        return err_set(e, ERR_DATA, "%s: \"%s\" is neither a list of strings nor a string", path,
                       v->key);
    char *text = mem_strndup(v->string, v->length);
    int code = list_text(path, text, ret, e);
    free(text);
    return code;
}

/* A misspelt name would leave a part without data. */
static int check_parts(const char *path, const struct json *root, struct err *e)
{
    for (size_t i = 0; i < root->length; i++) {
        bool known = false;
        for (int p = 0; p < PARTS; p++)
            known |= !strcmp(root->child[i].key, part_name((enum part)p));
        if (!known)
            return err_set(e, ERR_DATA, "%s: \"%s\" is not train, valid or test", path,
                           root->child[i].key);
    }
    return 0;
}

int blend_list_parts(const char *path, struct blend_list ret[PARTS], struct err *e)
{
    struct json_doc *doc;
    size_t named = 0;
    for (int p = 0; p < PARTS; p++)
        ret[p] = (struct blend_list){0};
    int code = json_open(path, LIST_MAX, &doc, e);
    if (code)
        return code;
    const struct json *root = json_root(doc);
    if (root->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "%s: is not a JSON object with train, valid and test", path);
    if (!code)
        code = check_parts(path, root, e);
    for (int p = 0; p < PARTS && !code; p++) {
        const struct json *v = json_get(root, part_name((enum part)p));
        if (v && v->kind != JSON_NULL)
            code = list_value(path, v, &ret[p], e);
        named += ret[p].n;
    }
    if (!code && !named)
        code = err_set(e, ERR_DATA, "%s: names no dataset under train, valid or test", path);
    json_close(doc);
    return code;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* numpy's sum of a contiguous array: pairwise, in blocks. */
static double sum_block(const double *a, size_t n)
{
    if (n < 8) {
        double s = 0;
        for (size_t i = 0; i < n; i++)
            s += a[i];
        return s;
    }
    if (n > 128) {
        size_t half = n / 2 / 8 * 8;
        return sum_block(a, half) + sum_block(a + half, n - half);
    }
    double r[8];
    size_t i;
    memcpy(r, a, sizeof(r));
    for (i = 8; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            r[k] += a[i + k];
    double s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        s += a[i];
    return s;
}

static double sum(const double *a, size_t n)
{
    enum { BLOCK = 8192 };
    double s = sum_block(a, n < BLOCK ? n : BLOCK);
    for (size_t i = BLOCK; i < n; i += BLOCK)
        s += sum_block(a + i, n - i < BLOCK ? n - i : BLOCK);
    return s;
}

void blend_normalize(const double *weight, size_t n, double *ret)
{
    double s = sum(weight, n);
    for (size_t i = 0; i < n; i++)
        ret[i] = weight[i] / s;
}

uint64_t blend_target(uint64_t samples, double weight)
{
    return (uint64_t)ceil((double)samples * weight);
}

uint64_t blend_margin(uint64_t target)
{
    return (uint64_t)ceil((double)target * (1 + 0.5 / 100));
}

void blend_normalize_old(const double *weight, size_t n, double *ret)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += weight[i];
    for (size_t i = 0; i < n; i++)
        ret[i] = weight[i] / s;
}

uint64_t blend_margin_old(uint64_t samples, double weight)
{
    return (uint64_t)ceil((double)samples * weight * 1.005);
}

/* ---- interleaving --------------------------------------------------------------------------- */

/*
 * Groups of datasets with similar weights. How far behind one of them can be at place x is at most
 * top + slope x, since counts only grow: so most of them need not be examined at most places. Among
 * equal weights the one with the fewest samples is `best`, the first on a tie.
 */
struct group {
    size_t first, end; /* in order of weight */
    bool equal;
    size_t best;
    double top, slope;
};

enum { GROUP = 64 };

struct weaver {
    const double *weight;
    size_t *order; /* datasets by weight, stable */
    double *cur;   /* samples so far, as doubles for comparison */
    struct group *group;
    double *bound; /* of each group, at the current place */
    size_t ngroups;
};

struct weighed {
    double weight;
    size_t d;
};

static int by_weight(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return (x->d > y->d) - (x->d < y->d);
}

/* The end of the group that begins at i: of equal weights, or of any. */
static size_t group_end(const struct weighed *sorted, size_t n, size_t i, bool *ret_equal)
{
    size_t end = i + 1;
    *ret_equal = end == n || sorted[end].weight == sorted[i].weight;
    while (end < n && end < i + GROUP && (!*ret_equal || sorted[end].weight == sorted[i].weight))
        end++;
    return end;
}

static void weaver_init(struct weaver *w, const double *weight, size_t n)
{
    struct weighed *sorted = mem_new(n, sizeof(*sorted));
    *w = (struct weaver){.weight = weight,
                         .order = mem_new(n, sizeof(*w->order)),
                         .cur = mem_new(n, sizeof(*w->cur)),
                         .group = mem_new(n, sizeof(*w->group)),
                         .bound = mem_new(n, sizeof(*w->bound))};
    for (size_t d = 0; d < n; d++)
        sorted[d] = (struct weighed){weight[d], d};
    qsort(sorted, n, sizeof(*sorted), by_weight);
    for (size_t i = 0; i < n; i++)
        w->order[i] = sorted[i].d;
    for (size_t i = 0; i < n; i = w->group[w->ngroups++].end) {
        struct group *g = &w->group[w->ngroups];
        *g = (struct group){
            .first = i, .best = sorted[i].d, .top = 1e-13, .slope = sorted[i].weight * (1 + 1e-14)};
        g->end = group_end(sorted, n, i, &g->equal);
    }
    free(sorted);
}

static void weaver_finish(struct weaver *w)
{
    free(w->order);
    free(w->cur);
    free(w->group);
    free(w->bound);
}

static double behind(const struct weaver *w, size_t d, double x)
{
    return w->weight[d] * x - w->cur[d];
}

/* The best of group g at place x. Rounding errors are within 10^-16 of slope x. */
static void ask(struct weaver *w, struct group *g, double x)
{
    g->best = w->order[g->first];
    double most = behind(w, g->best, x);
    for (size_t i = g->first + 1; i < g->end; i++) {
        size_t d = w->order[i];
        double v = behind(w, d, x);
        if (v > most || (v == most && d < g->best)) {
            most = v;
            g->best = d;
        }
    }
    g->top = most - g->slope * x + 1e-13 * (1 + g->slope * x + fabs(most));
}

/* The dataset furthest behind at place x, the first on a tie; counts it. */
static size_t furthest(struct weaver *w, double x)
{
    size_t lead = 0;
    for (size_t i = 0; i < w->ngroups; i++) {
        const struct group *g = &w->group[i];
        w->bound[i] = g->equal ? behind(w, g->best, x) : g->top + g->slope * x;
        if (w->bound[i] > w->bound[lead])
            lead = i;
    }
    if (!w->group[lead].equal)
        ask(w, &w->group[lead], x);
    size_t best = w->group[lead].best;
    double most = behind(w, best, x);
    for (size_t i = 0; i < w->ngroups; i++) {
        struct group *g = &w->group[i];
        if (i == lead || w->bound[i] < most)
            continue;
        if (!g->equal)
            ask(w, g, x);
        double v = behind(w, g->best, x);
        if (v > most || (v == most && g->best < best)) {
            most = v;
            best = g->best;
            lead = i;
        }
    }
    w->cur[best] += 1;
    if (w->group[lead].equal)
        ask(w, &w->group[lead], x);
    return best;
}

void blend_weave(const double *weight, size_t n, uint64_t size, int16_t *which, int64_t *sample,
                 uint64_t *taken)
{
    struct weaver w;
    weaver_init(&w, weight, n);
    for (uint64_t s = 0; s < size; s++) {
        size_t best = furthest(&w, s > 1 ? (double)s : 1.0);
        if (which)
            which[s] = (int16_t)best;
        if (sample)
            sample[s] = (int64_t)w.cur[best] - 1;
    }
    for (size_t d = 0; d < n; d++)
        taken[d] = (uint64_t)w.cur[d];
    weaver_finish(&w);
}

void blend_weave_all(const uint64_t *count, size_t n, int16_t *which, int64_t *sample)
{
    uint64_t total = 0, s = 0;
    for (size_t d = 0; d < n; d++)
        total += count[d];
    double *weight = mem_new(n, sizeof(*weight));
    uint64_t *cur = mem_new(n, sizeof(*cur));
    size_t *left = mem_new(n, sizeof(*left)), nleft = n; /* those not exhausted, in order */
    for (size_t d = 0; d < n; d++) {
        weight[d] = (double)count[d] / (double)total;
        left[d] = d;
    }
    while (nleft) {
        double x = s > 1 ? (double)s : 1.0, most = -INFINITY;
        size_t best = 0;
        for (size_t i = 0; i < nleft; i++) {
            double behind = weight[left[i]] * x - (double)cur[left[i]];
            if (behind > most) {
                most = behind;
                best = i;
            }
        }
        size_t d = left[best];
        which[s] = (int16_t)d;
        sample[s++] = (int64_t)cur[d]++;
        if (cur[d] == count[d])
            memmove(left + best, left + best + 1, (--nleft - best) * sizeof(*left));
    }
    free(weight);
    free(cur);
    free(left);
}
