/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "convert/copy/copy_files.h"

/* ---- sources and sinks in memory ------------------------------------------------------------ */

struct held {
    void *data;
    int64_t columns;
};

static int read_held(const struct copy_source *s, struct box_mem to, struct err *e)
{
    const struct held *h = s->file;
    struct box_mem m = {h->data, s->dtype, {{0, 0}, {s->size[0], s->size[1]}}, s->size[1]};
    (void)e;
    T_EQ(to.dtype, s->dtype);
    T_EQ(box_copy(to, m), box_count(to.box));
    return 0;
}

static struct copy_source source_of(struct held *h, const char *name, enum dtype d, int64_t rows,
                                    int64_t cols)
{
    return (struct copy_source){
        .name = name, .size = {rows, cols}, .dtype = d, .read = read_held, .file = h};
}

static int write_held(void *arg, size_t target, uint64_t at, const void *p, size_t n, struct err *e)
{
    char **to = arg;
    (void)e;
    memcpy(to[target] + at, p, n);
    return 0;
}

static int fail_write(void *arg, size_t target, uint64_t at, const void *p, size_t n, struct err *e)
{
    (void)arg, (void)target, (void)p, (void)n;
    return at ? 0 : err_set(e, ERR_IO, "no room");
}

enum { ROWS = 37, COLS = 53 };

static float *numbers(int64_t n)
{
    float *p = mem_new((size_t)n, sizeof(*p));
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)(i % 4096) - 99;
    return p;
}

/* Small buffers, so that every target is cut into many units. */
static void run(const struct copy *c)
{
    struct err e;
    for (int threads = 1; threads <= 3; threads += 2) {
        struct copy_options o = {.threads = threads, .memory = 4096};
        T_OK(copy_check(c, &e), &e);
        T_OK(copy_run(c, &o, &e), &e);
    }
}

/* ---- operations -------------------------------------------------------------------------------
 */

static void plain_turned_ordered_and_cast(void)
{
    float *a = numbers(ROWS * COLS), *plain = mem_new(ROWS * COLS, 4);
    float *turned = mem_new(ROWS * COLS, 4);
    int64_t order[ROWS];
    struct held h = {a, COLS};
    struct copy_source s = source_of(&h, "a", DTYPE_F32, ROWS, COLS);
    float *ordered = mem_new(ROWS * COLS, sizeof(float)),
          *both = mem_new(ROWS * COLS, sizeof(float));
    uint16_t *narrow = mem_new(ROWS * COLS, 2);
    void *to[] = {plain, turned, ordered, narrow, both};
    for (int64_t i = 0; i < ROWS; i++)
        order[i] = (i * 7 + 3) % ROWS;
    int64_t back[COLS];
    for (int64_t i = 0; i < COLS; i++)
        back[i] = COLS - 1 - i;
    const struct copy_target target[] = {{"plain", {ROWS, COLS}, DTYPE_F32},
                                         {"turned", {COLS, ROWS}, DTYPE_F32},
                                         {"ordered", {ROWS, COLS}, DTYPE_F32},
                                         {"narrow", {ROWS, COLS}, DTYPE_BF16},
                                         {"both", {COLS, ROWS}, DTYPE_F32}};
    const struct box whole = {{0, 0}, {ROWS, COLS}}, side = {{0, 0}, {COLS, ROWS}};
    const struct copy_step step[] = {
        {.target = 1, .to = side, .from = &s, .transpose = true},
        {.target = 0, .to = {{0, 0}, {20, COLS}}, .from = &s},
        {.target = 0, .to = {{20, 0}, {17, 11}}, .from = &s, .row = 20},
        {.target = 0, .to = {{20, 11}, {17, 42}}, .from = &s, .row = 20, .column = 11},
        {.target = 2, .to = whole, .from = &s, .order = order},
        {.target = 3, .to = whole, .from = &s},
        {.target = 4, .to = side, .from = &s, .transpose = true, .order = back}};
    const struct copy c = {{target, 5, NULL, write_held, to}, step, 7};
    T_EQ(copy_bytes(&c), ROWS * COLS * 18);
    run(&c);
    T_MEM(plain, a, ROWS * COLS * 4);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < COLS; k++) {
            uint16_t half;
            box_cast(&half, DTYPE_BF16, &a[r * COLS + k], DTYPE_F32, 1);
            T_CHECK(turned[k * ROWS + r] == a[r * COLS + k]);
            T_CHECK(ordered[r * COLS + k] == a[order[r] * COLS + k]);
            T_CHECK(both[k * ROWS + r] == a[r * COLS + COLS - 1 - k]);
            T_EQ(narrow[r * COLS + k], half);
        }
    free(a);
    for (int i = 0; i < 5; i++)
        free(to[i]);
}

static void zeros_sums_and_updates(void)
{
    float *a = numbers(ROWS * COLS), *b = numbers(ROWS * COLS), down[2 * ROWS], up[2 * COLS];
    struct held ha = {a, COLS}, hb = {b, COLS};
    struct copy_source sa = source_of(&ha, "a", DTYPE_F32, ROWS, COLS);
    struct copy_source sb = source_of(&hb, "b", DTYPE_F32, ROWS, COLS);
    const struct copy_source *more[] = {&sb};
    const float weight[] = {0.25f, 0.5f};
    for (int i = 0; i < 2 * ROWS; i++)
        down[i] = (float)(i % 5);
    for (int i = 0; i < 2 * COLS; i++)
        up[i] = (float)(i % 3);
    struct copy_low_rank low = {down, up, 2, 0.5f};
    float *zero = numbers(ROWS * COLS), *sum = numbers(ROWS * COLS);
    float *merged = numbers((ROWS + 2) * COLS);
    void *to[] = {zero, sum, merged};
    const struct copy_target target[] = {{"zero", {ROWS, COLS}, DTYPE_F32},
                                         {"sum", {ROWS, COLS}, DTYPE_F32},
                                         {"merged", {ROWS + 2, COLS}, DTYPE_F32}};
    const struct box whole = {{0, 0}, {ROWS, COLS}};
    const struct copy_step step[] = {
        {.target = 0, .to = whole},
        {.target = 1, .to = whole, .from = &sa, .weight = weight, .more = more, .nmore = 1},
        {.target = 2, .to = {{0, 0}, {2, COLS}}},
        {.target = 2, .to = {{2, 0}, {ROWS, COLS}}, .from = &sa, .add = 1, .update = &low}};
    const struct copy c = {{target, 3, NULL, write_held, to}, step, 4};
    run(&c);
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < COLS; k++) {
            float x = a[r * COLS + k];
            float product = down[2 * r] * up[k] + down[2 * r + 1] * up[COLS + k];
            T_CHECK(zero[r * COLS + k] == 0);
            T_CHECK(sum[r * COLS + k] == 0.25f * x + 0.5f * b[r * COLS + k]);
            T_CHECK(merged[(r + 2) * COLS + k] == x + 1 + 0.5f * product);
        }
    for (int k = 0; k < 2 * COLS; k++)
        T_CHECK(merged[k] == 0);
    free(a);
    free(b);
    for (int i = 0; i < 3; i++)
        free(to[i]);
}

/* ---- what does not fit --------------------------------------------------------------------------
 */

static void misfits_are_named(void)
{
    struct held h = {NULL, 4};
    struct copy_source s = source_of(&h, "f: tensor 's'", DTYPE_F32, 3, 4);
    struct copy_source ints = source_of(&h, "f: tensor 'i'", DTYPE_I32, 3, 4);
    struct copy_source other = source_of(&h, "f: tensor 'o'", DTYPE_F32, 4, 3);
    const struct copy_source *more[] = {&other};
    const float weight[] = {1, 1};
    const int64_t order[] = {0, 2, 3};
    const struct copy_target target = {"t", {3, 4}, DTYPE_BF16};
    const struct box whole = {{0, 0}, {3, 4}};
    const struct {
        struct copy_step step[2];
        size_t n;
        const char *words;
    } c[] = {
        {{{.to = {{0, 0}, {2, 4}}, .from = &s}}, 1, "t: nothing fills some of its elements"},
        {{{.to = whole, .from = &s}, {.to = {{1, 1}, {1, 1}}}},
         2,
         "t: rows 1 to 2, columns 1 to 2 are filled twice"},
        {{{.to = {{0, 0}, {4, 4}}, .from = &s}}, 1, "the target is smaller"},
        {{{.to = whole, .from = &s, .row = 1}}, 1, "from f: tensor 's': the source is smaller"},
        {{{.to = whole, .from = &s, .column = -1}}, 1, "the source is smaller"},
        {{{.to = whole, .from = &s, .transpose = true}}, 1, "the source is smaller"},
        {{{.to = whole, .from = &s, .order = order}}, 1, "the source is smaller"},
        {{{.to = whole, .from = &ints}}, 1, "its type cannot become that of the target"},
        {{{.to = whole, .from = &s, .weight = weight, .more = more, .nmore = 1}},
         1,
         "different shapes"},
    };
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const struct copy list = {{&target, 1, NULL, write_held, NULL}, c[i].step, c[i].n};
        T_ERR(copy_check(&list, &e), &e, ERR_DATA, c[i].words);
    }
}

static void failures_come_back(void)
{
    float data[12] = {0};
    struct held h = {data, 4};
    struct copy_source a = source_of(&h, "a", DTYPE_F32, 3, 4);
    const struct copy_target target = {"t", {3, 4}, DTYPE_F32};
    const struct copy_step step = {.to = {{0, 0}, {3, 4}}, .from = &a};
    const struct copy c = {{&target, 1, NULL, fail_write, NULL}, &step, 1};
    struct copy_options o = {.threads = 2};
    struct err e;
    T_ERR(copy_run(&c, &o, &e), &e, ERR_IO, "no room");
}

/* ---- files
 * ---------------------------------------------------------------------------------------- */

static void count_bytes(void *arg, uint64_t done)
{
    *(uint64_t *)arg = done;
}

static const struct st_plan items[] = {{"experts", DTYPE_BF16, 3, {3, 10, 7}},
                                       {"norm", DTYPE_F32, 1, {10}},
                                       {"scalar", DTYPE_F32, 0, {0}}};

static void make_file(const char *path, const uint16_t *experts, const float *norm)
{
    static const struct st_pair pt = {"format", "pt"};
    struct st_out *o;
    struct err e;
    T_OK(st_out_begin(path, NULL, items, 3, &pt, 1, &o, &e), &e);
    T_OK(st_out_write(o, 0, 0, experts, 420, &e), &e);
    T_OK(st_out_write(o, 1, 0, norm, 40, &e), &e);
    T_OK(st_out_write(o, 2, 0, norm, 4, &e), &e);
    T_OK(st_out_end(o, &e), &e);
    st_out_destroy(o);
}

/* A safetensors file into a checkpoint: a stack of experts becomes a tensor for each. */
static void import(const char *path, const char *dir)
{
    struct st_file f;
    struct ckpt_writer *w;
    struct ckpt_shard *shard;
    struct copy_source source[3];
    struct copy_step step[4];
    struct copy_target *target;
    struct copy c = {.step = step, .nsteps = 4};
    struct ckpt_meta meta = {.model = "{}", .eod = -1};
    struct buf fragment = {0};
    uint64_t done = 0;
    struct copy_options o = {.threads = 2, .progress = count_bytes, .arg = &done};
    struct err e;
    const int64_t matrix[2] = {10, 7}, vector[1] = {10};
    static const char *const names[] = {"e0", "e1", "e2"};
    T_OK(st_open(&f, path, &e), &e);
    for (size_t i = 0; i < 3; i++)
        T_OK(copy_from_safetensors(&f, st_find(&f, items[i].name), items[i].name, &source[i], &e),
             &e);
    T_EQ(source[0].size[0], 30);
    T_EQ(source[2].size[0] * source[2].size[1], 1);
    T_OK(file_remove_tree(dir, &e), &e);
    T_OK(ckpt_writer_open(dir, 0, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){.max_file_size = 100},
                      &shard);
    for (size_t i = 0; i < 3; i++) {
        step[i] = (struct copy_step){.target = i, .to = {{0, 0}, {10, 7}}, .from = &source[0]};
        step[i].row = 10 * (int64_t)i;
        ckpt_shard_add(shard, CKPT_PARAM, names[i], 2, matrix, DTYPE_BF16, box_whole(2, matrix));
    }
    step[3] = (struct copy_step){.target = 3, .to = {{0, 0}, {10, 1}}, .from = &source[1]};
    ckpt_shard_add(shard, CKPT_PARAM, "norm", 1, vector, DTYPE_F32, box_whole(1, vector));
    T_OK(ckpt_shard_begin(shard, &e), &e);
    copy_to_shard(shard, &c.sink, &target);
    T_OK(copy_check(&c, &e), &e);
    T_OK(copy_run(&c, &o, &e), &e);
    T_EQ(done, 460);
    T_OK(ckpt_shard_end(shard, &fragment, &e), &e);
    T_OK(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    T_OK(ckpt_commit(w, &meta, &e), &e);
    buf_finish(&fragment);
    free(target);
    ckpt_shard_destroy(shard);
    ckpt_writer_close(w);
    st_close(&f);
}

/* And back, bit for bit. */
static void export(const char *dir, const char *path)
{
    static const struct st_pair pt = {"format", "pt"};
    struct ckpt *k;
    struct st_out *o;
    struct copy_source source[4];
    struct copy_step step[5];
    struct copy_target *target;
    struct copy c = {.step = step, .nsteps = 5};
    struct copy_options options = {.threads = 2};
    struct err e;
    T_OK(ckpt_open_iteration(dir, 0, &k, &e), &e);
    T_EQ(ckpt_tensors(k), 4);
    for (size_t i = 0; i < 4; i++) {
        copy_from_ckpt(k, ckpt_tensor_at(k, i), &source[i]);
        step[i] = (struct copy_step){.to = {{10 * (int64_t)i, 0}, {10, 7}}, .from = &source[i]};
    }
    step[3] = (struct copy_step){.target = 1, .to = {{0, 0}, {10, 1}}, .from = &source[3]};
    step[4] = (struct copy_step){.target = 2, .to = {{0, 0}, {1, 1}}, .from = &source[3]};
    T_OK(st_out_begin(path, NULL, items, 3, &pt, 1, &o, &e), &e);
    copy_to_safetensors(o, &c.sink, &target);
    T_OK(copy_check(&c, &e), &e);
    T_OK(copy_run(&c, &options, &e), &e);
    T_OK(ckpt_check(k, &e), &e);
    T_OK(st_out_end(o, &e), &e);
    free(target);
    st_out_destroy(o);
    ckpt_close(k);
}

static void there_and_back(void)
{
    uint16_t experts[210];
    float norm[10];
    struct buf a = {0}, b = {0};
    struct err e;
    for (int i = 0; i < 210; i++)
        experts[i] = (uint16_t)(i * 77);
    for (int i = 0; i < 10; i++)
        norm[i] = (float)i / 3 + 1;
    make_file(t_path("a.safetensors"), experts, norm);
    import(t_path("a.safetensors"), t_path("ckpt"));
    export(t_path("ckpt"), t_path("b.safetensors"));
    T_OK(file_read(t_path("a.safetensors"), 1 << 20, &a, &e), &e);
    T_OK(file_read(t_path("b.safetensors"), 1 << 20, &b, &e), &e);
    T_EQ(a.len, b.len);
    T_MEM(a.data, b.data, a.len);
    buf_finish(&a);
    buf_finish(&b);
}

T_MAIN(T_CASE(plain_turned_ordered_and_cast), T_CASE(zeros_sums_and_updates),
       T_CASE(misfits_are_named), T_CASE(failures_come_back), T_CASE(there_and_back))
