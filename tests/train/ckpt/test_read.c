/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/core/hash.h"
#include "base/io/path.h"
#include "tests/train/ckpt/sample.h"
#include "train/ckpt/manifest.h"
#include "train/ckpt/safetensors.h"

static const char *fresh(const char *name)
{
    const char *dir = t_path(name);
    struct err e;
    T_OK(file_remove_tree(dir, &e), &e);
    return dir;
}

/* A sample under NAME, opened. */
static struct ckpt *opened(const char *name, int64_t iteration)
{
    struct err e;
    struct ckpt *c;
    T_OK(sample_save(fresh(name), iteration, &e), &e);
    T_OK(ckpt_open_iteration(t_path(name), iteration, &c, &e), &e);
    return c;
}

static void boxes_of_any_cut(void)
{
    struct err e;
    struct ckpt *c = opened("cut", 3);
    const struct sample_tensor *s = &sample_tensors[2]; /* [6, 4], stored in three boxes */
    for (uint64_t i = 0; i < 300; i++) {
        struct box b;
        for (int d = 0; d < 2; d++) {
            b.begin[d] = t_rand(1, 4 * i + (uint64_t)d) % s->size[d];
            b.count[d] = t_rand(1, 4 * i + 2 + (uint64_t)d) % (s->size[d] - b.begin[d] + 1);
        }
        double got[100];
        int64_t stride = b.count[1] + t_rand(2, i) % 3;
        for (int k = 0; k < 100; k++)
            got[k] = -1;
        struct box_mem to = {got, DTYPE_F64, b, stride};
        T_OK(ckpt_read_box(c, CKPT_EXP_AVG, s->name, 2, s->size, to, &e), &e);
        for (int64_t k = 0; k < b.count[0] * stride; k++) {
            int64_t row = b.begin[0] + k / (stride ? stride : 1), col = b.begin[1];
            col += stride ? k % stride : 0;
            bool inside = stride && k % stride < b.count[1];
            T_CHECK(got[k] == (inside ? (double)sample_value(3, 1, 2, row * 4 + col) : -1));
        }
    }
    ckpt_close(c);
}

static void what_does_not_fit_is_named(void)
{
    struct err e;
    struct ckpt *c = opened("fit", 3);
    float x[64];
    int32_t i[64];
    int64_t size[2] = {5, 7}, wrong[2] = {5, 8}, vector[1] = {9};
    struct box_mem to = {x, DTYPE_F32, {{0, 0}, {5, 7}}, 7},
                   ints = {i, DTYPE_I32, {{0, 0}, {5, 7}}, 7};
    T_ERR(ckpt_read_box(c, CKPT_PARAM, "embed.weights", 2, size, to, &e), &e, ERR_USAGE,
          "has no param 'embed.weights'");
    T_ERR(ckpt_read_box(c, CKPT_EXP_AVG, "embed.weight", 2, wrong, to, &e), &e, ERR_USAGE,
          "exp_avg 'embed.weight' is [5, 7], the model wants [5, 8]");
    T_ERR(ckpt_read_box(c, CKPT_PARAM, "embed.weight", 1, vector, to, &e), &e, ERR_USAGE,
          "is [5, 7], the model wants [9]");
    T_ERR(ckpt_read_box(c, CKPT_PARAM, "embed.weight", 2, size, ints, &e), &e, ERR_USAGE,
          "is F32, which cannot become I32");
    ckpt_close(c);
}

static void tensors_are_listed_in_order(void)
{
    struct ckpt *c = opened("list", 3);
    T_EQ(ckpt_tensors(c), 12);
    for (size_t i = 0; i < 12; i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        T_STR(t->group, sample_groups[i / 4]);
        T_EQ(t->dtype, DTYPE_F32);
        T_CHECK(ckpt_find(c, t->group, t->name) == t);
        if (i)
            T_CHECK(ckpt_manifest_order(t[-1].group, t[-1].name, t->group, t->name) < 0);
    }
    T_EQ(ckpt_find(c, CKPT_PARAM, "norm.bias")->rank, 1);
    T_EQ(ckpt_find(c, CKPT_PARAM, "norm.bias")->size[0], 9);
    T_CHECK(!ckpt_find(c, CKPT_PARAM, "norm"));
    T_EQ(ckpt_files(c), 4);
    T_CHECK(!ckpt_file_at(c, 0)->tensors && ckpt_file_at(c, 1)->tensors);
    ckpt_close(c);
    ckpt_close(NULL);
}

/* ---- damage --------------------------------------------------------------------------------- */

static const char *const files[] = {"manifest.json", "param-00000.safetensors",
                                    "exp_avg-00000.safetensors", "config.toml"};

static const char *file_path(const char *dir, const char *file)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/iter_0000009/%s", dir, file);
    return path;
}

/* Opens and verifies; whatever the damage, the code is 7 and the sentence names the file. */
static void expect_damage(const char *dir, const char *file)
{
    struct err e;
    struct ckpt *c;
    int code = ckpt_open_iteration(dir, 9, &c, &e);
    T_EQ(code, ERR_INTEGRITY);
    if (!strstr(e.msg, file))
        t_fail(__FILE__, __LINE__, "%s is not named: %s", file, e.msg);
}

static void every_flipped_bit_is_found(void)
{
    struct err e;
    const char *dir = fresh("flip");
    T_OK(sample_save(dir, 9, &e), &e);
    for (size_t f = 0; f < 4; f++) {
        uint64_t size;
        T_OK(file_size(file_path(dir, files[f]), &size, &e), &e);
        for (uint64_t at = 0; at < size; at += f == 1 ? 1 : 17) {
            int bit = 1 << (at % 8);
            sample_flip(file_path(dir, files[f]), (long)at, bit);
            expect_damage(dir, files[f]);
            sample_flip(file_path(dir, files[f]), (long)at, bit);
        }
    }
    struct ckpt *c;
    T_OK(ckpt_open_iteration(dir, 9, &c, &e), &e);
    ckpt_close(c);
}

/* Files that are worth a thread, of which some are damaged: all of them are named. */
static void all_damaged_files_are_named(void)
{
    enum { SIDE = 600 };
    struct err e;
    struct ckpt *c;
    struct ckpt_writer *w;
    struct ckpt_meta meta = {.iteration = 9, .model = "{}", .eod = -1};
    struct ckpt_shard *shard;
    struct buf fragment = {0};
    struct box_mem mem[4];
    const char *dir = fresh("many"), *groups[] = {CKPT_PARAM, "a", "b", "c"};
    int64_t size[2] = {SIDE, SIDE};
    float *data = mem_new((size_t)SIDE * SIDE, sizeof(*data));
    T_OK(ckpt_writer_open(dir, 9, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &shard);
    for (size_t g = 0; g < 4; g++) {
        mem[g] = (struct box_mem){data, DTYPE_F32, box_whole(2, size), SIDE};
        ckpt_shard_add(shard, groups[g], "big", 2, size, DTYPE_F32, mem[g].box);
    }
    T_OK(ckpt_shard_begin(shard, &e), &e);
    T_OK(ckpt_shard_write_all(shard, mem, 4, &e), &e);
    T_OK(ckpt_shard_end(shard, &fragment, &e), &e);
    T_OK(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    T_OK(ckpt_commit(w, &meta, &e), &e);
    buf_finish(&fragment);
    ckpt_shard_destroy(shard);
    ckpt_writer_close(w);
    T_OK(ckpt_open(t_path("many/iter_0000009"), &c, &e), &e);
    T_OK(ckpt_verify(c, &e), &e);
    sample_flip(file_path(dir, "a-00000.safetensors"), 500000, 2);
    T_ERR(ckpt_verify(c, &e), &e, ERR_INTEGRITY, "a-00000.safetensors: its bytes are not");
    T_CHECK(!strstr(e.msg, "also damaged"));
    sample_flip(file_path(dir, "param-00000.safetensors"), 1400000, 2);
    sample_flip(file_path(dir, "c-00000.safetensors"), 900, 2);
    T_ERR(ckpt_verify(c, &e), &e, ERR_INTEGRITY, "param-00000.safetensors: its bytes are not");
    T_CHECK(strstr(e.msg, "; also damaged: a-00000.safetensors, c-00000.safetensors"));
    T_EQ(ckpt_verify(c, NULL), ERR_INTEGRITY);
    ckpt_close(c);
    free(data);
}

static void every_cut_is_found(void)
{
    struct err e;
    const char *dir = fresh("cuts");
    for (size_t f = 0; f < 4; f++) {
        T_OK(sample_save(dir, 9, &e), &e);
        uint64_t size;
        const char *path = file_path(dir, files[f]);
        T_OK(file_size(path, &size, &e), &e);
        for (int64_t n = (int64_t)size - 1; n >= 0; n -= n > 60 ? 53 : 1) {
            T_CHECK(truncate(path, n) == 0);
            expect_damage(dir, files[f]);
        }
        T_CHECK(unlink(path) == 0);
        expect_damage(dir, files[f]);
    }
}

static void longer_files_are_found(void)
{
    struct err e;
    const char *dir = fresh("long");
    for (size_t f = 0; f < 4; f++) {
        T_OK(sample_save(dir, 9, &e), &e);
        FILE *out = fopen(file_path(dir, files[f]), "ab");
        T_CHECK(out && fputc(' ', out) == ' ' && fclose(out) == 0);
        expect_damage(dir, files[f]);
    }
}

static void a_renamed_folder_is_found(void)
{
    struct err e;
    struct ckpt *c;
    fresh("name");
    T_OK(sample_save(t_path("name"), 9, &e), &e);
    T_CHECK(rename(t_path("name/iter_0000009"), t_path("name/iter_0000010")) == 0);
    T_ERR(ckpt_open(t_path("name/iter_0000010"), &c, &e), &e, ERR_INTEGRITY,
          "manifest.json: holds iteration 9, its folder is named for iteration 10");
    T_CHECK(strstr(e.hint, "iter_0000009"));
    T_CHECK(rename(t_path("name/iter_0000010"), t_path("name/copy")) == 0);
    T_OK(ckpt_open(t_path("name/copy/"), &c, &e), &e); /* a name that claims nothing */
    T_STR(ckpt_path(c), t_path("name/copy"));
    ckpt_close(c);
    T_ERR(ckpt_open(t_path("name/none"), &c, &e), &e, ERR_IO, "no such checkpoint");
    T_OK(file_replace(t_path("name/iter_0000011"), "x", 1, &e), &e);
    T_ERR(ckpt_open(t_path("name/iter_0000011"), &c, &e), &e, ERR_INTEGRITY, "is not a folder");
    T_OK(file_mkdirs(t_path("name/iter_0000012"), &e), &e);
    T_ERR(ckpt_open(t_path("name/iter_0000012"), &c, &e), &e, ERR_INTEGRITY,
          "manifest.json: is missing");
}

/* ---- a manifest that is whole, but does not fit its files ----------------------------------- */

/* Replaces `from` by `to` in the manifest and gives it a right digest. */
static void edit(const char *dir, const char *from, const char *to)
{
    struct buf text = {0}, out = {0};
    struct err e;
    char digest[XXH_TEXT];
    T_OK(sample_save(fresh("edit"), 9, &e), &e);
    T_OK(file_read(file_path(dir, "manifest.json"), 1 << 20, &text, &e), &e);
    char *at = strstr(text.data, from), *tail = strstr(text.data, "],\n\"xxh3_128");
    T_CHECK(at && tail);
    buf_add(&out, text.data, (size_t)(at - text.data));
    buf_adds(&out, to);
    at += strlen(from);
    buf_add(&out, at, (size_t)(tail + 3 - at));
    xxh_once(out.data, out.len, digest);
    buf_addf(&out, "\"xxh3_128\": \"%s\"\n}\n", digest);
    T_OK(file_replace(file_path(dir, "manifest.json"), out.data, out.len, &e), &e);
    buf_finish(&text);
    buf_finish(&out);
}

static void files_and_manifest_must_agree(void)
{
    static const struct {
        const char *from, *to, *words;
    } c[] = {
        {"\"entry\": \"embed.weight\"", "\"entry\": \"embed.weighs\"",
         "entry 'embed.weighs' is not there"},
        {"\"entry\": \"embed.weight\"", "\"entry\": \"norm.bias\"", "another type or rank"},
        {"\"shape\": [5, 7]", "\"shape\": [5, 6]", "lies outside of its tensor"},
        {"\"shape\": [5, 7]", "\"shape\": [5, 8]", "leave a hole"},
        {"\"begin\": [2, 1]", "\"begin\": [2, 0]", "overlap"},
        {"\"count\": [5, 7]", "\"count\": [5, 6]", "another shape or type"},
        {"\"dtype\": \"F32\", \"shape\": [5, 7]", "\"dtype\": \"F16\", \"shape\": [5, 7]",
         "another shape or type"},
        {"\"begin\": [2, 1]", "\"begin\": [9223372036854775807, 0]", "lies outside"},
        {"{\"file\": \"param-00000.safetensors\", \"entry\": "
         "\"layers.0.attn.q.weight[2:6,0:1]\", \"begin\": [2, 0], \"count\": [4, 1]}, ",
         "", "leave a hole"},
        {"  {\"group\": \"param\", \"name\": \"layers.0.none.weight\", \"dtype\": \"F32\", "
         "\"shape\": [0, 4], \"fingerprint\": \"00000000000000000000000000000000\", \"parts\": "
         "[{\"file\": \"param-00000.safetensors\", \"entry\": "
         "\"layers.0.none.weight\", \"begin\": [0, 0], \"count\": [0, 4]}]},\n",
         "", "in its files"},
        {"\"file\": \"param-00000.safetensors\", \"entry\": \"layers.0.none.weight\"",
         "\"file\": \"exp_avg-00000.safetensors\", \"entry\": \"layers.0.none.weight\"",
         "part of two tensors"},
        {"\"file\": \"param-00000.safetensors\", \"entry\": \"embed.weight\"",
         "\"file\": \"config.toml\", \"entry\": \"embed.weight\"", "config.toml"},
    };
    struct err e;
    struct ckpt *ck;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        edit(t_path("edit"), c[i].from, c[i].to);
        T_ERR(ckpt_open(t_path("edit/iter_0000009"), &ck, &e), &e, ERR_INTEGRITY, c[i].words);
    }
}

/* ---- more files and types than our writer makes today ---------------------------------------- */

/* A rank's half of a matrix [3, 5] in bf16: columns before and after the cut. */
static void put_half(struct ckpt_writer *w, int rank, uint16_t *data, struct box box)
{
    struct err e;
    struct buf fragment = {0};
    struct ckpt_shard *shard;
    int64_t size[2] = {3, 5};
    struct box_mem m = {data, DTYPE_BF16, box, box.count[1]};
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){.rank = rank}, &shard);
    ckpt_shard_add(shard, CKPT_PARAM, "m", 2, size, DTYPE_BF16, box);
    T_OK(ckpt_shard_begin(shard, &e), &e);
    T_OK(ckpt_shard_write_all(shard, &m, 1, &e), &e);
    T_OK(ckpt_shard_end(shard, &fragment, &e), &e);
    T_OK(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    buf_finish(&fragment);
    ckpt_shard_destroy(shard);
}

/* Two ranks: a matrix cut by columns over two files. */
static void parts_in_two_files(void)
{
    struct err e;
    struct ckpt *c;
    struct ckpt_writer *w;
    struct ckpt_meta meta = {.iteration = 9, .model = "{}", .eod = -1};
    uint16_t left[6], right[9], all[15];
    float whole[15], got[15];
    struct fingerprint sum = {0};
    for (int i = 0; i < 15; i++) {
        whole[i] = (float)i * 0.5f - 2;
        uint16_t *to = i % 5 < 2 ? &left[i / 5 * 2 + i % 5] : &right[i / 5 * 3 + i % 5 - 2];
        box_cast(to, DTYPE_BF16, &whole[i], DTYPE_F32, 1);
        all[i] = *to;
    }
    T_OK(ckpt_writer_open(fresh("ranks"), 9, &w, &e), &e);
    put_half(w, 1, right, (struct box){{0, 2}, {3, 3}});
    put_half(w, 0, left, (struct box){{0, 0}, {3, 2}});
    T_OK(ckpt_commit(w, &meta, &e), &e);
    ckpt_writer_close(w);
    T_OK(ckpt_open(t_path("ranks/iter_0000009"), &c, &e), &e);
    T_OK(ckpt_verify(c, &e), &e);
    int64_t size[2] = {3, 5};
    struct box_mem to = {got, DTYPE_F32, {{0, 0}, {3, 5}}, 5};
    T_OK(ckpt_read_box(c, CKPT_PARAM, "m", 2, size, to, &e), &e);
    T_MEM(got, whole, sizeof(whole));
    T_OK(ckpt_check(c, &e), &e);
    fingerprint_add(&sum, 0, all, sizeof(all));
    T_CHECK(fingerprint_equal(ckpt_tensor_at(c, 0)->fingerprint, sum));
    ckpt_close(c);
}

/* Reads all tensors, or the first rows of one, and asks whether that was right. */
static int read_and_check(const char *dir, bool all, struct err *e)
{
    struct ckpt *c;
    float got[SAMPLE_MAX];
    int code = ckpt_open(file_path(dir, ""), &c, e);
    if (code)
        return code;
    for (size_t i = 0; !code && i < (all ? ckpt_tensors(c) : 1); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        struct box_mem to = {got, DTYPE_F32, box_whole(t->rank, t->size), t->size[1]};
        if (!all)
            to.box.count[0] = 2;
        code = ckpt_read_box(c, t->group, t->name, t->rank, t->size, to, e);
    }
    if (!code)
        code = ckpt_check(c, e);
    ckpt_close(c);
    return code;
}

/* What is read is judged on the way, also where only some of it was. */
static void damage_is_found_while_reading(void)
{
    struct err e;
    const char *dir = fresh("load");
    uint64_t size;
    T_OK(sample_save(dir, 9, &e), &e);
    T_OK(read_and_check(dir, true, &e), &e);
    T_OK(read_and_check(dir, false, &e), &e);
    T_OK(file_size(file_path(dir, files[1]), &size, &e), &e);
    for (uint64_t at = size - 272; at < size; at += 7) {
        sample_flip(file_path(dir, files[1]), (long)at, 8);
        T_ERR(read_and_check(dir, true, &e), &e, ERR_INTEGRITY, files[1]);
        T_CHECK(strstr(e.msg, "; damaged: param '"));
        T_ERR(read_and_check(dir, false, &e), &e, ERR_INTEGRITY, files[1]);
        sample_flip(file_path(dir, files[1]), (long)at, 8);
    }
    sample_flip(file_path(dir, files[2]), 700, 8); /* not read: not judged */
    T_OK(read_and_check(dir, false, &e), &e);
}

/* Which tensor of a sample's file has its data at a byte; NULL: it is of the header. */
static const char *tensor_at(const char *path, uint64_t at)
{
    struct st_file s;
    struct err e;
    static char name[64];
    T_OK(st_open(&s, path, &e), &e);
    name[0] = '\0';
    for (size_t i = 0; i < s.n; i++)
        if (at >= s.data_at + s.entry[i].begin && at < s.data_at + s.entry[i].end)
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(s.entry[i].name, "["),
                     s.entry[i].name);
    st_close(&s);
    return name[0] ? name : NULL;
}

/* One bit anywhere in the tensors' files: the file is named, and the tensor. */
static void flipped_bits_are_found_and_the_tensor_named(void)
{
    struct err e;
    struct ckpt *c;
    const char *dir = fresh("bits");
    uint64_t flips = getenv("WEFT_FULL") ? 10000 : 400, size;
    T_OK(sample_save_ranks(dir, 9, 3, &e), &e);
    for (uint64_t i = 0; i < flips; i++) {
        char file[64], words[128];
        snprintf(file, sizeof(file), "%s-%05d.safetensors", sample_groups[i % 3], (int)(i / 3 % 3));
        const char *path = file_path(dir, file);
        T_OK(file_size(path, &size, &e), &e);
        long at = (long)(t_rand(7, i) % size);
        const char *tensor = tensor_at(path, (uint64_t)at);
        snprintf(words, sizeof(words), "damaged: %s '%s'", sample_groups[i % 3],
                 tensor ? tensor : "");
        sample_flip(path, at, 1 << t_rand(8, i) % 8);
        int code = ckpt_open(file_path(dir, ""), &c, &e);
        if (!code) {
            code = ckpt_verify(c, &e);
            ckpt_close(c);
        }
        T_EQ(code, ERR_INTEGRITY);
        T_CHECK(strstr(e.msg, file));
        T_CHECK(!tensor || strstr(e.msg, words));
        sample_flip(file_path(dir, file), at, 1 << t_rand(8, i) % 8);
    }
    T_OK(ckpt_open_iteration(dir, 9, &c, &e), &e);
    sample_check(c, 9);
    ckpt_close(c);
}

/* A tensor of more than 64 MiB, whose pieces are judged by themselves. */
static void large_files_are_judged_by_pieces(void)
{
    enum { ROWS = 17000, COLS = 1000 };
    struct err e;
    struct ckpt *c;
    struct ckpt_writer *w;
    struct ckpt_shard *shard;
    struct buf fragment = {0};
    struct ckpt_meta meta = {.iteration = 9, .model = "{}", .eod = -1};
    int64_t size[2] = {ROWS, COLS};
    float *data = mem_new((size_t)ROWS * COLS, sizeof(*data));
    struct box_mem m = {data, DTYPE_F32, box_whole(2, size), COLS};
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = (float)i;
    const char *dir = fresh("large");
    T_OK(ckpt_writer_open(dir, 9, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &shard);
    ckpt_shard_add(shard, CKPT_PARAM, "big", 2, size, DTYPE_F32, m.box);
    T_OK(ckpt_shard_begin(shard, &e), &e);
    T_OK(ckpt_shard_write_all(shard, &m, 3, &e), &e);
    T_OK(ckpt_shard_end(shard, &fragment, &e), &e);
    T_OK(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    T_OK(ckpt_commit(w, &meta, &e), &e);
    ckpt_shard_destroy(shard);
    ckpt_writer_close(w);
    buf_finish(&fragment);
    T_OK(ckpt_open(file_path(dir, ""), &c, &e), &e);
    T_EQ(ckpt_file_at(c, 0)->pieces, 2);
    T_OK(ckpt_verify(c, &e), &e);
    float *got = mem_new((size_t)ROWS * COLS, sizeof(*got));
    struct ckpt_want want = {CKPT_PARAM, "big", 2, size, m};
    want.to.data = got;
    T_OK(ckpt_read_all(c, &want, 1, 3, &e), &e);
    T_OK(ckpt_check(c, &e), &e);
    T_MEM(got, data, (size_t)ROWS * COLS * 4);
    for (int k = -1; k <= 0; k++) {
        char words[32];
        sample_flip(file_path(dir, files[1]), (long)CKPT_PIECE + k, 1);
        snprintf(words, sizeof(words), "piece %d of 64 MiB", k + 1);
        T_ERR(ckpt_verify(c, &e), &e, ERR_INTEGRITY, words);
        T_CHECK(strstr(e.msg, "damaged: param 'big'"));
        sample_flip(file_path(dir, files[1]), (long)CKPT_PIECE + k, 1);
    }
    ckpt_close(c);
    free(got);
    free(data);
}

T_MAIN(T_CASE(boxes_of_any_cut), T_CASE(what_does_not_fit_is_named),
       T_CASE(tensors_are_listed_in_order), T_CASE(every_flipped_bit_is_found),
       T_CASE(all_damaged_files_are_named), T_CASE(every_cut_is_found),
       T_CASE(longer_files_are_found), T_CASE(a_renamed_folder_is_found),
       T_CASE(files_and_manifest_must_agree), T_CASE(parts_in_two_files),
       T_CASE(damage_is_found_while_reading), T_CASE(flipped_bits_are_found_and_the_tensor_named),
       T_CASE(large_files_are_judged_by_pieces))
