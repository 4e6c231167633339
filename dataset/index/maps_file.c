/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/deepspeed_name.h"
#include "dataset/index/maps_plan.h"
#include "dataset/index/maps_walk.h"
#include "dataset/index/cache_stamp.h"

/* ---- files -------------------------------------------------------------------------------- */

char *maps_path(const struct maps_spec *spec, const char *prefix, enum maps_file f)
{
    static const char *const kind[MAPS_FILES] = {"doc", "sample", "shuffle"};
    BUG_ON(spec->one_epoch || !spec->extra || spec->keep_last, "such maps of %s have no name",
           prefix);
    return mem_printf("%s_%s_indexmap_%" PRIu64 "ns_%" PRIu32 "sl_%" PRIu32 "s_%s_idx.npy", prefix,
                      part_name(spec->part), spec->samples, spec->seq_length, spec->seed, kind[f]);
}

void maps_beside(const struct maps_spec *spec, const char *prefix, struct maps_at *ret)
{
    *ret = (struct maps_at){0};
    for (int i = 0; i < MAPS_FILES; i++)
        ret->path[i] = maps_path(spec, prefix, (enum maps_file)i);
    ret->stamp =
        mem_printf("%s_%s_indexmap_%" PRIu64 "ns_%" PRIu32 "sl_%" PRIu32 "s_seal.json", prefix,
                   part_name(spec->part), spec->samples, spec->seq_length, spec->seed);
}

void maps_in_cache(struct core_folder *in, enum part part, const struct buf *text,
                   struct maps_at *ret)
{
    static const char *const kind[MAPS_FILES] = {"document_index.npy", "sample_index.npy",
                                                 "shuffle_index.npy"};
    static const char class[] = "GPTDataset";
    const char *folder = core_folder_path(in);
    char md5[MD5_TEXT];
    *ret = (struct maps_at){.folder = mem_strdup(folder)};
    core_find(in, class, part, text, md5);
    for (int i = 0; i < MAPS_FILES; i++)
        ret->path[i] = core_path(folder, md5, class, part, kind[i]);
    ret->stamp = core_path(folder, md5, class, part, "seal.json");
    ret->description = core_path(folder, md5, class, part, "description.txt");
    buf_add(&ret->text, text->data, text->len);
}

static bool all_there(const struct maps_at *at)
{
    bool there = file_exists(at->description);
    for (int i = 0; i < MAPS_FILES; i++)
        there &= file_exists(at->path[i]);
    return there;
}

static void name_deepspeed(const char *folder, const struct buf *text, struct maps_at *ret)
{
    static const char *const kind[MAPS_FILES] = {"_doc_idx.npy", "_sample_idx.npy",
                                                 "_shuffle_idx.npy"};
    *ret = (struct maps_at){.folder = mem_strdup(folder),
                            .stamp = deepspeed_path(folder, text, "_seal.json"),
                            .description = deepspeed_path(folder, text, ".dsc")};
    for (int i = 0; i < MAPS_FILES; i++)
        ret->path[i] = deepspeed_path(folder, text, kind[i]);
    buf_add(&ret->text, text->data, text->len);
}

void maps_of_deepspeed(const char *prefix, const char *cache, const struct buf *text,
                       struct maps_at *ret)
{
    char *parent = path_dir(prefix), *beside = path_join(parent, "index-cache");
    name_deepspeed(beside, text, ret);
    if (cache && !all_there(ret)) {
        maps_at_finish(ret);
        name_deepspeed(cache, text, ret);
    }
    free(parent);
    free(beside);
}

void maps_at_finish(struct maps_at *at)
{
    for (int i = 0; i < MAPS_FILES; i++)
        free(at->path[i]);
    free(at->folder);
    free(at->stamp);
    free(at->description);
    buf_finish(&at->text);
    *at = (struct maps_at){0};
}

static int hint_where(int code, struct err *e)
{
    if (code == ERR_IO && e && !e->hint[0])
        err_hint(e, "index maps are kept next to the data: --data-cache-path FOLDER keeps them "
                    "elsewhere, and train run --no-index-cache keeps none");
    return code;
}

int maps_save_at(const struct maps *m, const struct maps_at *at, struct err *e)
{
    const struct {
        enum npy_dtype dtype;
        int ndim;
        uint64_t shape[2];
        const void *data;
    } f[MAPS_FILES] = {
        {NPY_I4, 1, {m->ndoc}, m->doc},
        {m->wide_sample ? NPY_I8 : NPY_I4, 2, {m->nsample + 1, 2}, m->sample},
        {m->wide_shuffle ? NPY_I8 : NPY_U4, 1, {m->nsample}, m->shuffle},
    };
    int code = at->folder ? file_mkdirs(at->folder, e) : 0;
    for (int i = 0; i < MAPS_FILES && !code; i++)
        code = npy_write(at->path[i], f[i].dtype, f[i].ndim, f[i].shape, f[i].data, e);
    /* last: Megatron-LM takes the files as complete once all of them exist */
    if (!code && at->description && !file_exists(at->description))
        code = file_replace_remade(at->description, at->text.data, at->text.len, e);
    return code ? hint_where(code, e) : 0;
}

static int maps_may_be_saved(const struct maps_at *at, struct err *e)
{
    int code = file_try(at->path[0], e);
    return code ? hint_where(code, e) : 0;
}

/* ---- checking files against the .idx --------------------------------------------------------- */

static int unfit(const struct npy *a, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: %s", a->map.path, why);
}

static int check_shapes(struct maps *m, struct err *e)
{
    const struct npy *doc = &m->file[MAPS_DOC], *sample = &m->file[MAPS_SAMPLE],
                     *shuffle = &m->file[MAPS_SHUFFLE];
    if (doc->dtype != NPY_I4 || doc->ndim != 1 || doc->shape[0] != m->ndoc)
        return unfit(doc, "is not one i4 for each document of each epoch", e);
    if ((sample->dtype != NPY_I4 && sample->dtype != NPY_I8) || sample->ndim != 2 ||
        sample->shape[0] != m->nsample + 1 || sample->shape[1] != 2)
        return unfit(sample, "is not two i4 or i8 for each sample and one more", e);
    if ((shuffle->dtype != NPY_U4 && shuffle->dtype != NPY_I8) || shuffle->ndim != 1 ||
        shuffle->shape[0] != m->nsample)
        return unfit(shuffle, "is not one u4 or i8 for each sample", e);
    for (int i = 0; i < MAPS_FILES; i++)
        if (m->file[i].at % npy_width(m->file[i].dtype))
            return unfit(&m->file[i], "its elements are not aligned", e);
    m->wide_sample = sample->dtype == NPY_I8;
    m->wide_shuffle = shuffle->dtype == NPY_I8;
    return 0;
}

/* Hashes a number to 64 bits, so that sums differ for different sets of numbers. */
static uint64_t spread(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t range_sum(uint64_t first, uint64_t end)
{
    uint64_t sum = 0;
    for (uint64_t i = first; i < end; i++)
        sum += spread(i);
    return sum;
}

static int check_doc(const struct maps_spec *q, const struct maps_plan *p, const struct maps *m,
                     struct err *e)
{
    uint64_t cut = p->separate ? p->ndoc - p->nseq : p->ndoc, sum[2] = {0};
    for (uint64_t i = 0; i < p->ndoc; i++) {
        uint64_t v = (uint64_t)(int64_t)m->doc[i];
        if (v < q->first || v >= q->end)
            return unfit(&m->file[MAPS_DOC], "names a document of another share", e);
        sum[i >= cut] += spread(v);
    }
    uint64_t epoch = range_sum(q->first, q->end);
    if (sum[0] != epoch * (p->epochs - p->separate) || sum[1] != epoch * p->separate)
        return unfit(&m->file[MAPS_DOC], "does not name each document once in each epoch", e);
    return 0;
}

static int check_sample(const struct maps_spec *q, const struct shard *s, const struct maps *m,
                        struct err *e)
{
    struct maps_walk w = {.spec = q, .shard = s, .maps = m};
    int code = maps_walk_init(&w, e);
    if (code)
        return code;
    maps_walk_lengths(&w);
    maps_walk_documents(&w);
    maps_walk_run(&w);
    bool fits = maps_walk_finish(&w) && (m->wide_sample || m->ndoc <= INT32_MAX);
    return fits ? 0
                : unfit(&m->file[MAPS_SAMPLE], "does not follow the lengths of the documents", e);
}

static int check_shuffle(const struct maps_plan *p, const struct maps *m, struct err *e)
{
    uint64_t cut = p->separate ? p->split : p->nsample, sum[2] = {0};
    for (uint64_t i = 0; i < p->nsample; i++)
        sum[i >= cut] += spread((uint64_t)maps_order(m, i));
    if (sum[0] != range_sum(0, cut) || sum[1] != range_sum(cut, p->nsample))
        return unfit(&m->file[MAPS_SHUFFLE], "does not name each sample once", e);
    return 0;
}

static int check_contents(const struct maps_spec *q, const struct maps_plan *p,
                          const struct shard *s, struct maps *m, struct err *e)
{
    uint64_t tokens;
    int code = maps_tokens(s, q->first, q->end, &tokens, e);
    if (!code && tokens != p->tokens)
        code = err_set(e, ERR_DATA, "%s: its offsets do not follow its lengths", s->idx.path);
    if (!code)
        code = check_doc(q, p, m, e);
    if (!code)
        code = check_sample(q, s, m, e);
    if (!code)
        code = check_shuffle(p, m, e);
    return code;
}

static int check_all(const struct maps_spec *q, const struct shard *s, bool trusted, struct maps *m,
                     struct err *e)
{
    struct maps_plan p;
    uint64_t tokens;
    int code = maps_tokens_between(s, q->first, q->end, &tokens, e);
    if (!code)
        code = maps_plan_make(q, s->prefix, tokens, &p, e);
    if (code)
        return code;
    maps_take_plan(m, &p);
    code = check_shapes(m, e);
    if (code || trusted)
        return code;
    code = maps_touch(m, e);
    if (!code)
        code = check_contents(q, &p, s, m, e);
    for (int i = 0; i < MAPS_FILES; i++)
        if (map_check(&m->file[i].map, NULL))
            code = map_check(&m->file[i].map, e);
    return code;
}

static int open_at(const struct maps_spec *spec, const struct shard *s, const struct maps_at *at,
                   enum cache_stamp_state stamp, struct maps *ret, struct err *e)
{
    *ret = (struct maps){.late = maps_late_create()};
    int code = 0;
    for (int i = 0; i < MAPS_FILES && !code; i++)
        code = npy_open_late(&ret->file[i], at->path[i], e);
    if (!code && stamp == CACHE_STAMP_OTHER)
        code = err_set(e, ERR_DATA, "%s: was made from another .idx", at->path[MAPS_DOC]);
    if (!code)
        code = check_all(spec, s, stamp == CACHE_STAMP_HOLDS, ret, e);
    if (code)
        maps_close(ret);
    else
        maps_leave(ret);
    return code;
}

/* ---- files, or built ------------------------------------------------------------------------ */

static enum cache_stamp_state maps_file_look(const struct shard *s, const struct maps_at *at)
{
    return cache_stamp_check(at->stamp, &s->idx, (const char *const *)at->path, MAPS_FILES);
}

/* The files if valid, stamped for next time; a read-only folder has no stamps. */
static int reuse(const struct maps_spec *spec, const struct shard *s, const struct maps_at *at,
                 bool save, struct maps *ret, struct err *e)
{
    enum cache_stamp_state stamp = maps_file_look(s, at);
    int code = open_at(spec, s, at, stamp, ret, e);
    if (!code && save && stamp != CACHE_STAMP_HOLDS)
        cache_stamp_write(at->stamp, &s->idx, (const char *const *)at->path, MAPS_FILES, NULL);
    return code;
}

/*
 * One of many ranks builds, the others wait for it. The lock is on the .idx itself, so that no lock
 * file remains; where there are no locks each rank builds, and replaces the files by equal ones.
 */
static int lock(const struct shard *s)
{
    int fd = open(s->idx.path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
        ;
    return fd;
}

static bool any_there(const struct maps_at *at)
{
    bool there = false;
    for (int i = 0; i < MAPS_FILES; i++)
        there |= file_exists(at->path[i]);
    return there;
}

/* Saved maps are mapped as files: all ranks of a host share them in the page cache. */
static int build(const struct maps_spec *spec, const struct shard *s, const struct maps_at *at,
                 bool save, struct maps *ret, struct err *e)
{
    int code = maps_build(spec, s, ret, e);
    if (code || !save)
        return code;
    code = maps_save_at(ret, at, e);
    if (!code)
        code = cache_stamp_write(at->stamp, &s->idx, (const char *const *)at->path, MAPS_FILES, e);
    maps_close(ret);
    return code ? code : open_at(spec, s, at, CACHE_STAMP_HOLDS, ret, e);
}

int maps_obtain_at(const struct maps_spec *spec, const struct shard *s, const struct maps_at *at,
                   struct maps_wish wish, struct maps *ret, struct maps_found *ret_found,
                   struct err *e)
{
    struct err misfit = {0};
    bool *reused = &ret_found->reused;
    *reused = !wish.rebuild && !reuse(spec, s, at, wish.save && !wish.trial, ret, &misfit);
    snprintf(ret_found->why, sizeof(ret_found->why), "%s", any_there(at) ? misfit.msg : "");
    if (*reused)
        return 0;
    if (wish.save && wish.trial && maps_may_be_saved(at, e))
        return e->code;
    if (!wish.save || wish.trial)
        return build(spec, s, at, false, ret, e);
    int fd = lock(s), code = 0;
    *reused = !wish.rebuild && !reuse(spec, s, at, true, ret, NULL);
    if (!*reused)
        code = build(spec, s, at, true, ret, e);
    if (fd >= 0)
        close(fd);
    return code;
}
