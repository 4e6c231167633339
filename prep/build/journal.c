/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/build/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { FORMAT = 1, JOURNAL_MAX = 1 << 30 };

/* ---- the lock ------------------------------------------------------------------------------- */

/* -1 without an error: a process that just ended removed the folder. */
static int lock_once(const char *folder, const char *path, struct err *e, int *ret_code)
{
    *ret_code = 0;
    if (mkdir(folder, 0777) && errno != EEXIST) {
        *ret_code = err_sys(e, errno, "%s: cannot create the folder", folder);
        return -1;
    }
    int fd;
    bool held;
    *ret_code = file_lock(path, &fd, &held, e);
    if (held)
        *ret_code = ERR_USAGE;
    return fd;
}

int build_journal_lock(const char *folder, const char *prefix, int *ret_lock, struct err *e)
{
    char *path = path_join(folder, "lock");
    int code;
    do
        *ret_lock = lock_once(folder, path, e, &code);
    while (*ret_lock < 0 && !code);
    free(path);
    if (code == ERR_USAGE)
        err_set(e, ERR_USAGE, "%s: is being built by another process", prefix);
    return code;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The members of `counts`, in order. */
static const struct {
    const char *name;
    size_t at;
} count_row[] = {
    {"documents", offsetof(struct build_counts, documents)},
    {"tokens", offsetof(struct build_counts, tokens)},
    {"bad", offsetof(struct build_counts, bad)},
    {"filtered", offsetof(struct build_counts, filtered)},
    {"read", offsetof(struct build_counts, read)},
    {"specials", offsetof(struct build_counts, specials)},
    {"eods", offsetof(struct build_counts, eods)},
};

enum { COUNTS = sizeof(count_row) / sizeof(*count_row) };

static void put_count(struct buf *b, const char *key, uint64_t n, const char *end)
{
    buf_addf(b, "\"%s\": %" PRIu64 "%s", key, n, end);
}

static void put_shards(struct buf *b, const struct build_journal *j)
{
    buf_adds(b, "  \"shards\": [");
    for (size_t i = 0; i < j->nshards; i++) {
        const struct shard_mark *m = &j->shard[i];
        buf_adds(b, i ? ",\n    {" : "\n    {");
        put_count(b, "bin_bytes", m->bin_bytes, ", ");
        put_count(b, "length_bytes", m->length_bytes, ", ");
        put_count(b, "sequences", m->sequences, ", ");
        put_count(b, "documents", m->documents, ", ");
        put_count(b, "tokens", m->tokens, ", ");
        buf_addf(b, "\"xxh3_128\": \"%s\"}", m->bin_xxh);
    }
    buf_adds(b, "],\n");
}

static void put_all(struct buf *b, const struct build_journal *j)
{
    buf_addf(b, "{\n  \"weft_build\": %d,\n  \"finished\": %s,\n  ", FORMAT,
             j->finished ? "true" : "false");
    put_count(b, "input", j->input, ", ");
    put_count(b, "end", j->end, ", ");
    put_count(b, "line", j->line, ", ");
    put_count(b, "records", j->records, ",\n  ");
    put_count(b, "notes", j->notes, ", ");
    put_count(b, "bad_bytes", j->bad_bytes, ",\n  ");
    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t n;
        memcpy(&n, (const char *)&j->counts + count_row[i].at, sizeof(n));
        put_count(b, count_row[i].name, n, ", ");
    }
    buf_adds(b, "\n");
    put_shards(b, j);
    if (j->npieces)
        buf_adds(b, "  \"pieces\": [");
    for (size_t i = 0; i < j->npieces; i++)
        buf_addf(b, "%" PRIu64 "%s", j->pieces[i], i + 1 < j->npieces ? ", " : "],\n");
    buf_adds(b, "  \"mtimes\": [");
    for (size_t i = 0; i < j->work.ninputs; i++)
        buf_addf(b, "%s%" PRId64, i ? ", " : "", j->mtime[i]);
    buf_adds(b, "],\n\"work\": ");
    manifest_text(&j->work, b);
    buf_adds(b, "}\n");
}

int build_journal_write(const char *folder, const struct build_journal *j, struct err *e)
{
    struct buf b = {0};
    char *path = path_join(folder, "journal.json");
    put_all(&b, j);
    int code = file_replace(path, b.data, b.len, e);
    free(path);
    buf_finish(&b);
    return code;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int need_count(const struct json *o, const char *path, const char *key, uint64_t *ret,
                      struct err *e)
{
    int64_t n;
    int code = json_need_int(o, path, key, &n, e);
    if (!code && n < 0)
        code = err_set(e, ERR_DATA, "%s: \"%s\" is negative", path, key);
    *ret = code ? 0 : (uint64_t)n;
    return code;
}

static int read_shard(const struct json *o, const char *path, struct shard_mark *m, struct err *e)
{
    const char *xxh;
    int code = need_count(o, path, "bin_bytes", &m->bin_bytes, e);
    if (!code)
        code = need_count(o, path, "length_bytes", &m->length_bytes, e);
    if (!code)
        code = need_count(o, path, "sequences", &m->sequences, e);
    if (!code)
        code = need_count(o, path, "documents", &m->documents, e);
    if (!code)
        code = need_count(o, path, "tokens", &m->tokens, e);
    if (!code)
        code = json_need_str(o, path, "xxh3_128", &xxh, e);
    if (!code && (strlen(xxh) != XXH_TEXT - 1 || xxh[strspn(xxh, "0123456789abcdef")]))
        code = err_set(e, ERR_DATA, "%s: \"xxh3_128\" is not such a digest", path);
    if (!code)
        memcpy(m->bin_xxh, xxh, XXH_TEXT);
    return code;
}

static int need_list(const struct json *root, const char *path, const char *key,
                     const struct json **ret, struct err *e)
{
    *ret = json_get(root, key);
    if (*ret && (*ret)->kind == JSON_ARRAY)
        return 0;
    return err_set(e, ERR_DATA, "%s: \"%s\" is missing or not an array", path, key);
}

static int read_pieces(const struct json *root, const char *path, struct build_journal *j,
                       struct err *e)
{
    const struct json *list;
    if (!json_get(root, "pieces"))
        return 0;
    int code = need_list(root, path, "pieces", &list, e);
    if (code)
        return code;
    uint64_t *pieces = arena_take(&j->arena, list->length, sizeof(*pieces));
    for (size_t i = 0; i < list->length; i++) {
        const struct json *n = &list->child[i];
        if (n->kind != JSON_INT || n->integer < 1 || n->integer > BUILD_PIECES)
            return err_set(e, ERR_DATA, "%s: \"pieces\" has an element out of range", path);
        pieces[i] = (uint64_t)n->integer;
    }
    j->pieces = pieces;
    j->npieces = list->length;
    return 0;
}

static int read_lists(const struct json *root, const char *path, struct build_journal *j,
                      struct err *e)
{
    const struct json *list;
    int code = need_list(root, path, "shards", &list, e);
    if (code)
        return code;
    struct shard_mark *mark = arena_take(&j->arena, list->length, sizeof(*mark));
    j->shard = mark;
    j->nshards = list->length;
    for (size_t i = 0; i < list->length && !code; i++)
        code = read_shard(&list->child[i], path, &mark[i], e);
    if (!code)
        code = read_pieces(root, path, j, e);
    if (!code)
        code = need_list(root, path, "mtimes", &list, e);
    if (!code && list->length != j->work.ninputs)
        code = err_set(e, ERR_DATA, "%s: has %zu times of %zu inputs", path, list->length,
                       j->work.ninputs);
    if (code)
        return code;
    int64_t *mtime = arena_take(&j->arena, list->length, sizeof(*mtime));
    for (size_t i = 0; i < list->length; i++)
        mtime[i] = list->child[i].integer;
    j->mtime = mtime;
    return 0;
}

static int read_counts(const struct json *root, const char *path, struct build_journal *j,
                       struct err *e)
{
    uint64_t input = 0;
    int code = need_count(root, path, "input", &input, e);
    j->input = (size_t)input;
    if (!code)
        code = need_count(root, path, "end", &j->end, e);
    if (!code)
        code = need_count(root, path, "line", &j->line, e);
    if (!code)
        code = need_count(root, path, "records", &j->records, e);
    if (!code)
        code = need_count(root, path, "notes", &j->notes, e);
    if (!code)
        code = need_count(root, path, "bad_bytes", &j->bad_bytes, e);
    for (size_t i = 0; i < COUNTS && !code; i++) {
        uint64_t n;
        code = need_count(root, path, count_row[i].name, &n, e);
        memcpy((char *)&j->counts + count_row[i].at, &n, sizeof(n));
    }
    if (!code && input >= j->work.ninputs)
        code = err_set(e, ERR_DATA, "%s: \"input\" is %" PRIu64 " of %zu", path, input,
                       j->work.ninputs);
    return code;
}

static int journal_read_all(const struct json *root, const char *path, struct build_journal *j,
                            struct err *e)
{
    const struct json *format = json_get(root, "weft_build"), *work = json_get(root, "work"),
                      *finished = json_get(root, "finished");
    if (!format || format->kind != JSON_INT || format->integer != FORMAT || !work || !finished)
        return err_set(e, ERR_DATA, "%s: is not a journal of version %d", path, FORMAT);
    j->finished = finished->boolean;
    int code = manifest_from(work, path, &j->work, e);
    if (!code)
        code = read_lists(root, path, j, e);
    return code ? code : read_counts(root, path, j, e);
}

int build_journal_read(const char *folder, struct build_journal *ret, bool *ret_found,
                       struct err *e)
{
    char *path = path_join(folder, "journal.json");
    struct json_doc *doc = NULL;
    *ret = (struct build_journal){0};
    *ret_found = file_exists(path);
    int code = *ret_found ? json_open_plain(path, JOURNAL_MAX, &doc, e) : 0;
    if (doc)
        code = journal_read_all(json_root(doc), path, ret, e);
    json_close(doc);
    free(path);
    if (code)
        build_journal_close(ret);
    return code;
}

void build_journal_close(struct build_journal *j)
{
    manifest_close(&j->work);
    arena_finish(&j->arena);
    *j = (struct build_journal){0};
}
