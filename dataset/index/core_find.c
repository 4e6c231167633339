/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/core_find.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/core_name.h"

enum { TEXT_MAX = 64 << 20 };

static const char *const classes[] = {"GPTDataset", "BlendedDataset"};
enum { CLASSES = sizeof(classes) / sizeof(classes[0]) };

/* A description that was read: the digests of its text without tokenizers, and of all of it. */
struct seen {
    char stripped[XXH_TEXT], md5[MD5_TEXT];
};

/* The descriptions of one class and part. */
struct list {
    char (*md5)[MD5_TEXT]; /* those that exist, in byte order */
    size_t n, read;        /* the first `read` are in the table */
    struct seen *table;    /* open addressing; no digest: free */
    size_t slots;          /* a power of two, at least twice its entries */
};

struct core_folder {
    char *path;
    bool listed;
    struct list list[CLASSES][PARTS];
};

struct core_folder *core_folder_create(const char *path)
{
    struct core_folder *f = mem_new(1, sizeof(*f));
    f->path = mem_strdup(path);
    return f;
}

void core_folder_destroy(struct core_folder *f)
{
    for (int c = 0; f && c < CLASSES; c++)
        for (int p = 0; p < PARTS; p++) {
            free(f->list[c][p].md5);
            free(f->list[c][p].table);
        }
    if (f)
        free(f->path);
    free(f);
}

const char *core_folder_path(const struct core_folder *f)
{
    return f->path;
}

/* ---- names ---------------------------------------------------------------------------------- */

static int core_find_by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, MD5_TEXT);
}

/* The list that {md5}-{class}-{part}-description.txt belongs to, or NULL. */
static struct list *list_of(struct core_folder *f, const char *name)
{
    struct list *found = NULL;
    if (strlen(name) < MD5_TEXT)
        return NULL;
    for (int c = 0; c < CLASSES; c++)
        for (int p = 0; p < PARTS; p++) {
            char *tail = mem_printf("-%s-%s-description.txt", classes[c], part_name((enum part)p));
            if (!strcmp(name + MD5_TEXT - 1, tail))
                found = &f->list[c][p];
            free(tail);
        }
    return found;
}

static void read_names(struct core_folder *f)
{
    DIR *dir = f->listed ? NULL : opendir(f->path);
    f->listed = true;
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        struct list *l = list_of(f, d->d_name);
        if (!l)
            continue;
        if ((l->n & (l->n - 1)) == 0)
            l->md5 = mem_grow(l->md5, l->n ? 2 * l->n : 1, MD5_TEXT);
        memcpy(l->md5[l->n], d->d_name, MD5_TEXT - 1);
        l->md5[l->n++][MD5_TEXT - 1] = '\0';
    }
    if (!dir)
        return;
    closedir(dir);
    for (int c = 0; c < CLASSES; c++)
        for (int p = 0; p < PARTS; p++)
            if (f->list[c][p].n)
                qsort(f->list[c][p].md5, f->list[c][p].n, MD5_TEXT, core_find_by_bytes);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* The text without the tokenizers, which are on lines of their own. */
static void core_find_strip(const struct buf *text, struct buf *ret)
{
    static const char key[] = "\"tokenizer\": ";
    const char *end = text->data + text->len;
    size_t inside = SIZE_MAX; /* indent of the brace that ends the omitted value */
    for (const char *p = text->data, *next; p < end; p = next) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        next = nl ? nl + 1 : end;
        size_t blanks = 0, n = (size_t)(next - p);
        while (blanks < n && p[blanks] == ' ')
            blanks++;
        if (inside != SIZE_MAX) {
            if (blanks == inside && p[blanks] == '}')
                inside = SIZE_MAX;
        } else if (n - blanks > sizeof(key) - 1 && !memcmp(p + blanks, key, sizeof(key) - 1)) {
            inside = p[blanks + sizeof(key) - 1] == '{' ? blanks : SIZE_MAX;
        } else {
            buf_add(ret, p, n);
        }
    }
}

static void strip_digest(const struct buf *text, char ret[XXH_TEXT])
{
    struct buf stripped = {0};
    core_find_strip(text, &stripped);
    xxh_once(stripped.data, stripped.len, ret);
    buf_finish(&stripped);
}

/* The slot of that digest in the table, or the free one where it belongs. */
static struct seen *slot_of(struct list *l, const char *stripped)
{
    char head[17] = {0};
    memcpy(head, stripped, 16);
    size_t i = (size_t)strtoull(head, NULL, 16) & (l->slots - 1);
    while (l->table[i].stripped[0] && strcmp(l->table[i].stripped, stripped) != 0)
        i = (i + 1) & (l->slots - 1);
    return &l->table[i];
}

static void core_find_grow(struct list *l)
{
    struct seen *old = l->table;
    size_t n = l->slots;
    l->slots = n ? 2 * n : 2 * CORE_LOOK_AT;
    l->table = mem_new(l->slots, sizeof(*l->table));
    for (size_t i = 0; i < n; i++)
        if (old[i].stripped[0])
            *slot_of(l, old[i].stripped) = old[i];
    free(old);
}

/* Adds the next description if its digest matches its name; the first of equal ones stays. */
static void read_one(struct list *l, const char *path, const char *named)
{
    struct buf text = {0};
    char md5[MD5_TEXT], stripped[XXH_TEXT];
    if (file_read(path, TEXT_MAX, &text, NULL))
        return;
    md5_once(text.data, text.len, md5);
    if (!strcmp(md5, named)) {
        strip_digest(&text, stripped);
        struct seen *s = slot_of(l, stripped);
        if (!s->stripped[0]) {
            memcpy(s->stripped, stripped, XXH_TEXT);
            memcpy(s->md5, md5, MD5_TEXT);
        }
    }
    buf_finish(&text);
}

static void read_more(const struct core_folder *f, struct list *l, const char *class,
                      enum part part)
{
    for (int k = 0; k < CORE_LOOK_AT && l->read < l->n; k++) {
        const char *md5 = l->md5[l->read++];
        char *path = core_path(f->path, md5, class, part, "description.txt");
        if (2 * l->read > l->slots)
            core_find_grow(l);
        read_one(l, path, md5);
        free(path);
    }
}

void core_find(struct core_folder *f, const char *class, enum part part, const struct buf *text,
               char ret[MD5_TEXT])
{
    md5_once(text->data, text->len, ret);
    char *own = core_path(f->path, ret, class, part, "description.txt"), stripped[XXH_TEXT];
    bool there = file_exists(own);
    free(own);
    if (there)
        return;
    read_names(f);
    struct list *l = &f->list[!strcmp(class, classes[1])][part];
    if (!l->n)
        return;
    strip_digest(text, stripped);
    const struct seen *s = l->slots ? slot_of(l, stripped) : NULL;
    if (!s || !s->stripped[0]) {
        read_more(f, l, class, part);
        s = slot_of(l, stripped);
    }
    if (s->stripped[0])
        memcpy(ret, s->md5, MD5_TEXT);
}
