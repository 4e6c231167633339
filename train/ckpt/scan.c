/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/place.h"

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

int ckpt_list(const char *dir, int64_t **ret, size_t *ret_n, struct err *e)
{
    *ret = NULL;
    *ret_n = 0;
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, errno, "%s: cannot open the folder", dir);
    for (struct dirent *en; (en = readdir(d));) {
        int64_t iteration;
        if (!place_iteration(en->d_name, &iteration) &&
            !place_old_iteration(en->d_name, &iteration))
            continue;
        *ret = mem_grow(*ret, *ret_n + 1, sizeof(**ret));
        (*ret)[(*ret_n)++] = iteration;
    }
    closedir(d);
    if (*ret_n)
        qsort(*ret, *ret_n, sizeof(**ret), newest_first);
    size_t n = 0;
    for (size_t i = 0; i < *ret_n; i++) /* one may be there under both names */
        if (!n || (*ret)[n - 1] != (*ret)[i])
            (*ret)[n++] = (*ret)[i];
    *ret_n = n;
    return 0;
}

char *ckpt_folder(const char *dir, int64_t iteration)
{
    char *final = place_final(dir, iteration), *old = place_old(dir, iteration);
    bool replaced = !file_exists(final) && file_exists(old);
    free(replaced ? final : old);
    return replaced ? old : final;
}

void ckpt_skips_finish(struct ckpt_skips *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->at[i].path);
    free(s->at);
    *s = (struct ckpt_skips){0};
}

static int open_verified(const char *path, bool tensors, struct ckpt **ret, struct err *e)
{
    struct ckpt *c;
    int code = ckpt_open(path, &c, e);
    if (code)
        return code;
    code = tensors ? ckpt_verify(c, e) : ckpt_verify_further(c, e);
    if (code)
        ckpt_close(c);
    else
        *ret = c;
    return code;
}

/* The candidate checkpoints. */
struct among {
    int64_t except, below;
    bool tensors; /* are to be verified */
};

/* The newest intact one of them; *ret is NULL if there is none. Skipped ones are added to
 * `skipped`. */
static int find_intact(const char *dir, struct among among, struct ckpt **ret,
                       struct ckpt_skips *skipped, struct err *e)
{
    int64_t *list;
    size_t n;
    int code = ckpt_list(dir, &list, &n, e);
    *ret = NULL;
    for (size_t i = 0; !code && !*ret && i < n; i++) {
        struct err why;
        if (list[i] == among.except || list[i] >= among.below)
            continue;
        char *path = ckpt_folder(dir, list[i]);
        int flaw = open_verified(path, among.tensors, ret, &why);
        if (flaw == ERR_RESOURCE) { /* says nothing of the checkpoint */
            *e = why;
            code = flaw;
        } else if (flaw) {
            skipped->at = mem_grow(skipped->at, skipped->n + 1, sizeof(*skipped->at));
            skipped->at[skipped->n++] = (struct ckpt_skipped){path, why};
            path = NULL;
        }
        free(path);
    }
    free(list);
    return code;
}

static int open_newest(const char *dir, struct among among, struct ckpt **ret,
                       struct ckpt_skips *skipped, struct err *e)
{
    struct ckpt_skips own = {0}, *s = skipped ? skipped : &own;
    *s = (struct ckpt_skips){0};
    int code = find_intact(dir, among, ret, s, e);
    if (!code && !*ret && s->n) {
        struct buf b = {0};
        int flaw = ERR_DATA; /* none is what weft writes; else one is damaged */
        for (size_t i = 0; i < s->n; i++) {
            buf_addf(&b, "%s%s", i ? "; " : "", s->at[i].why.msg);
            if (s->at[i].why.code != ERR_DATA)
                flaw = ERR_INTEGRITY;
        }
        code = err_set(e, flaw, "%s: none of its %zu checkpoints is intact: %s", dir, s->n,
                       buf_str(&b));
        buf_finish(&b);
    }
    ckpt_skips_finish(&own);
    return code;
}

int ckpt_open_newest(const char *dir, struct ckpt **ret, struct ckpt_skips *skipped, struct err *e)
{
    return open_newest(dir, (struct among){-1, INT64_MAX, true}, ret, skipped, e);
}

int ckpt_open_before(const char *dir, int64_t below, struct ckpt **ret, struct ckpt_skips *skipped,
                     struct err *e)
{
    return open_newest(dir, (struct among){-1, below, false}, ret, skipped, e);
}

int ckpt_open_iteration(const char *dir, int64_t iteration, struct ckpt **ret, struct err *e)
{
    char *path = ckpt_folder(dir, iteration);
    int code = open_verified(path, true, ret, e);
    free(path);
    return code == ERR_INTEGRITY || code == ERR_DATA ? ckpt_hint_intact(dir, iteration, e) : code;
}

int ckpt_hint_intact(const char *dir, int64_t iteration, struct err *e)
{
    int code = e->code;
    struct ckpt *other;
    struct ckpt_skips skipped = {0};
    struct err ignored;
    if (!find_intact(dir, (struct among){iteration, INT64_MAX, true}, &other, &skipped, &ignored)) {
        if (other)
            err_hint(e, "%s is the newest intact one", ckpt_path(other));
        else
            err_hint(e, "no other checkpoint in %s is intact", dir);
        ckpt_close(other);
    }
    ckpt_skips_finish(&skipped);
    return code;
}

/* ---- retention ----------------------------------------------------------------------------- */

/* How many of the list stay: up to and with the keep-th whose manifest and sizes are right. */
static size_t count_kept(const char *dir, const int64_t *list, size_t n, int keep, int64_t trusted,
                         bool *ret_safe)
{
    int good = 0;
    size_t i = 0;
    *ret_safe = false;
    for (; i < n && good < keep; i++) {
        struct ckpt *c;
        char *path = ckpt_folder(dir, list[i]);
        if (!ckpt_open(path, &c, NULL)) {
            good++;
            *ret_safe = *ret_safe || list[i] == trusted || !ckpt_verify(c, NULL);
            ckpt_close(c);
        }
        free(path);
    }
    return i;
}

/* Whatever its age. */
static bool is_kept(const struct ckpt_keep *keep, int64_t iteration)
{
    bool kept = keep->every && iteration % keep->every == 0;
    for (int i = 0; i < keep->nbest; i++)
        kept |= keep->best[i] == iteration;
    return kept;
}

int ckpt_retain(const char *dir, const struct ckpt_keep *keep, int64_t trusted, struct err *e)
{
    int64_t *list;
    size_t n;
    bool safe = false;
    BUG_ON(keep->newest < 1, "keep %d", keep->newest);
    place_clean(dir);
    int code = ckpt_list(dir, &list, &n, e);
    if (code)
        return code;
    size_t kept = count_kept(dir, list, n, keep->newest, trusted, &safe);
    for (size_t i = kept; safe && !code && i < n; i++)
        if (!is_kept(keep, list[i]))
            code = place_remove(dir, list[i], e);
    free(list);
    return code;
}
