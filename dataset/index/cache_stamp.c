/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/cache_stamp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "base/core/hash.h"
#include "base/io/path.h"

enum { CACHE_STAMP_MAX = 1 << 20 };

static const char digest_key[] = "\"xxh3_128\": \"";

static bool put_file(const char *path, bool first, struct buf *b)
{
    struct stat st;
    if (stat(path, &st))
        return false;
    buf_addf(b, "%s\n  [%lld, %llu, %lld%09ld, %lld%09ld]", first ? "" : ",", (long long)st.st_size,
             (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
             (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    return true;
}

/* The stamp of the present state; false if a file is missing. */
static bool put_state(const struct map *idx, const char *digest, const char *const *file, size_t n,
                      struct buf *b)
{
    bool there = true;
    buf_adds(b, "{\"weft_seal\": 1,\n");
    if (idx)
        buf_addf(b, " \"idx\": {\"bytes\": %zu, %s%s\"},\n", idx->size, digest_key, digest);
    buf_adds(b, " \"looks\": [");
    if (idx)
        there = put_file(idx->path, true, b);
    for (size_t i = 0; i < n; i++)
        there &= put_file(file[i], !idx && !i, b);
    buf_adds(b, "]}\n");
    return there;
}

/* The digest of the .idx, which may not be mapped yet; "" if it cannot be read. */
static void digest_of(const struct map *idx, char ret[XXH_TEXT])
{
    struct map own = {.slot = -1};
    ret[0] = '\0';
    if (idx->data)
        xxh_once(idx->data, idx->size, ret);
    else if (!map_open(&own, idx->path, NULL)) {
        xxh_once(own.data, own.size, ret);
        if (map_check(&own, NULL))
            ret[0] = '\0';
        map_close(&own);
    }
}

enum cache_stamp_state cache_stamp_check(const char *path, const struct map *idx,
                                         const char *const *file, size_t n)
{
    struct buf was = {0}, is = {0};
    char digest[XXH_TEXT] = "", now[XXH_TEXT];
    enum cache_stamp_state state = CACHE_STAMP_NONE;
    if (file_exists(path) && !file_read(path, CACHE_STAMP_MAX, &was, NULL)) {
        const char *at = strstr(buf_str(&was), digest_key);
        if (at && strlen(at) > sizeof(digest_key) + XXH_TEXT)
            memcpy(digest, at + sizeof(digest_key) - 1, XXH_TEXT - 1);
        bool there = put_state(idx, digest, file, n, &is);
        if (there && was.len == is.len && !memcmp(was.data, is.data, is.len))
            state = CACHE_STAMP_HOLDS;
        else if (!idx)
            state = CACHE_STAMP_STALE;
        else if (digest[0]) {
            digest_of(idx, now);
            state = strcmp(now, digest) ? CACHE_STAMP_OTHER : CACHE_STAMP_STALE;
        }
    }
    buf_finish(&was);
    buf_finish(&is);
    return state;
}

int cache_stamp_write(const char *path, const struct map *idx, const char *const *file, size_t n,
                      struct err *e)
{
    struct buf b = {0};
    char digest[XXH_TEXT] = "";
    if (idx)
        digest_of(idx, digest);
    int code = idx ? map_check(idx, e) : 0;
    if (!code && idx && !digest[0])
        code = err_set(e, ERR_IO, "%s: can no longer be read", idx->path);
    if (!code && put_state(idx, digest, file, n, &b))
        code = file_replace_remade(path, b.data, b.len, e);
    buf_finish(&b);
    return code;
}
