/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/path.h"
#include "dataset/tools/merge.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static int merge(const char *const *prefix, size_t n, const char *output, struct merge_report *r,
                 struct err *e)
{
    const struct merge_request q = {.prefix = prefix, .n = n, .output = output, .overwrite = true};
    return merge_run(&q, r, e);
}

/* Documents of a stream of lengths, [from, end) of them, in one shard. */
static void write_some(const char *prefix, uint32_t from, uint32_t end)
{
    struct err e;
    struct shard_writer w;
    T_OK(shard_writer_open(&w, prefix, 60000, &e), &e);
    for (uint32_t d = from; d < end; d++) {
        for (uint32_t k = 0; k < t_rand(1, d) % 3; k++) {
            int32_t id[40];
            uint32_t n = t_rand(2, 3 * d + k) % 40;
            for (uint32_t i = 0; i < n; i++)
                id[i] = (int32_t)(t_rand(3, d) % 60000);
            T_OK(add_sequence(&w, id, n, &e), &e);
        }
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
}

static void same_files(const char *a, const char *b, const char *suffix)
{
    struct err e;
    char *x = mem_printf("%s%s", a, suffix), *y = mem_printf("%s%s", b, suffix);
    struct buf p = {0}, q = {0};
    T_OK(file_read(x, 1 << 28, &p, &e), &e);
    T_OK(file_read(y, 1 << 28, &q, &e), &e);
    T_EQ(p.len, q.len);
    T_MEM(p.data, q.data, p.len);
    buf_finish(&p);
    buf_finish(&q);
    free(x);
    free(y);
}

/* Cut anywhere, also into shards of nothing, the parts give what one writer would have written. */
static void parts_give_the_whole(void)
{
    enum { DOCS = 30000 };
    struct err e;
    struct merge_report r;
    write_some(t_path("whole"), 0, DOCS);
    for (uint32_t round = 0; round < 6; round++) {
        const char *part[7];
        uint32_t at = 0;
        for (uint32_t i = 0; i < 7; i++) {
            char name[16];
            uint32_t end = i == 6 ? DOCS : at + t_rand(round, i) % (DOCS / 7);
            end = t_rand(round, i) % 4 || i == 6 ? end : at;
            snprintf(name, sizeof(name), "part%u", i);
            part[i] = t_path(name);
            write_some(part[i], at, end);
            at = end;
        }
        T_OK(merge(part, 7, t_path("m"), &r, &e), &e);
        T_EQ(r.documents, DOCS);
        same_files(t_path("m"), t_path("whole"), ".bin");
        same_files(t_path("m"), t_path("whole"), ".idx");
    }
}

static void put(const char *name, const void *p, size_t n)
{
    struct err e;
    T_OK(file_replace(t_path(name), p, n, &e), &e);
}

/* A multimodal .idx of sequences with one token each, one for each document. */
static void write_modes(const char *name, uint64_t n, unsigned char mode)
{
    struct buf b = {0};
    char path[32];
    unsigned char word[8];
    buf_add(&b, "MMIDIDX\0\0", 9);
    buf_add(&b, "\1\0\0\0\0\0\0\0\x8", 9);
    store_u64(word, n);
    buf_add(&b, word, 8);
    store_u64(word, n + 1);
    buf_add(&b, word, 8);
    for (uint64_t i = 0; i < n; i++)
        buf_add(&b, "\1\0\0\0", 4);
    for (int k = 2; k; k--) /* offsets; documents */
        for (uint64_t i = 0; i < n + (k == 1); i++) {
            store_u64(word, (uint64_t)k * i);
            buf_add(&b, word, 8);
        }
    for (uint64_t i = 0; i < n; i++)
        buf_addc(&b, (char)mode);
    snprintf(path, sizeof(path), "%s.idx", name);
    put(path, b.data, b.len);
    snprintf(path, sizeof(path), "%s.bin", name);
    buf_reset(&b);
    for (uint64_t i = 0; i < n; i++)
        buf_add(&b, "\7\0", 2);
    put(path, b.data, b.len);
    buf_finish(&b);
}

static void modes_are_kept(void)
{
    struct err e;
    struct merge_report r;
    struct shard s;
    write_modes("x", 2, 1);
    write_modes("y", 3, 4);
    const char *two[] = {t_path("x"), t_path("y")};
    T_OK(merge(two, 2, t_path("xy"), &r, &e), &e);
    T_OK(shard_open(&s, t_path("xy"), &e), &e);
    T_CHECK(s.has_modes);
    T_MEM(s.doc + 8 * 6, "\1\1\4\4\4", 5);
    shard_close(&s);
    write_some(t_path("plain"), 0, 20);
    const char *mixed[] = {t_path("x"), t_path("plain")};
    T_ERR(merge(mixed, 2, t_path("xp"), &r, &e), &e, ERR_USAGE, "modes");
    T_CHECK(!file_exists(t_path("xp.idx")));
}

static void what_does_not_fit_is_refused(void)
{
    struct err e;
    struct merge_report r;
    write_some(t_path("a"), 0, 9);
    write_counting(t_path("wide"), (uint32_t[]){3}, 1);
    const char *types[] = {t_path("a"), t_path("wide")};
    T_ERR(merge(types, 2, t_path("o"), &r, &e), &e, ERR_USAGE, "type i32");
    const char *self[] = {t_path("wide"), t_path("a")};
    T_ERR(merge(self, 2, t_path("a"), &r, &e), &e, ERR_USAGE, "both");
    const struct merge_request keep = {.prefix = types, .n = 1, .output = t_path("wide")};
    T_ERR(merge_run(&keep, &r, &e), &e, ERR_USAGE, "already");
    T_ERR(merge(types, 0, t_path("o"), &r, &e), &e, ERR_USAGE, "no shard");
    const char *none[] = {t_path("a"), t_path("nothing")};
    T_ERR(merge(none, 2, t_path("o"), &r, &e), &e, ERR_IO, "nothing");
    T_CHECK(!file_exists(t_path("o.idx")));
}

/* Lengths inside that do not give the .bin: nothing of it is written. */
static void a_bad_shard_is_refused(void)
{
    struct err e;
    struct merge_report r;
    struct buf b = {0};
    write_counting(t_path("bad"), (uint32_t[]){3, 4, 5}, 3);
    T_OK(file_read(t_path("bad.idx"), 1000, &b, &e), &e);
    b.data[38] = 5;
    put("bad.idx", b.data, b.len);
    const char *one[] = {t_path("bad")};
    T_ERR(merge(one, 1, t_path("o"), &r, &e), &e, ERR_DATA, "bad.bin");
    b.data[38] = 4;
    b.data[41] = (char)0x80;
    put("bad.idx", b.data, b.len);
    T_ERR(merge(one, 1, t_path("o"), &r, &e), &e, ERR_DATA, "length");
    b.data[41] = 0;
    b.data[b.len - 16] = 7; /* the second document ends after the last sequence */
    put("bad.idx", b.data, b.len);
    T_ERR(merge(one, 1, t_path("o"), &r, &e), &e, ERR_DATA, "document");
    b.data[b.len - 16] = 2;
    b.data[34 + 12 + 8] = 99; /* a wrong offset inside: recomputed */
    put("bad.idx", b.data, b.len);
    T_OK(merge(one, 1, t_path("o"), &r, &e), &e);
    write_counting(t_path("good"), (uint32_t[]){3, 4, 5}, 3);
    same_files(t_path("o"), t_path("good"), ".idx");
    buf_finish(&b);
}

static void write_known(const char *prefix, const char *digest, bool append_eod, const char *path)
{
    struct err e;
    struct shard_writer w;
    const struct manifest_input in = {.path = path, .bytes = 7, .documents = 1};
    const struct manifest_option option[] = {{"json-key", "text"}, {"path", path}};
    struct manifest m = {.weft_version = "t",
                         .tokenizer_type = "NullTokenizer",
                         .vocab_size = 10,
                         .eod = 9,
                         .append_eod = append_eod,
                         .inputs = &in,
                         .ninputs = 1,
                         .options = option,
                         .noptions = 2,
                         .bad_records = 2};
    memcpy(m.digest, digest, sizeof(m.digest));
    T_OK(shard_writer_open(&w, prefix, 10, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1, 9}, 2, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, &m, &e), &e);
}

static void manifests_are_merged(void)
{
    static const char one[] = "1111111111111111111111111111111111111111111111111111111111111111";
    static const char two[] = "2222222222222222222222222222222222222222222222222222222222222222";
    struct err e;
    struct merge_report r;
    struct manifest m;
    struct shard s;
    bool found;
    write_known(t_path("ka"), one, true, "a.jsonl");
    write_known(t_path("kb"), one, true, "b.jsonl");
    write_known(t_path("kc"), two, true, "c.jsonl");
    write_known(t_path("kd"), one, false, "d.jsonl");
    const char *ab[] = {t_path("ka"), t_path("kb")};
    T_OK(merge(ab, 2, t_path("kab"), &r, &e), &e);
    T_EQ(r.unknown, 0);
    T_OK(manifest_read(t_path("kab"), &m, &found, &e), &e);
    T_STR(m.digest, one);
    T_EQ(m.ninputs, 2);
    T_STR(m.inputs[1].path, "b.jsonl");
    T_EQ(m.bad_records, 4);
    T_EQ(m.tokens, 4);
    T_EQ(m.noptions, 1);
    T_STR(m.options[0].name, "json-key");
    T_CHECK(m.append_eod);
    T_OK(shard_open(&s, t_path("kab"), &e), &e);
    T_OK(manifest_fits_shard(&m, &s, &e), &e);
    T_OK(manifest_verify(&m, &s, &e), &e);
    shard_close(&s);
    manifest_close(&m);
    const char *ac[] = {t_path("ka"), t_path("kc")};
    T_ERR(merge(ac, 2, t_path("kac"), &r, &e), &e, ERR_USAGE, "222222222222");
    const char *ad[] = {t_path("ka"), t_path("kd")};
    T_OK(merge(ad, 2, t_path("kad"), &r, &e), &e);
    T_CHECK(r.mixed_eod);
    write_some(t_path("foreign"), 0, 5);
    const char *af[] = {t_path("ka"), t_path("foreign")};
    T_OK(merge(af, 2, t_path("kaf"), &r, &e), &e);
    T_EQ(r.unknown, 1);
    T_OK(manifest_read(t_path("kaf"), &m, &found, &e), &e);
    T_STR(m.digest, "");
    T_EQ(m.vocab_size, 0);
    T_EQ(m.ninputs, 2);
    manifest_close(&m);
}

static void packed_sets_are_refused(void)
{
    struct err e;
    struct merge_report r;
    write_some(t_path("pk"), 0, 9);
    put("pk.pack", "WEFTPACK", 8);
    const char *one[] = {t_path("pk")};
    T_ERR(merge(one, 1, t_path("o"), &r, &e), &e, ERR_USAGE, "pk.pack");
}

static void shrink(void *arg, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    T_EQ(truncate(arg, 100), 0);
}

/* A .bin that is cut while it is copied: an error that names it, and no output. */
static void a_shard_that_shrinks_is_told(void)
{
    struct err e;
    struct merge_report r;
    write_counting(t_path("big"), (uint32_t[]){900000}, 1);
    const char *one[] = {t_path("big")};
    const struct merge_request q = {.prefix = one,
                                    .n = 1,
                                    .output = t_path("shrunk"),
                                    .progress = shrink,
                                    .arg = (void *)(uintptr_t)t_path("big.bin")};
    T_ERR(merge_run(&q, &r, &e), &e, ERR_IO, "big.bin: shrank below");
    T_CHECK(!file_exists(t_path("shrunk.idx")) && !file_exists(t_path("shrunk.bin")));
}

static void shards_are_found(void)
{
    struct err e;
    char **name;
    size_t n;
    T_OK(file_mkdirs(t_path("dir"), &e), &e);
    const char *dir[] = {t_path("dir")};
    T_ERR(merge_find(dir, 1, &name, &n, &e), &e, ERR_IO, "no .idx");
    write_some(t_path("dir/p_10"), 0, 3);
    write_some(t_path("dir/p_2"), 3, 6);
    put("dir/p_2.manifest.json", "", 0);
    T_OK(merge_find(dir, 1, &name, &n, &e), &e);
    T_EQ(n, 2);
    T_CHECK(strstr(name[0], "p_10") && strstr(name[1], "p_2"));
    names_free(name, n);
    const char *three[] = {t_path("dir/p_2.idx"), t_path("dir/p_*"), t_path("x.bin")};
    T_OK(merge_find(three, 3, &name, &n, &e), &e);
    T_EQ(n, 4);
    T_STR(name[0], name[2]);
    T_STR(name[3], t_path("x"));
    names_free(name, n);
    put("dir/z.bin", "", 0);
    T_ERR(merge_find(dir, 1, &name, &n, &e), &e, ERR_DATA, "z.bin: has no .idx");
}

T_MAIN(T_CASE(parts_give_the_whole), T_CASE(modes_are_kept), T_CASE(what_does_not_fit_is_refused),
       T_CASE(a_bad_shard_is_refused), T_CASE(manifests_are_merged),
       T_CASE(packed_sets_are_refused), T_CASE(a_shard_that_shrinks_is_told),
       T_CASE(shards_are_found))
