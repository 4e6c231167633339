/* SPDX-License-Identifier: Apache-2.0 */
/* stories: simple varied stories as JSONL, any number of them from a seed. */

#include <ctype.h>
#include <string.h>

#include "base/cli/opt.h"
#include "base/cli/stdout.h"
#include "base/core/buf.h"
#include "base/core/log.h"
#include "base/format/json.h"
#include "base/io/output.h"
#include "base/io/sink.h"
#include "samples/stories/tell.h"

enum { OUT_BYTES = 1 << 16 };

struct options {
    struct opt_common common;
    int64_t seed, documents, id_base;
    const char *bytes, *output;
    bool overwrite;
};

#define AT(field) .offset = offsetof(struct options, field)

static const struct opt rows[] = {
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(seed), .def = "1234", .max = 1e18, .meta = "N",
            .group = "story", .basic = true, .help = "which stories"),
    OPT_ROW(.name = "documents", .type = OPT_INT, AT(documents), .def = "10", .max = 1e18,
            .meta = "N", .group = "story", .basic = true, .help = "how many stories"),
    OPT_ROW(.name = "bytes", .type = OPT_TEXT, AT(bytes), .meta = "N", .group = "story",
            .basic = true, .brief = "write this much; K, M and G count 1024",
            .help = "write whole stories until there are at least so many bytes, instead of a "
                    "number of stories; K, M and G count 1024"),
    OPT_ROW(.name = "id-base", .type = OPT_INT, AT(id_base), .def = "0", .max = 1e18, .meta = "K",
            .group = "story", .basic = true, .help = "begin with story K"),
    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .def = "-", .meta = "FILE",
            .group = "story", .basic = true, .brief = "write to FILE; - is standard output",
            .help = "where they go, when all is written; - is standard output"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "story", .basic = true,
            .help = "replace FILE if it exists"),
    {0},
};

static const struct opt_table table = {
    .program = "stories",
    .help =
        "write simple varied stories as JSONL, one {\"id\": k, \"text\": \"...\"} a line. Story k "
        "depends on the seed and on k alone, so a longer run begins with the lines of a "
        "shorter one",
    .examples = "stories --seed 1234 --bytes 8M --output stories.jsonl",
    .opt = rows,
};

/* "8M" and the like. */
static int parse_bytes(const char *text, uint64_t *ret, struct err *e)
{
    static const char units[] = "KMG";
    uint64_t n = 0;
    bool fits = isdigit((unsigned char)*text);
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++)
        fits = fits && !__builtin_mul_overflow(n, 10, &n) &&
               !__builtin_add_overflow(n, (uint64_t)(*at - '0'), &n);
    const char *unit = *at ? strchr(units, toupper((unsigned char)*at)) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        fits = fits && !__builtin_mul_overflow(n, 1024, &n);
    if (!fits || at[unit != NULL])
        return err_set(e, ERR_USAGE,
                       "--bytes %s: expected a whole number below 2^64, K, M or G after it", text);
    *ret = n;
    return 0;
}

static void put_story(struct buf *out, uint64_t id, const char *text, size_t len)
{
    buf_addf(out, "{\"id\": %llu, \"text\": ", (unsigned long long)id);
    jsonw_string(out, text, len);
    buf_adds(out, "}\n");
}

/* `documents` stories, or as many as it takes to have `bytes` bytes. */
static int write_stories(const struct options *o, uint64_t documents, uint64_t bytes,
                         struct sink *sink, struct err *e)
{
    struct teller *teller = teller_create((uint64_t)o->seed);
    struct buf out = {0};
    uint64_t written = 0;
    int code = 0;
    for (uint64_t k = 0; !code && k < documents && written + out.len < bytes; k++) {
        size_t len;
        uint64_t id = (uint64_t)o->id_base + k;
        const char *text = teller_tell(teller, id, &len);
        put_story(&out, id, text, len);
        if (out.len >= OUT_BYTES) {
            code = sink_write(sink, out.data, out.len, e);
            written += out.len;
            buf_reset(&out);
        }
    }
    if (!code)
        code = sink_write(sink, out.data, out.len, e);
    buf_finish(&out);
    teller_destroy(teller);
    return code;
}

static int run_stories(const struct opts *opts, const struct options *o, struct err *e)
{
    uint64_t documents = (uint64_t)o->documents, bytes = UINT64_MAX;
    if (opts->nfile)
        return err_set(e, ERR_USAGE, "unexpected argument '%s'", opts->file[0]);
    if (o->bytes && opts_origin(opts, "documents") != FROM_DEFAULT)
        return err_set(e, ERR_USAGE, "--documents and --bytes exclude each other");
    int code = o->bytes ? parse_bytes(o->bytes, &bytes, e) : 0;
    if (!code)
        code = output_check(o->output, &(struct output_rule){.overwrite = o->overwrite}, e);
    if (!code)
        code = output_prepare(o->output, e);
    struct sink sink;
    if (code || (code = sink_open(&sink, o->output, e)))
        return code;
    code = write_stories(o, o->bytes ? UINT64_MAX : documents, bytes, &sink, e);
    return sink_close(&sink, code, e);
}

int main(int argc, char **argv)
{
    struct opts opts;
    struct options o = {0};
    struct err e = {0};
    stdio_begin(true);
    int code = opts_init(&opts, &table, &o, argc, argv, &e);
    if (code)
        return log_err(&e);
    if (!opts_answer(&opts, stdout))
        code = run_stories(&opts, &o, &e);
    opts_finish(&opts);
    if (code)
        return log_err(&e);
    return stdout_finish(&e) ? log_err(&e) : 0;
}
