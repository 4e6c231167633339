/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/report/foreign.h"

#include <string.h>

#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/report/report.h"
#include "convert/gguf/gguf_read.h"
#include "convert/hf/hf_folder.h"
#include "convert/torch/pt.h"

static bool is_safetensors(const char *path)
{
    static const char end[] = ".safetensors";
    size_t n = strlen(path), k = sizeof(end) - 1;
    return n > k && !strcmp(path + n - k, end);
}

bool foreign_is(const char *path)
{
    if (file_is_plain(path))
        return is_safetensors(path) || pt_is(path) || gguf_is(path);
    return hf_folder_is(path);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static uint64_t elements(const struct st_entry *t)
{
    uint64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= (uint64_t)t->size[d];
    return n;
}

static void add_shape(struct buf *b, const struct st_entry *t)
{
    buf_addc(b, '[');
    for (int d = 0; d < t->rank; d++)
        buf_addf(b, d ? ", %lld" : "%lld", (long long)t->size[d]);
    buf_addc(b, ']');
}

static void text_tensors(struct buf *b, const struct st_file *s)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_addf(b, "%-4s %s ", s->entry[i].dtype_name, s->entry[i].name);
        add_shape(b, &s->entry[i]);
        buf_addc(b, '\n');
    }
}

static void json_tensors(struct buf *b, const struct st_file *s, const char *file, bool *first)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_adds(b, *first ? "{" : ",{");
        *first = false;
        report_json_text(b, "name", s->entry[i].name);
        buf_addc(b, ',');
        report_json_text(b, "dtype", s->entry[i].dtype_name);
        buf_addc(b, ',');
        report_json_text(b, "file", file);
        buf_adds(b, ",\"shape\":");
        add_shape(b, &s->entry[i]);
        buf_addc(b, '}');
    }
}

/* "BF16       20 tensors, 5,520 elements" for each type of the files. */
static void add_types(struct buf *b, const struct st_file *const *file, size_t files)
{
    const char *seen[32];
    size_t n = 0;
    for (size_t f = 0; f < files; f++)
        for (size_t i = 0; i < file[f]->n; i++) {
            size_t k = 0;
            while (k < n && strcmp(seen[k], file[f]->entry[i].dtype_name))
                k++;
            if (k == n && n < 32)
                seen[n++] = file[f]->entry[i].dtype_name;
        }
    for (size_t k = 0; k < n; k++) {
        uint64_t sum = 0;
        size_t tensors = 0;
        for (size_t f = 0; f < files; f++)
            for (size_t i = 0; i < file[f]->n; i++)
                if (!strcmp(file[f]->entry[i].dtype_name, seen[k])) {
                    sum += elements(&file[f]->entry[i]);
                    tensors++;
                }
        buf_addf(b, "%-11s %zu tensors, ", seen[k], tensors);
        report_count(b, sum);
        buf_adds(b, " elements\n");
    }
}

/* ---- one file ------------------------------------------------------------------------------ */

static void file_json(const char *path, const char *format, const struct st_file *s, bool tensors,
                      struct buf *b)
{
    bool first = true;
    buf_addc(b, '{');
    report_json_text(b, "path", path);
    buf_addc(b, ',');
    report_json_text(b, "format", format);
    buf_adds(b, ",\"metadata\":{");
    for (size_t i = 0; s->metadata && i < s->metadata->length; i++) {
        buf_adds(b, i ? "," : "");
        report_json_text(b, s->metadata->child[i].key, s->metadata->child[i].string);
    }
    buf_addf(b, "},\"count\":%zu", s->n);
    if (tensors) {
        buf_adds(b, ",\"tensors\":[");
        json_tensors(b, s, path, &first);
        buf_addc(b, ']');
    }
    buf_adds(b, "}\n");
}

static int report_file(const char *path, bool json, bool tensors, struct buf *b, struct err *e)
{
    static const struct {
        const char *name, *shown;
        int (*open)(struct st_file *ret, const char *path, struct err *e);
    } formats[] = {{"safetensors", "safetensors", st_open},
                   {"pytorch", "PyTorch (torch.save)", pt_open},
                   {"gguf", "GGUF", gguf_open}};
    int which = is_safetensors(path) ? 0 : gguf_is(path) ? 2 : 1;
    const char *format = formats[which].name;
    struct st_file s;
    int code = formats[which].open(&s, path, e);
    if (code)
        return code;
    const struct st_file *one = &s;
    if (json) {
        file_json(path, format, &s, tensors, b);
    } else {
        buf_addf(b, "%s\nformat      %s\n", path, formats[which].shown);
        for (size_t i = 0; s.metadata && i < s.metadata->length; i++)
            buf_addf(b, "%-11s %s: %s\n", i ? "" : "metadata", s.metadata->child[i].key,
                     s.metadata->child[i].string);
        add_types(b, &one, 1);
        if (tensors)
            text_tensors(b, &s);
    }
    st_close(&s);
    return 0;
}

/* ---- a folder ------------------------------------------------------------------------------ */

static uint64_t parameters(const struct hf_folder *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->map.globals; i++)
        sum += (uint64_t)(f->map.global[i].size[0] * f->map.global[i].size[1]);
    return sum;
}

static void folder_text(const struct hf_folder *f, bool tensors, struct buf *b)
{
    struct err why;
    const struct st_file *file[1024];
    size_t n = f->shards < 1024 ? f->shards : 1024;
    buf_addf(b, "%s\nformat      Hugging Face, %s%s\n", f->path,
             hf_family_architecture(f->model.family),
             f->meta      ? ", in Meta's files"
             : f->pytorch ? ", in PyTorch's files"
                          : "");
    report_model(b, &f->model.spec, parameters(f));
    if (spec_can_run(&f->model.spec, f->path, &why))
        buf_addf(b, "note        %s\n", why.msg);
    for (size_t i = 0; i < n; i++)
        file[i] = &f->shard[i].st;
    add_types(b, file, n);
    for (size_t i = 0; i < f->npassed; i++)
        buf_addf(b, "ignored     %s: %s\n", f->passed[i].at.entry->name, f->passed[i].why);
    buf_addf(b, "files       %zu\n", f->shards);
    for (size_t i = 0; i < f->shards; i++) {
        uint64_t size = 0;
        file_size(f->shard[i].path, &size, NULL);
        buf_addf(b, "            %12llu  %s\n", (unsigned long long)size, f->shard[i].name);
    }
    for (size_t i = 0; tensors && i < f->shards; i++)
        text_tensors(b, &f->shard[i].st);
}

static void folder_json(const struct hf_folder *f, bool tensors, struct buf *b)
{
    bool first = true;
    buf_addc(b, '{');
    report_json_text(b, "path", f->path);
    buf_addc(b, ',');
    report_json_text(b, "format", "huggingface");
    buf_addc(b, ',');
    report_json_text(b, "architecture", hf_family_architecture(f->model.family));
    buf_adds(b, ",\"model\":");
    spec_to_json(&f->model.spec, b);
    buf_addf(b, ",\"parameters\":%llu,\"files\":[", (unsigned long long)parameters(f));
    for (size_t i = 0; i < f->shards; i++) {
        uint64_t size = 0;
        file_size(f->shard[i].path, &size, NULL);
        buf_adds(b, i ? ",{" : "{");
        report_json_text(b, "name", f->shard[i].name);
        buf_addf(b, ",\"size\":%llu}", (unsigned long long)size);
    }
    buf_addc(b, ']');
    if (tensors) {
        buf_adds(b, ",\"tensors\":[");
        for (size_t i = 0; i < f->shards; i++)
            json_tensors(b, &f->shard[i].st, f->shard[i].name, &first);
        buf_addc(b, ']');
    }
    buf_adds(b, "}\n");
}

int foreign_report(const char *path, bool json, bool tensors, struct buf *out, struct err *e)
{
    static const struct hf_ignore all = {.all = true};
    struct hf_folder *f;
    if (file_is_plain(path))
        return report_file(path, json, tensors, out, e);
    int code = hf_folder_open(path, &all, &f, e);
    if (code)
        return code;
    if (json)
        folder_json(f, tensors, out);
    else
        folder_text(f, tensors, out);
    hf_folder_close(f);
    return 0;
}
