/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/prefix.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "dataset/shard/commit.h"

static const char *const endings[] = {".idx", ".bin", ".pack", ".manifest.json"};
enum { DATA = 3 }; /* the first three of them make data */

static bool is_data(const char *prefix)
{
    bool found = false;
    commit_finish(prefix, NULL); /* a failure surfaces when the files are opened */
    for (int i = 0; i < DATA && !found; i++) {
        char *path = mem_printf("%s%s", prefix, endings[i]);
        found = file_exists(path) && !file_is_dir(path);
        free(path);
    }
    return found;
}

size_t prefix_length(const char *given)
{
    size_t n = strlen(given);
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        size_t k = strlen(endings[i]);
        if (n > k && !strcmp(given + n - k, endings[i]))
            return n - k;
    }
    return n;
}

/* The prefix if `given` is a file of a shard, else NULL. */
static char *without_ending(const char *given)
{
    char *stem = mem_strndup(given, prefix_length(given));
    if (strlen(stem) < strlen(given) && is_data(stem))
        return stem;
    free(stem);
    return NULL;
}

static int prefix_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Some of the prefixes in a folder, for a hint. */
static void list_folder(const char *folder, struct buf *ret)
{
    enum { SHOWN = 4 };
    char **name = NULL;
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *en; d && (en = readdir(d));) {
        size_t k = strlen(en->d_name);
        if (en->d_name[0] == '.' || k < 5 || strcmp(en->d_name + k - 4, ".idx") != 0)
            continue;
        char *stem = mem_strndup(en->d_name, k - 4);
        name = mem_grow(name, n + 1, sizeof(*name));
        name[n++] = path_join(folder, stem);
        free(stem);
    }
    if (d)
        closedir(d);
    if (n)
        qsort(name, n, sizeof(*name), prefix_by_bytes);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        buf_addf(ret, "%s%s", i ? ", " : "", name[i]);
    if (n > SHOWN)
        buf_addf(ret, " and %zu more", n - SHOWN);
    names_free(name, n);
}

static int is_folder(const char *given, struct err *e)
{
    struct buf b = {0};
    list_folder(given, &b);
    err_set(e, ERR_IO, "%s is a folder, not the prefix of token data", given);
    if (b.len)
        err_hint(e, "in it: %s", buf_str(&b));
    else
        err_hint(e, "it has no token data (PREFIX.bin, PREFIX.idx)");
    buf_finish(&b);
    return ERR_IO;
}

int prefix_find(const char *given, char **ret, struct err *e)
{
    *ret = is_data(given) ? mem_strdup(given) : without_ending(given);
    if (*ret)
        return 0;
    char *longer = mem_printf("%s_text_document", given);
    bool meant = is_data(longer);
    int code;
    if (meant) {
        code = err_set(e, ERR_IO, "%s.bin and %s.idx do not exist", given, given);
        err_hint(e, "did you mean %s?", longer);
    } else if (file_is_dir(given)) {
        code = is_folder(given, e);
    } else if (file_exists(given)) {
        code =
            err_set(e, ERR_DATA,
                    "%s is a file, not the prefix of token data (PREFIX.bin, PREFIX.idx)", given);
        err_hint(e,
                 WEFT_PREFIX "prep build --input %s --tokenizer T --output-prefix P makes "
                             "P_text_document of text",
                 given);
    } else if (!(code = path_refuse_address(given, e))) {
        code = err_set(e, ERR_IO, "%s.bin and %s.idx do not exist", given, given);
        err_hint(e, WEFT_PREFIX "prep build makes them of text");
    }
    free(longer);
    return code;
}
