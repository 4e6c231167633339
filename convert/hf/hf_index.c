/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"

static int place_order(const void *a, const void *b)
{
    return strcmp(((const struct hf_place *)a)->tensor, ((const struct hf_place *)b)->tensor);
}

static int file_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ends_with(const struct json *v, const char *end)
{
    size_t n = strlen(end);
    return v->length > n && !strcmp(v->string + v->length - n, end);
}

/* The name of a file in the same folder that holds weights. */
static int hf_check_file(const char *name, const struct json *v, struct err *e)
{
    if (v->kind != JSON_STRING || strlen(v->string) != v->length || !v->length)
        return err_set(e, ERR_DATA, "%s: the file of tensor '%.200s' is not a text", name, v->key);
    if (strchr(v->string, '/') || v->string[0] == '.' || v->length > 255)
        return err_set(e, ERR_DATA,
                       "%s: tensor '%.200s' is in '%.100s', which is not the name of a file beside "
                       "the index",
                       name, v->key, v->string);
    if (!ends_with(v, ".safetensors") && !ends_with(v, ".bin"))
        return err_set(e, ERR_DATA,
                       "%s: tensor '%.200s' is in '%.100s', expected a .safetensors or .bin file",
                       name, v->key, v->string);
    return 0;
}

static int read_map(struct hf_index *x, const char *name, const struct json *map, struct err *e)
{
    int code = 0;
    x->place = mem_new(map->length + 1, sizeof(*x->place));
    x->file = mem_new(map->length + 1, sizeof(*x->file));
    for (size_t i = 0; !code && i < map->length; i++) {
        const struct json *v = &map->child[i];
        code = hf_check_file(name, v, e);
        if (!code && strlen(v->key) != v->key_length)
            code = err_set(e, ERR_DATA, "%s: a NUL in the name of tensor '%.200s'", name, v->key);
        x->place[i] = (struct hf_place){v->key, v->string};
        x->file[i] = v->string;
        x->n = i + 1;
    }
    if (code || !x->n)
        return code ? code : err_set(e, ERR_DATA, "%s: \"weight_map\" is empty", name);
    qsort(x->place, x->n, sizeof(*x->place), place_order);
    qsort(x->file, x->n, sizeof(*x->file), file_order);
    for (size_t i = 0; i < x->n; i++)
        if (!i || strcmp(x->file[i], x->file[x->files - 1]))
            x->file[x->files++] = x->file[i];
    return 0;
}

int hf_index_parse(struct hf_index *ret, const char *name, const char *text, size_t n,
                   struct err *e)
{
    struct hf_index x = {0};
    struct json_doc *doc;
    int code = json_parse(name, text, n, &doc, e);
    if (code)
        return code;
    x.doc = doc;
    const struct json *map = json_get(json_root(doc), "weight_map");
    if (!map || map->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "%s: \"weight_map\" is missing or is not an object", name);
    else
        code = read_map(&x, name, map, e);
    if (code)
        hf_index_finish(&x);
    else
        *ret = x;
    return code;
}

void hf_index_finish(struct hf_index *x)
{
    json_close(x->doc);
    free(x->place);
    free(x->file);
    *x = (struct hf_index){0};
}

const char *hf_index_find(const struct hf_index *x, const char *tensor)
{
    struct hf_place key = {.tensor = tensor};
    const struct hf_place *p = bsearch(&key, x->place, x->n, sizeof(*x->place), place_order);
    return p ? p->file : NULL;
}

void hf_index_write(const struct hf_place *place, size_t n, unsigned long long total_size,
                    struct buf *out)
{
    struct hf_place *sorted = mem_new(n + 1, sizeof(*sorted));
    memcpy(sorted, place, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), place_order);
    buf_addf(out, "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n  \"weight_map\": {\n",
             total_size);
    for (size_t i = 0; i < n; i++) {
        buf_adds(out, "    ");
        jsonw_string(out, sorted[i].tensor, strlen(sorted[i].tensor));
        buf_adds(out, ": ");
        jsonw_string(out, sorted[i].file, strlen(sorted[i].file));
        buf_adds(out, i + 1 < n ? ",\n" : "\n");
    }
    buf_adds(out, "  }\n}\n");
    free(sorted);
}
