/* SPDX-License-Identifier: Apache-2.0 */
#include "train/deepspeed/deepspeed.h"

#include <math.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/log.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "train/deepspeed/keys.h"
#include "train/deepspeed/relaxed.h"

enum { FILE_MAX = 16 << 20, PATH_SIZE = 256 };
enum fate { USED, IDLE, REJECTED, UNKNOWN, FATES };

/* A file that is being read. */
struct ds_reading {
    struct opts *o;
    const char *file;
    const struct json *root;
    FILE *out; /* of a dry run */
    int n[FATES];
    struct buf idle; /* keys without effect */
    struct err *e;
};

static const struct ds_key *find_key(const char *path)
{
    const struct ds_key *k = ds_keys;
    while (k->path && strcmp(k->path, path) != 0)
        k++;
    return k->path ? k : NULL;
}

/* ---- what is told -------------------------------------------------------------------------- */

static void tell(struct ds_reading *r, enum fate f, const char *path, const char *more)
{
    static const char *const word[FATES] = {"used", "without effect", "not supported", "unknown"};
    r->n[f]++;
    if (r->out)
        fprintf(r->out, "%-15s%s: %s%s%s\n", word[f], r->file, path, *more ? ": " : "", more);
    else if (f == IDLE)
        buf_addf(&r->idle, "%s%s", r->idle.len ? ", " : "", path);
}

static int reject(struct ds_reading *r, const char *path, const char *why)
{
    tell(r, REJECTED, path, why);
    return r->out ? 0 : err_set(r->e, ERR_USAGE, "%s: %s is not supported: %s", r->file, path, why);
}

static int malformed(struct ds_reading *r, const char *path, const char *expected)
{
    return err_set(r->e, ERR_USAGE, "%s: %s: expected %s", r->file, path, expected);
}

/* The key of that block, or of the top, that was probably meant. */
static const char *nearest_key(const char *path)
{
    enum { MOST = 256 };
    const char *names[MOST], *dot = strrchr(path, '.');
    size_t n = 0;
    for (const struct ds_key *k = ds_keys; k->path && n < MOST; k++) {
        const char *end = strrchr(k->path, '.');
        size_t block = dot ? (size_t)(dot - path) : 0;
        if (end ? dot && (size_t)(end - k->path) == block && !strncmp(path, k->path, block) : !dot)
            names[n++] = k->path;
    }
    return opt_nearest_word(names, n, path);
}

static void unknown_key(struct ds_reading *r, const char *path)
{
    const char *near = nearest_key(path);
    struct buf b = {0};
    if (near)
        buf_addf(&b, "perhaps %s", near);
    tell(r, UNKNOWN, path, buf_str(&b));
    if (!r->out && near)
        log_warn("%s: unknown key %s (did you mean %s?)", r->file, path, near);
    else if (!r->out)
        log_warn("%s: unknown key %s", r->file, path);
    buf_finish(&b);
}

/* ---- values -------------------------------------------------------------------------------- */

/* As an option's value; false for an object, an array, null, and a number that is not finite. */
static bool json_text(const struct json *v, struct buf *b)
{
    if (v->kind == JSON_BOOL)
        buf_adds(b, v->boolean ? "true" : "false");
    else if (v->kind == JSON_STRING)
        buf_add(b, v->string, v->length);
    else if (v->kind == JSON_INT ||
             (v->kind == JSON_REAL && v->real == floor(v->real) && fabs(v->real) < 1e15))
        buf_addf(b, "%.0f", v->real);
    else if (v->kind == JSON_REAL)
        jsonw_real(b, v->real);
    return v->kind != JSON_OBJECT && v->kind != JSON_ARRAY && v->kind != JSON_NULL &&
           !(v->kind == JSON_REAL && !isfinite(v->real));
}

static const struct json *at_path(const struct ds_reading *r, const char *block, const char *key)
{
    const struct json *o = json_get(r->root, block);
    return o && key ? json_get(o, key) : o;
}

static bool is_true(const struct json *v)
{
    return v && v->kind == JSON_BOOL && v->boolean;
}

static bool is_auto(const struct json *v)
{
    return v && v->kind == JSON_STRING && !strcmp(v->string, "auto");
}

/* `enabled` of a block; "auto": as the option of the command line says. */
static bool is_enabled(const struct ds_reading *r, const char *block)
{
    const struct json *v = at_path(r, block, "enabled");
    return is_true(v) || (is_auto(v) && opts_is_on(r->o, strcmp(block, "fp16") ? "bf16" : "fp16"));
}

static bool bf16_is_on(const struct ds_reading *r)
{
    return is_enabled(r, "bf16") || is_enabled(r, "bfloat16");
}

/* The block of a key has an `enabled` that says no. */
static bool block_is_off(const struct ds_reading *r, const char *path)
{
    char block[PATH_SIZE];
    const char *dot = strchr(path, '.');
    if (!dot || !strcmp(dot, ".enabled"))
        return false;
    snprintf(block, sizeof(block), "%.*s.enabled", (int)(dot - path), path);
    if (!find_key(block))
        return false;
    block[dot - path] = 0;
    return !is_enabled(r, block);
}

static bool means_off(const struct json *v, const char *off)
{
    struct buf b = {0};
    const struct json *enabled = json_get(v, "enabled");
    bool is = v->kind == JSON_NULL || (v->kind == JSON_BOOL && !v->boolean) ||
              (v->kind == JSON_OBJECT && !v->length) ||
              (enabled && enabled->kind == JSON_BOOL && !enabled->boolean) || is_auto(enabled) ||
              (v->kind == JSON_INT && !v->integer);
    if (!is && off && json_text(v, &b))
        is = !strcmp(buf_str(&b), off);
    buf_finish(&b);
    return is;
}

/* ---- options ------------------------------------------------------------------------------- */

/* `text` NULL: as without the option. */
static int apply_text(struct ds_reading *r, const char *path, const char *option, const char *text)
{
    struct err why;
    char said[PATH_SIZE];
    bool other;
    if (!opts_takes(r->o, option)) {
        const struct opt_foreign *f = opts_foreign(r->o->table, option, strlen(option));
        return reject(r, path, f ? f->why : "there is no such option");
    }
    int code = opts_overrule(r->o, r->file, option, text, &other, &why);
    if (code)
        return err_set(r->e, ERR_USAGE, "%s: %s: %s", r->file, path, why.msg);
    snprintf(said, sizeof(said), "--%s %s", option, text ? text : "dynamic");
    tell(r, USED, path, said);
    if (other && !r->out)
        log_warn("--%s has no effect: %s says %s", option, r->file, text ? text : "dynamic");
    return 0;
}

/* A batch size, which Megatron's option must agree with. */
static int apply_batch(struct ds_reading *r, const char *path, const char *option, const char *text)
{
    struct err why;
    char said[PATH_SIZE];
    bool given = opts_origin(r->o, option) == FROM_FLAG, other = false;
    int code = opts_overrule(r->o, r->file, option, text, &other, &why);
    if (code)
        return err_set(r->e, ERR_USAGE, "%s: %s: %s", r->file, path, why.msg);
    if (given && other)
        return err_set(r->e, ERR_USAGE, "%s: %s is %s, and --%s is another number", r->file, path,
                       text, option);
    snprintf(said, sizeof(said), "--%s %s", option, text);
    tell(r, USED, path, said);
    return 0;
}

static int apply_power(struct ds_reading *r, const struct ds_key *k, const struct json *v)
{
    char text[64];
    if (v->kind != JSON_INT || v->integer < 0 || v->integer > 60)
        return malformed(r, k->path, "an integer from 0 to 60");
    snprintf(text, sizeof(text), "%.17g", ldexp(1, (int)v->integer));
    return apply_text(r, k->path, k->text, text);
}

/* Buckets of ZeRO 2 and 3 are whole layers. */
static bool is_layers(const struct ds_reading *r, const char *option)
{
    const struct json *stage = at_path(r, "zero_optimization", "stage");
    return !strcmp(option, "ddp-bucket-size") && stage && stage->integer > 1;
}

/* A value that is the option's default: it counts where the option is given another one. */
static int apply_default(struct ds_reading *r, const struct ds_key *k)
{
    bool given = opts_takes(r->o, k->text) && opts_origin(r->o, k->text) != FROM_DEFAULT;
    bool enabled_elsewhere = !strcmp(k->text, "bf16") && bf16_is_on(r);
    if (given && !enabled_elsewhere)
        return apply_text(r, k->path, k->text, k->off);
    tell(r, IDLE, k->path, "that is the default");
    return 0;
}

static int apply_option(struct ds_reading *r, const struct ds_key *k, const struct json *v)
{
    struct buf text = {0};
    int code = 0;
    if (!json_text(v, &text))
        code = malformed(r, k->path, v->kind == JSON_REAL ? "a finite number" : "a single value");
    else if (k->use == DS_SCALE && !strcmp(buf_str(&text), "0"))
        code = apply_text(r, k->path, k->text, NULL);
    else if (k->off && !strcmp(buf_str(&text), k->off))
        code = apply_default(r, k);
    else if (is_layers(r, k->text))
        tell(r, IDLE, k->path, "ZeRO 2 and 3 send whole layers");
    else if (k->use == DS_BATCH)
        code = apply_batch(r, k->path, k->text, buf_str(&text));
    else
        code = apply_text(r, k->path, k->text, buf_str(&text));
    buf_finish(&text);
    return code;
}

static int apply_offload(struct ds_reading *r, const struct ds_key *k, const struct json *v)
{
    const struct json *device = json_get(v, "device");
    if (device && device->kind == JSON_STRING && !strcmp(device->string, "nvme"))
        return reject(r, k->path, "nothing is offloaded to disks");
    tell(r, IDLE, k->path, k->text);
    return 0;
}

/* True asks for the times of all phases; false leaves those that the option asks for. */
static int apply_timers(struct ds_reading *r, const struct ds_key *k, const struct json *v)
{
    if (v->kind != JSON_BOOL)
        return malformed(r, k->path, "true or false");
    if (v->boolean)
        return apply_text(r, k->path, k->text, "2");
    tell(r, IDLE, k->path,
         opts_is_on(r->o, k->text) ? "--timing-log-level says what is timed"
                                   : "that is the default");
    return 0;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static int apply_key(struct ds_reading *r, const struct ds_key *k, const struct json *v)
{
    bool fills = is_auto(v);
    if (fills || block_is_off(r, k->path)) {
        tell(r, IDLE, k->path, fills ? "taken from the options" : "the block is not enabled");
        return 0;
    }
    const char *dot = strchr(k->path, '.');
    if (dot && !strcmp(dot, ".enabled") && v->kind != JSON_BOOL)
        return malformed(r, k->path, "true or false");
    if (k->use == DS_OPTION || k->use == DS_SCALE || k->use == DS_BATCH)
        return apply_option(r, k, v);
    if (k->use == DS_POWER)
        return apply_power(r, k, v);
    if (k->use == DS_TIMERS)
        return apply_timers(r, k, v);
    if (k->use == DS_OFFLOAD)
        return apply_offload(r, k, v);
    if (k->use == DS_UNLESS && !means_off(v, k->off))
        return reject(r, k->path, k->text);
    tell(r, IDLE, k->path, k->use == DS_UNLESS ? "that is the default" : k->text);
    return 0;
}

/* The keys of an object: of the top (NULL) or of a block. */
static int apply_object(struct ds_reading *r, const struct json *o, const char *block)
{
    char path[PATH_SIZE];
    int code = 0;
    for (size_t i = 0; i < o->length && !code; i++) {
        const struct json *v = &o->child[i];
        int n =
            snprintf(path, sizeof(path), "%s%s%s", block ? block : "", block ? "." : "", v->key);
        const struct ds_key *k = n < PATH_SIZE ? find_key(path) : NULL;
        if (!k)
            unknown_key(r, path);
        else if (k->use != DS_BLOCK)
            code = apply_key(r, k, v);
        else if (block)
            code = malformed(r, path, "a single value");
        else if (v->kind == JSON_OBJECT)
            code = apply_object(r, v, k->path);
        else
            code = malformed(r, path, "an object");
    }
    return code;
}

/* What DeepSpeed has where the file says nothing. */
static int apply_missing(struct ds_reading *r)
{
    const struct json *scale = at_path(r, "fp16", "loss_scale");
    bool fp16 = is_enabled(r, "fp16");
    int code = 0;
    if (!at_path(r, "zero_optimization", "stage") && opts_origin(r->o, "zero-stage") == FROM_FLAG)
        code = apply_text(r, "zero_optimization.stage (not there)", "zero-stage", "0");
    if (!code && fp16 && opts_origin(r->o, "loss-scale-rule") != FROM_FLAG)
        code = apply_text(r, "fp16 (its rule)", "loss-scale-rule", "deepspeed");
    if (!code && fp16 && (!scale || scale->real == 0) &&
        !at_path(r, "fp16", "initial_scale_power") && opts_takes(r->o, "initial-loss-scale") &&
        opts_origin(r->o, "initial-loss-scale") != FROM_FLAG)
        code = apply_text(r, "fp16.initial_scale_power (not there)", "initial-loss-scale", "65536");
    return code;
}

static int apply_root(struct ds_reading *r)
{
    if (r->root->kind != JSON_OBJECT)
        return err_set(r->e, ERR_USAGE, "%s: expected an object", r->file);
    if (bf16_is_on(r) && is_enabled(r, "fp16"))
        return err_set(r->e, ERR_USAGE, "%s: fp16 and bf16 are both enabled", r->file);
    int code = apply_object(r, r->root, NULL);
    return code ? code : apply_missing(r);
}

static int say_counts(struct ds_reading *r)
{
    int bad = r->n[REJECTED], all = r->n[USED] + r->n[IDLE] + bad + r->n[UNKNOWN];
    if (r->idle.len)
        log_warn("%s: without effect here: %s (%s run --dry-run says why)", r->file,
                 buf_str(&r->idle), r->o->table->program);
    if (!r->out)
        return 0;
    fprintf(r->out, "%s: %d keys: %d used, %d without effect, %d not supported, %d unknown\n",
            r->file, all, r->n[USED], r->n[IDLE], r->n[REJECTED], r->n[UNKNOWN]);
    return bad ? err_set(r->e, ERR_USAGE, "%s: %d of %d keys are not supported", r->file, bad, all)
               : 0;
}

int deepspeed_apply(struct opts *o, const char *path, FILE *out, struct err *e)
{
    struct ds_reading r = {.o = o, .file = path, .out = out, .e = e};
    struct json_doc *doc = NULL;
    struct buf text = {0};
    int code = file_read(path, FILE_MAX, &text, e);
    if (!code) {
        relaxed_to_json(&text);
        code = json_parse(path, text.data, text.len, &doc, e);
    }
    if (!code) {
        r.root = json_root(doc);
        code = apply_root(&r);
    }
    if (!code)
        code = say_counts(&r);
    json_close(doc);
    buf_finish(&text);
    buf_finish(&r.idle);
    return code;
}
