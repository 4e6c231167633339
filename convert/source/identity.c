/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/core/hash.h"
#include "base/io/path.h"
#include "convert/hf/hf_adapter.h"

void identity_begin(struct buf *b, const char *verb)
{
    buf_addf(b, "%s by weft %s\n", verb, WEFT_VERSION);
}

void identity_number(struct buf *b, const char *what, int64_t value)
{
    buf_addf(b, "%s %lld\n", what, (long long)value);
}

int identity_file(struct buf *b, const char *path, struct err *e)
{
    struct stat st;
    char *real = realpath(path, NULL);
    if (!real || stat(real, &st)) {
        free(real);
        return err_sys(e, errno, "%s: cannot open", path);
    }
    buf_addf(b, "%s %lld bytes, changed %lld.%09ld\n", real, (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    free(real);
    return 0;
}

int identity_ckpt(struct buf *b, const struct ckpt *c, struct err *e)
{
    char digest[XXH_TEXT], *path = path_join(ckpt_path(c), "manifest.json");
    int code = identity_file(b, path, e);
    if (!code)
        code = xxh_file(path, digest, e);
    if (!code)
        buf_addf(b, "%s\n", digest);
    free(path);
    return code;
}

int identity_folder(struct buf *b, const struct hf_folder *f, struct err *e)
{
    char digest[XXH_TEXT];
    int code = 0;
    for (size_t i = 0; !code && i < f->shards; i++)
        code = identity_file(b, f->shard[i].path, e);
    if (!code && f->adapter)
        code = identity_file(b, f->adapter->path, e);
    if (!code && f->adapter)
        code = identity_file(b, f->adapter->config_path, e);
    xxh_once(f->config.data, f->config.len, digest);
    buf_addf(b, "config.json %s\n", digest);
    return code;
}
