/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/jsonl.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_quick.h"
#include "base/format/json_walk.h"
#include "base/format/keys.h"
#include "base/core/mem.h"

enum {
    MAX_DEPTH = 1024,
    MOST_PASSED = 63, /* lines, if json_quick rejects all */
    KEYS_LISTED = 16, /* by jsonl_keys */
    KEYS_PATH = 200,
    KEYS_DEPTH = 8
};

struct jsonl {
    struct json_scan *scan;
    struct key_tree keys;
    bool quick;       /* lines may be given to json_quick */
    unsigned passing; /* lines that will not be, since it rejected some */
    unsigned refused; /* lines to skip when it rejects the next */
    char *text;       /* unescaped strings; no longer together than the line */
    size_t text_cap, text_n;
    int64_t *ids; /* fewer than the line has tokens */
    size_t ids_cap, ids_n;
};

bool jsonl_blank(const char *p, const char *end)
{
    while (p < end && jsonl_white(*p))
        p++;
    return p == end;
}

struct jsonl *jsonl_create(const char *const *keys, size_t nkeys)
{
    struct jsonl *j = mem_new(1, sizeof(*j));
    j->scan = json_scan_create();
    key_tree_init(&j->keys, keys, nkeys);
    j->quick = json_quick_able(&j->keys);
    return j;
}

void jsonl_destroy(struct jsonl *j)
{
    if (!j)
        return;
    json_scan_destroy(j->scan);
    key_tree_finish(&j->keys);
    free(j->text);
    free(j->ids);
    free(j);
}

/* ---- memory ---- */

/* Space for n elements in *p; old contents are lost. */
static int room(void **p, size_t *cap, size_t n, size_t size, const char *what, struct err *e)
{
    if (n <= *cap)
        return 0;
    n += n / 4 + 4096;
    free(*p);
    *p = NULL;
    *cap = 0;
    int rc = mem_try(n, size, what, p, e);
    if (!rc)
        *cap = n;
    return rc;
}

static int text_room(struct jsonl *j, size_t n, struct err *e)
{
    void *p = j->text;
    int rc = j->text_n ? 0 : room(&p, &j->text_cap, n, 1, "the strings of a JSON line", e);
    j->text = p;
    return rc;
}

static int ids_room(struct jsonl *j, size_t n, struct err *e)
{
    void *p = j->ids;
    int rc = j->ids_n ? 0 : room(&p, &j->ids_cap, n, sizeof(int64_t), "the ids of a JSON line", e);
    j->ids = p;
    return rc;
}

/* ---- values ---- */

/* A string, if necessary unescaped into j->text, which is never larger than the line. */
static int jsonl_take_text(struct jsonl *j, struct json_walk *w, const char **ret, size_t *ret_n)
{
    const char *s;
    size_t n;
    bool escaped;
    int rc = json_take_string(w, &s, &n, &escaped);
    if (!rc && escaped) {
        rc = text_room(j, (size_t)w->at[w->n] + JSON_SLACK, w->e);
        char *dst = j->text + j->text_n;
        if (!rc)
            rc = json_unescape(w, dst, s, n, &n);
        s = dst;
        j->text_n += n;
    }
    if (rc)
        return rc;
    *ret = s;
    *ret_n = n;
    return 0;
}

/* After the elements of an array, all good or not: steps past it, else back to `start`. */
static bool array_ends(struct json_walk *w, bool good, size_t start, struct err *e)
{
    good = good && json_peek(w) == ']';
    w->i = good ? w->i + 1 : start;
    w->e = e;
    return good;
}

/* The integers of an array, up to its closing bracket. */
static bool take_integers(struct jsonl *j, struct json_walk *w)
{
    w->i++;
    bool more = json_peek(w) != ']', good = true;
    while (more && good) {
        good = json_take_int(w, &j->ids[j->ids_n]);
        j->ids_n += good;
        more = good && json_peek(w) == ',';
        w->i += more;
    }
    return good;
}

/* The arrays of integers in an array, each with its end, up to its closing bracket. */
static bool take_lists(struct jsonl *j, struct json_walk *w)
{
    bool more = true, good = true;
    for (w->i++; more && good; w->i += more) {
        size_t first = j->ids_n;
        good = json_peek(w) == '[' && take_integers(j, w) && json_peek(w) == ']';
        for (size_t i = first; i < j->ids_n; i++)
            good &= j->ids[i] != JSONL_LIST_END;
        if (!good)
            break;
        w->i++;
        j->ids[j->ids_n++] = JSONL_LIST_END;
        more = json_peek(w) == ',';
    }
    return good;
}

/*
 * The integers of an array, or of the arrays in it; false at the first element that is not one,
 * with the position unchanged, so that json_skip checks the array like any other value.
 */
static bool jsonl_take_ids(struct jsonl *j, struct json_walk *w, struct jsonl_value *ret)
{
    size_t start = w->i, first = j->ids_n;
    struct err *e = w->e;
    bool lists = w->i + 1 < w->n && w->p[w->at[w->i + 1]] == '[';
    w->e = NULL; /* json_skip reports errors */
    bool good = lists ? take_lists(j, w) : take_integers(j, w);
    if (!array_ends(w, good, start, e)) {
        j->ids_n = first;
        return false;
    }
    *ret = (struct jsonl_value){.kind = lists ? JSONL_ID_LISTS : JSONL_IDS,
                                .length = j->ids_n - first,
                                .ids = j->ids + first};
    return true;
}

/* The same for an array that begins with a string. The line has two quotes for the end of each. */
static bool take_strings(struct jsonl *j, struct json_walk *w, struct jsonl_value *ret)
{
    size_t start = w->i, first = j->text_n;
    struct err *e = w->e;
    bool more = true, good = true;
    w->e = NULL;
    w->i++;
    while (more && good) {
        const char *s;
        size_t n;
        bool escaped;
        char *dst = j->text + j->text_n;
        good = !json_take_string(w, &s, &n, &escaped);
        if (good && escaped)
            good = !json_unescape(w, dst, s, n, &n);
        else if (good)
            memcpy(dst, s, n);
        if (!good)
            break;
        dst[n] = (char)JSONL_STRING_END;
        j->text_n += n + 1;
        more = json_peek(w) == ',';
        w->i += more;
    }
    if (!array_ends(w, good, start, e)) {
        j->text_n = first;
        return false;
    }
    *ret = (struct jsonl_value){
        .kind = JSONL_STRINGS, .text = j->text + first, .length = j->text_n - first};
    return true;
}

static int take_array(struct jsonl *j, struct json_walk *w, struct jsonl_value *ret)
{
    bool strings = w->i + 1 < w->n && w->p[w->at[w->i + 1]] == '"';
    int rc =
        strings ? text_room(j, (size_t)w->at[w->n] + JSON_SLACK, w->e) : ids_room(j, w->n, w->e);
    if (rc || (strings ? take_strings(j, w, ret) : jsonl_take_ids(j, w, ret)))
        return rc;
    return json_skip(w);
}

static int take_value(struct jsonl *j, struct json_walk *w, struct jsonl_value *ret)
{
    char c = json_peek(w);
    *ret = (struct jsonl_value){.kind = JSONL_OTHER};
    if (c == '"') {
        ret->kind = JSONL_STRING;
        return jsonl_take_text(j, w, &ret->text, &ret->length);
    }
    return c == '[' ? take_array(j, w, ret) : json_skip(w);
}

/* ---- the line ---- */

/* Discards the values of a field and of those inside it, for a duplicate key. */
static void forget(const struct key_field *f, struct jsonl_value *ret)
{
    for (size_t k = 0; k < f->nkeys; k++)
        ret[f->key[k]] = (struct jsonl_value){.kind = JSONL_MISSING};
    for (size_t i = 0; i < f->ninner; i++)
        forget(&f->inner[i], ret);
}

static int take_object(struct jsonl *j, struct json_walk *w, const struct key_field *f,
                       struct jsonl_value *ret);

/* The value of a wanted field, or of one that contains wanted fields. */
static int take_field(struct jsonl *j, struct json_walk *w, const struct key_field *f,
                      struct jsonl_value *ret)
{
    struct jsonl_value v = {.kind = JSONL_OTHER};
    int rc;
    if (f->ninner)
        forget(f, ret);
    if (f->ninner && json_peek(w) == '{')
        rc = take_object(j, w, f, ret);
    else
        rc = f->nkeys ? take_value(j, w, &v) : json_skip(w);
    for (size_t k = 0; k < f->nkeys; k++)
        ret[f->key[k]] = v;
    return rc;
}

/* One "key": value of the object f. */
static int take_member(struct jsonl *j, struct json_walk *w, const struct key_field *f,
                       struct jsonl_value *ret)
{
    const char *key;
    size_t n;
    if (json_peek(w) != '"')
        return json_expected(w, "a key in quotes");
    int rc = jsonl_take_text(j, w, &key, &n);
    if (!rc)
        rc = json_take(w, ':', "':' after a key");
    if (rc)
        return rc;
    const struct key_field *found = key_find(f, key, n);
    return found ? take_field(j, w, found, ret) : json_skip(w);
}

static int take_object(struct jsonl *j, struct json_walk *w, const struct key_field *f,
                       struct jsonl_value *ret)
{
    int rc = json_take(w, '{', "an object");
    if (rc)
        return rc;
    w->depth++; /* at most the depth of a key's path */
    if (json_peek(w) == '}') {
        w->i++;
        w->depth--;
        return 0;
    }
    for (;;) {
        rc = take_member(j, w, f, ret);
        if (rc)
            return rc;
        if (json_peek(w) == '}') {
            w->i++;
            w->depth--;
            return 0;
        }
        if ((rc = json_take(w, ',', "',' or '}'")))
            return rc;
    }
}

/* Whether json_quick parses the line at p, which ends before `end`. After repeated failures it is
 * tried less and less often. */
static bool by_quick(struct jsonl *j, const char *p, const char *end, struct jsonl_value *ret,
                     const char **ret_stop)
{
    size_t n = (size_t)(end - p);
    if (!j->quick || n > JSON_MAX_BYTES)
        return false;
    if (j->passing) {
        j->passing--;
        return false;
    }
    forget(&j->keys.root, ret);
    j->text_n = 0;
    if (!text_room(j, n + JSON_QUICK_SLACK, NULL) &&
        json_quick(p, end, &j->keys, j->text, ret, ret_stop)) {
        j->refused = 0;
        return true;
    }
    j->passing = j->refused;
    j->refused = j->refused < MOST_PASSED ? 2 * j->refused + 1 : MOST_PASSED;
    return false;
}

static int by_walk(struct jsonl *j, const char *line, size_t n, struct jsonl_value *ret,
                   struct err *e)
{
    struct json_walk w = {.p = line, .max_depth = MAX_DEPTH, .e = e};
    forget(&j->keys.root, ret);
    j->text_n = j->ids_n = 0;
    int rc = json_scan_run(j->scan, line, n, &w.at, &w.n, e);
    if (!rc)
        rc = take_object(j, &w, &j->keys.root, ret);
    if (!rc && w.i < w.n)
        rc = json_expected(&w, "the end of the line");
    else
        return rc;
    const char *p = line + w.at[w.i];
    for (bool object = *p == '{'; object && p > line && jsonl_white(p[-1]);)
        if (*--p == '\r') {
            err_set(e, ERR_DATA, "byte %zu: " JSONL_CR, (size_t)w.at[w.i]);
            err_mark(e, ERR_KIND_CR_LINES);
            return ERR_DATA;
        }
    return rc;
}

int jsonl_parse(struct jsonl *j, const char *line, size_t n, struct jsonl_value *ret, struct err *e)
{
    const char *stop;
    if (by_quick(j, line, line + n, ret, &stop) && stop == line + n)
        return 0;
    return by_walk(j, line, n, ret, e);
}

int jsonl_next(struct jsonl *j, const char *p, const char *end, size_t *ret_n,
               struct jsonl_value *ret, struct err *e)
{
    const char *stop;
    if (by_quick(j, p, end, ret, &stop)) {
        *ret_n = (size_t)(stop - p);
        return 0;
    }
    stop = memchr(p, '\n', (size_t)(end - p));
    *ret_n = (size_t)((stop ? stop : end) - p);
    return by_walk(j, p, *ret_n, ret, e);
}

/* ---- the keys of a line, for messages ---- */

struct key_list {
    struct json_walk w;
    struct buf *list;
    size_t n;
    struct buf way; /* names of the open objects, each with a dot after it */
};

static void list_key(struct key_list *k, const char *name, size_t n)
{
    if (k->n++ < KEYS_LISTED && k->way.len + n <= KEYS_PATH) {
        buf_adds(k->list, k->n > 1 ? ", " : "");
        buf_add(k->list, k->way.data, k->way.len);
        buf_add(k->list, name, n);
    } else if (k->n == KEYS_LISTED + 1) {
        buf_adds(k->list, ", ...");
    }
}

/* Escapes stay as they are. */
static void list_object(struct key_list *k, size_t depth)
{
    struct json_walk *w = &k->w;
    const char *name;
    size_t n, way = k->way.len;
    bool escaped;
    w->i++;
    while (json_peek(w) == '"' && !json_take_string(w, &name, &n, &escaped) &&
           !json_take(w, ':', "':' after a key")) {
        if (json_peek(w) == '{' && depth < KEYS_DEPTH && way + n < KEYS_PATH) {
            buf_add(&k->way, name, n);
            buf_addc(&k->way, '.');
            list_object(k, depth + 1);
            k->way.len = way;
        } else {
            list_key(k, name, n);
            if (json_skip(w))
                return;
        }
        w->i += json_peek(w) == ',';
    }
    w->i++;
}

void jsonl_keys(const char *line, size_t n, struct buf *ret)
{
    struct key_list k = {.w = {.p = line, .max_depth = MAX_DEPTH}, .list = ret};
    struct json_scan *scan = json_scan_create();
    if (!json_scan_run(scan, line, n, &k.w.at, &k.w.n, NULL) && json_peek(&k.w) == '{')
        list_object(&k, 0);
    buf_finish(&k.way);
    json_scan_destroy(scan);
}
