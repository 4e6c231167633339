/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/torch/pt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "convert/torch/pickle.h"
#include "convert/torch/pt_view.h"
#include "convert/torch/zip.h"

enum { NESTING_MAX = 32, VISITS_MAX = 4 << 20 };

/* Every name that a pickle of tensors may have but those of types, which dtype.h has. */
enum role { ORDERED, REBUILD, REBUILD_V3, WRAP, UNTYPED, OTHER, STORAGE, TYPE };
static const struct {
    const char *name;
    enum role role;
} named[] = {
    {"collections.OrderedDict", ORDERED},
    {"torch._utils._rebuild_tensor", REBUILD},
    {"torch._utils._rebuild_tensor_v2", REBUILD},
    {"torch._utils._rebuild_tensor_v3", REBUILD_V3},
    {"torch._utils._rebuild_parameter", WRAP},
    {"torch._utils._rebuild_parameter_with_state", WRAP},
    {"torch.nn.parameter.Parameter", WRAP},
    {"torch.storage.UntypedStorage", UNTYPED},
    {"torch.UntypedStorage", UNTYPED},
    {"torch.Size", OTHER},
    {"torch.device", OTHER},
};
enum { NAMED = sizeof(named) / sizeof(named[0]) };

/* Behind the rows of `named` each type has two indices: of its storage class, and of its own name.
 */
static int64_t find_global(const char *name)
{
    for (int64_t i = 0; i < NAMED; i++)
        if (!strcmp(name, named[i].name))
            return i;
    if (strncmp(name, "torch.", 6) != 0)
        return -1;
    for (int64_t i = 0; dtype_rows[i].name; i++) {
        const struct dtype_row *r = &dtype_rows[i];
        if (r->storage && !strcmp(name + 6, r->storage))
            return NAMED + 2 * i;
        if (r->word && !strcmp(name + 6, r->word))
            return NAMED + 2 * i + 1;
    }
    return -1;
}

static enum role global_role(int64_t index)
{
    return index < NAMED ? named[index].role : (index - NAMED) % 2 ? TYPE : STORAGE;
}

/* Of a STORAGE or a TYPE. */
static const struct dtype_row *global_type(int64_t index)
{
    return &dtype_rows[(index - NAMED) / 2];
}

static const struct pickle_globals globals = {find_global, 0};

struct pt_reader {
    const char *name; /* of the file */
    const struct zip *zip;
    const char *root; /* "archive/": what names of members begin with */
    struct pt_view *view;
    size_t n, cap, visits;
    struct buf key; /* of the value at work */
    struct arena *arena;
    struct err *e;
};

/* ---- storages and tensors ------------------------------------------------------------------- */

static int bad(struct pt_reader *r, const char *why)
{
    return err_set(r->e, ERR_DATA, "%s: tensor '%.200s': %s", r->name, buf_str(&r->key), why);
}

static bool is_global(const struct pickle_value *v, enum role role)
{
    return v->kind == PICKLE_GLOBAL && global_role(v->integer) == role;
}

/* ("storage", class, key, location, elements): where its bytes lie, and their type if it has one */
static int read_storage(struct pt_reader *r, const struct pickle_value *v, struct pt_view *t,
                        uint64_t *ret_bytes)
{
    const struct pickle_value *id = v->kind == PICKLE_PERSISTENT ? v->child[0] : v;
    bool fine = v->kind == PICKLE_PERSISTENT && id->kind == PICKLE_TUPLE && id->n == 5;
    const struct pickle_value *const *p = (const struct pickle_value *const *)id->child;
    fine = fine && p[0]->kind == PICKLE_TEXT && !strcmp(p[0]->text, "storage") &&
           (is_global(p[1], STORAGE) || is_global(p[1], UNTYPED)) && p[2]->kind == PICKLE_TEXT &&
           p[4]->kind == PICKLE_INT && p[4]->integer >= 0;
    if (!fine)
        return bad(r, "its storage is malformed");
    char *name = arena_printf(r->arena, "%sdata/%s", r->root, p[2]->text);
    const struct zip_member *m = zip_find(r->zip, name);
    if (!m)
        return err_set(r->e, ERR_DATA, "%s: tensor '%.200s': the archive has no member '%.200s'",
                       r->name, buf_str(&r->key), name);
    if (!m->stored)
        return bad(r, "its bytes in the archive are compressed, expected stored ones");
    uint64_t bytes = (uint64_t)p[4]->integer;
    if (is_global(p[1], STORAGE)) {
        st_set_type(&t->entry, global_type(p[1]->integer));
        if (!checked_mul(bytes, (uint64_t)t->entry.bits / 8, &bytes))
            bytes = UINT64_MAX;
    }
    if (bytes > m->size)
        return err_set(r->e, ERR_DATA,
                       "%s: tensor '%.200s': its storage has %llu bytes in the archive, expected "
                       "%llu",
                       r->name, buf_str(&r->key), (unsigned long long)m->size,
                       (unsigned long long)bytes);
    t->entry.begin = m->at;
    *ret_bytes = bytes;
    return 0;
}

static bool read_counts(const struct pickle_value *v, int64_t *ret, int *ret_n)
{
    bool fine = v->kind == PICKLE_TUPLE && v->n <= ST_RANK_MAX;
    for (size_t i = 0; fine && i < v->n; i++) {
        fine = v->child[i]->kind == PICKLE_INT && v->child[i]->integer >= 0;
        ret[i] = v->child[i]->integer;
    }
    *ret_n = (int)v->n;
    return fine;
}

/* The bytes of all elements; false: above 2^63. Where the last one lies is in *ret_last. */
static bool measure(const struct pt_view *t, uint64_t offset, uint64_t *ret_bytes,
                    uint64_t *ret_last)
{
    const struct st_entry *s = &t->entry;
    uint64_t n = 1, last = offset, step;
    for (int d = 0; d < s->rank; d++) {
        if (!checked_mul(n, (uint64_t)s->size[d], &n))
            return false;
        if (s->size[d] && (!checked_mul((uint64_t)s->size[d] - 1, (uint64_t)t->stride[d], &step) ||
                           !checked_add(last, step, &last)))
            return false;
    }
    *ret_last = last;
    return checked_mul(n, (uint64_t)s->bits / 8, ret_bytes) && *ret_bytes <= INT64_MAX / 2;
}

/* A tensor that is negated or conjugated when it is read, which no model's weights are. */
static bool is_lazy(const struct pickle_value *metadata)
{
    return metadata->kind == PICKLE_DICT && metadata->n;
}

/* (storage, offset, size, stride, requires_grad, hooks[, type][, metadata]) */
static int read_view(struct pt_reader *r, bool v3, const struct pickle_value *args,
                     struct pt_view *t)
{
    const struct pickle_value *const *p = (const struct pickle_value *const *)args->child;
    uint64_t bytes = 0, all = 0, last = 0, offset, width;
    int strides = 0;
    if (args->n < (v3 ? 7U : 4U) || p[1]->kind != PICKLE_INT || p[1]->integer < 0 ||
        !read_counts(p[2], t->entry.size, &t->entry.rank) ||
        !read_counts(p[3], t->stride, &strides) || strides != t->entry.rank ||
        (v3 && !is_global(p[6], TYPE)))
        return bad(r, "sizes, strides or type are malformed");
    if (args->n > (v3 ? 7U : 6U) && is_lazy(p[v3 ? 7 : 6]))
        return bad(r, "it is negated or conjugated where it is read, which weft does not do");
    int code = read_storage(r, p[0], t, &bytes);
    if (code)
        return code;
    if (v3)
        st_set_type(&t->entry, global_type(p[6]->integer));
    if (!t->entry.bits)
        return bad(r, "its storage has no type");
    width = (uint64_t)t->entry.bits / 8;
    offset = (uint64_t)p[1]->integer;
    if (!measure(t, offset, &all, &last) || (all && last >= bytes / width))
        return bad(r, "its sizes and strides reach beyond its storage");
    t->entry.begin += all ? offset * width : 0;
    t->entry.end = t->entry.begin + all;
    return 0;
}

/* What a call makes, if it is a tensor. */
static int read_call(struct pt_reader *r, const struct pickle_value *v, struct pt_view *t,
                     bool *ret)
{
    for (int depth = 0; v->kind == PICKLE_CALL && is_global(v->child[0], WRAP); depth++) {
        if (!v->child[1]->n || depth == NESTING_MAX)
            return bad(r, "a parameter without a tensor");
        v = v->child[1]->child[0];
    }
    *ret = v->kind == PICKLE_CALL &&
           (is_global(v->child[0], REBUILD) || is_global(v->child[0], REBUILD_V3));
    return *ret ? read_view(r, is_global(v->child[0], REBUILD_V3), v->child[1], t) : 0;
}

/* ---- the tree ------------------------------------------------------------------------------- */

static int pt_add_tensor(struct pt_reader *r, const struct pickle_value *v)
{
    struct pt_view t = {.entry = {.name = NULL}};
    bool some = false;
    int code = read_call(r, v, &t, &some);
    if (code || !some)
        return code;
    if (r->key.len > ST_NAME_MAX)
        return bad(r, "a name of more than 1024 bytes");
    t.entry.name = arena_strndup(r->arena, r->key.data, r->key.len);
    if (strlen(t.entry.name) != r->key.len)
        return bad(r, "a NUL in the name");
    if (r->n == r->cap)
        r->view = mem_grow(r->view, r->cap = r->cap ? 2 * r->cap : 64, sizeof(*r->view));
    r->view[r->n++] = t;
    return 0;
}

/* Puts a key behind those before it; false: it is neither a text nor a number. */
static bool add_key(struct buf *b, const struct pickle_value *key)
{
    if (key->kind != PICKLE_TEXT && key->kind != PICKLE_INT)
        return false;
    if (b->len)
        buf_addc(b, '.');
    if (key->kind == PICKLE_TEXT)
        buf_add(b, key->text, key->n);
    else
        buf_addf(b, "%lld", (long long)key->integer);
    return true;
}

static int add_tree(struct pt_reader *r, const struct pickle_value *v, int depth)
{
    bool dict = v->kind == PICKLE_DICT, list = v->kind == PICKLE_LIST || v->kind == PICKLE_TUPLE;
    size_t before = r->key.len;
    int code = 0;
    if (++r->visits > VISITS_MAX || depth > NESTING_MAX)
        return err_set(r->e, ERR_DATA, "%s: its pickle holds more values than files of tensors do",
                       r->name);
    if (v->kind == PICKLE_CALL)
        return pt_add_tensor(r, v);
    for (size_t i = 0; !code && (dict || list) && i < v->n; i += dict ? 2 : 1) {
        struct pickle_value at = {.kind = PICKLE_INT, .integer = (int64_t)i};
        if (r->key.len <= ST_NAME_MAX && add_key(&r->key, dict ? v->child[i] : &at))
            code = add_tree(r, v->child[dict ? i + 1 : i], depth + 1);
        r->key.len = before;
    }
    return code;
}

static bool holds_tensors(const struct pickle_value *v)
{
    for (size_t i = 0; v->kind == PICKLE_DICT && i + 1 < v->n; i += 2)
        if (v->child[i + 1]->kind == PICKLE_CALL)
            return true;
    return false;
}

/* The dictionary that is meant: the value itself, or the only one in it that has tensors. */
static const struct pickle_value *state_of(const struct pickle_value *v)
{
    const struct pickle_value *inner = NULL;
    size_t n = 0;
    for (size_t i = 0; v->kind == PICKLE_DICT && i + 1 < v->n; i += 2)
        if (v->child[i + 1]->kind == PICKLE_DICT) {
            inner = v->child[i + 1];
            n++;
        }
    return n == 1 && !holds_tensors(v) && holds_tensors(inner) ? inner : v;
}

/* ---- the archive ---------------------------------------------------------------------------- */

static int check_order(const struct zip_bytes *b, const struct zip *z, const char *root,
                       struct err *e)
{
    char text[8] = {0}, *name = mem_printf("%sbyteorder", root);
    const struct zip_member *m = zip_find(z, name);
    int code = 0;
    if (m)
        code = b->read(b, m->at, text, m->size < 7 ? (size_t)m->size : 7, e);
    if (!code && m && strcmp(text, "little") != 0)
        code = err_set(e, ERR_DATA, "%s: its byte order is '%s', expected little", b->name, text);
    free(name);
    return code;
}

/* "archive/" of "archive/data.pkl" */
static int find_root(const struct zip_bytes *b, const struct zip *z, struct arena *a,
                     const char **ret, const struct zip_member **ret_pickle, struct err *e)
{
    static const char end[] = "/data.pkl", script[] = "/constants.pkl";
    *ret = NULL;
    for (size_t i = 0; i < z->n; i++) {
        const char *name = z->member[i].name, *slash = strchr(name, '/');
        if (slash && !strcmp(slash, script)) {
            err_set(e, ERR_DATA, "%s: a TorchScript archive, which holds code", b->name);
            return err_hint(e, "save the tensors alone: torch.save(model.state_dict(), ...)");
        }
        if (!slash || strcmp(slash, end) != 0)
            continue;
        if (*ret)
            return err_set(e, ERR_DATA, "%s: more than one member data.pkl", b->name);
        *ret = arena_strndup(a, name, (size_t)(slash - name) + 1);
        *ret_pickle = &z->member[i];
    }
    if (!*ret)
        return err_set(e, ERR_DATA, "%s: a zip archive without data.pkl: not a file of torch.save",
                       b->name);
    if (!(*ret_pickle)->stored)
        return err_set(e, ERR_DATA, "%s: data.pkl is compressed, expected stored bytes", b->name);
    return check_order(b, z, *ret, e);
}

/* The members that may hold tensors: from now on what is read of them is noted. */
static void take_members(struct pt_own *own, const struct zip *z, struct st_file *s)
{
    own->member = mem_new(z->n + 1, sizeof(*own->member));
    for (size_t i = 0; i < z->n; i++) {
        const struct zip_member *m = &z->member[i];
        if (m->stored)
            own->member[own->members++] = (struct pt_member){
                arena_strndup(&own->arena, m->name, strlen(m->name)), m->at, m->size, m->crc};
    }
    s->saw = pt_saw;
    s->check = pt_check;
}

/* The pickle's own sum; a file that is cut or changed there names tensors that it does not have. */
static int check_pickle(const struct zip_bytes *b, const struct zip_member *m, const void *text,
                        struct err *e)
{
    uint32_t is = (uint32_t)crc32_z(0, text, (size_t)m->size);
    if (!m->crc || is == m->crc)
        return 0;
    return err_set(e, ERR_INTEGRITY,
                   "%s: the bytes of zip member '%.200s' have the CRC-32 %08x, the archive says "
                   "%08x",
                   b->name, m->name, is, m->crc);
}

/* Fills s->entry from the pickle. */
static int read_archive(const struct zip_bytes *b, struct pt_own *own, struct st_file *s,
                        struct err *e)
{
    struct zip z;
    struct pickle_value *v = NULL;
    struct pt_reader r = {.name = b->name, .arena = &own->arena, .e = e, .zip = &z};
    const struct zip_member *pickle = NULL;
    struct arena values = {0};
    void *text = NULL;
    int code = zip_open(&z, b, e);
    if (code)
        return code;
    code = find_root(b, &z, &own->arena, &r.root, &pickle, e);
    if (!code && pickle->size > PICKLE_MAX)
        code = err_set(e, ERR_DATA, "%s: data.pkl has %llu bytes, more than %d", b->name,
                       (unsigned long long)pickle->size, PICKLE_MAX);
    if (!code)
        code = mem_try((size_t)pickle->size + 1, 1, "a pickle", &text, e);
    if (!code)
        code = b->read(b, pickle->at, text, (size_t)pickle->size, e);
    if (!code)
        code = s->path ? check_pickle(b, pickle, text, e) : 0; /* mutated ones are parsed, too */
    if (!code)
        code = pickle_read(&globals, b->name, text, (size_t)pickle->size, &values, &v, e);
    if (!code)
        code = add_tree(&r, state_of(v), 0);
    if (!code)
        code = pt_views_take(own, b->name, r.view, r.n, s, e);
    if (!code)
        take_members(own, &z, s);
    free(r.view);
    buf_finish(&r.key);
    arena_finish(&values);
    free(text);
    zip_finish(&z);
    return code;
}

/* ---- opening -------------------------------------------------------------------------------- */

static const unsigned char legacy_magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c,
                                             0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
enum { HEAD = 263 }; /* bytes that tell formats apart */

static bool is_tar(const unsigned char *p, size_t n)
{
    return n >= HEAD && !memcmp(p + 257, "ustar", 5);
}

static bool is_legacy(const unsigned char *p, size_t n)
{
    return n >= sizeof(legacy_magic) && !memcmp(p, legacy_magic, sizeof(legacy_magic));
}

/* What a file is that is not such an archive, from its first bytes. */
static int check_head(const char *name, const unsigned char *p, size_t n, struct err *e)
{
    static const char lfs[] = "version https://git-lfs";
    if (n >= sizeof(lfs) - 1 && !memcmp(p, lfs, sizeof(lfs) - 1)) {
        err_set(e, ERR_DATA, "%s: this is a pointer of Git LFS, not the file itself", name);
        return err_hint(e, "git lfs pull fetches it");
    }
    if (!is_legacy(p, n) && !is_tar(p, n))
        return 0;
    err_set(e, ERR_DATA, "%s: the format of PyTorch before 1.6%s, which weft does not read", name,
            is_tar(p, n) ? " (tar)" : "");
    return err_hint(e, "load it with torch.load and save it again with torch.save");
}

static int parse(struct st_file *s, const struct zip_bytes *b, struct err *e)
{
    unsigned char head[HEAD];
    size_t n = b->size < HEAD ? (size_t)b->size : HEAD;
    int code = b->read(b, 0, head, n, e);
    if (!code)
        code = check_head(b->name, head, n, e);
    s->data_size = b->size;
    return code ? code : read_archive(b, pt_views_begin(s), s, e);
}

static int read_memory(const struct zip_bytes *b, uint64_t at, void *p, size_t n, struct err *e)
{
    (void)e;
    if (n)
        memcpy(p, (const char *)b->arg + at, n);
    return 0;
}

int pt_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n, struct err *e)
{
    const struct zip_bytes b = {.name = name, .size = n, .read = read_memory, .arg = p};
    struct st_file s = {.fd = -1};
    int code = parse(&s, &b, e);
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

static int read_file(const struct zip_bytes *b, uint64_t at, void *p, size_t n, struct err *e)
{
    return st_bytes(b->arg, at, p, n, e);
}

int pt_open(struct st_file *ret, const char *path, struct err *e)
{
    struct st_file s = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat st;
    int code = 0;
    if (s.fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    s.path = mem_strdup(path);
    if (fstat(s.fd, &st))
        code = err_sys(e, errno, "%s: cannot open", path);
    else if (!S_ISREG(st.st_mode))
        code = err_set(e, ERR_IO, "%s: is not a file", path);
    const struct zip_bytes b = {path, code ? 0 : (uint64_t)st.st_size, read_file, &s};
    if (!code)
        code = parse(&s, &b, e);
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

bool pt_is(const char *path)
{
    unsigned char p[HEAD] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : pread(fd, p, sizeof(p), 0);
    if (fd >= 0)
        close(fd);
    return n > 3 && (!memcmp(p, "PK\3\4", 4) || is_legacy(p, (size_t)n) || is_tar(p, (size_t)n));
}
