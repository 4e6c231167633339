/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/raw_writer.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "dataset/shard/commit.h"

static int raw_open_file(const struct raw_writer *w, const char *suffix, struct outfile *f,
                         struct err *e)
{
    char *path = mem_printf("%s%s", w->prefix, suffix);
    int code = outfile_open_in(f, path, w->folder, e);
    free(path);
    return code;
}

static int raw_open_files(struct raw_writer *w, struct err *e)
{
    char *idx = mem_printf("%s.idx", w->prefix);
    int code = outdir_create(w->prefix, idx, &w->idx, &w->folder, e);
    free(idx);
    return code || !w->with_bin ? code : raw_open_file(w, ".bin", &w->bin, e);
}

int raw_writer_open(struct raw_writer *w, const char *prefix, bool with_bin, struct err *e)
{
    *w = (struct raw_writer){.with_bin = with_bin, .bin.fd = -1, .idx.fd = -1, .manifest.fd = -1};
    w->prefix = mem_strdup(prefix);
    w->bin_hash = xxh_create();
    w->idx_hash = xxh_create();
    int code = raw_open_files(w, e);
    if (code)
        raw_writer_abort(w);
    return code;
}

int raw_writer_bin(struct raw_writer *w, const void *p, size_t n, struct err *e)
{
    xxh_add(w->bin_hash, p, n);
    return outfile_write(&w->bin, p, n, e);
}

int raw_writer_idx(struct raw_writer *w, const void *p, size_t n, struct err *e)
{
    xxh_add(w->idx_hash, p, n);
    return outfile_write(&w->idx, p, n, e);
}

int raw_writer_head(struct raw_writer *w, enum shard_dtype t, uint64_t nseq, uint64_t ndocs,
                    struct err *e)
{
    unsigned char head[SHARD_HEADER];
    shard_header(head, t, nseq, ndocs);
    return raw_writer_idx(w, head, sizeof(head), e);
}

static int write_manifest(struct raw_writer *w, struct manifest *m, struct err *e)
{
    m->idx_bytes = w->idx.size;
    xxh_text(w->idx_hash, m->idx_xxh);
    if (w->with_bin) {
        m->bin_bytes = w->bin.size;
        xxh_text(w->bin_hash, m->bin_xxh);
    }
    int code = raw_open_file(w, ".manifest.json", &w->manifest, e);
    return code ? code : manifest_write(m, &w->manifest, e);
}

int raw_writer_finish(struct raw_writer *w, struct manifest *m, struct err *e)
{
    struct outfile *const file[COMMIT_FILES] = {&w->bin, &w->manifest, &w->idx};
    int code = w->with_bin ? outfile_sync(&w->bin, e) : 0;
    if (!code)
        code = outfile_sync(&w->idx, e);
    if (!code && m)
        code = write_manifest(w, m, e);
    if (!code)
        code = commit_files(&w->folder, w->prefix, file, e);
    raw_writer_abort(w);
    return code;
}

void raw_writer_abort(struct raw_writer *w)
{
    outfile_abort(&w->bin);
    outfile_abort(&w->idx);
    outfile_abort(&w->manifest);
    if (w->folder)
        rmdir(w->folder);
    free(w->folder);
    xxh_destroy(w->bin_hash);
    xxh_destroy(w->idx_hash);
    free(w->prefix);
    *w = (struct raw_writer){.bin.fd = -1, .idx.fd = -1, .manifest.fd = -1};
}
