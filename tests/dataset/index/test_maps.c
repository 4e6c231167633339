/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/maps.h"
#include "dataset/index/mt19937.h"
#include "tests/dataset/index/beside.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

/* ---- against a second, slow implementation of the rules ----------------------------------------
 */

static uint64_t slow_draw(struct mt19937 *m, uint64_t max)
{
    uint32_t mask = 1, v;
    while (mask < max)
        mask = mask * 2 + 1;
    while ((v = mt_u32(m) & mask) > max)
        ;
    return v;
}

static void slow_shuffle(struct mt19937 *m, uint32_t *a, uint64_t n)
{
    for (uint64_t i = n; i-- > 1;) {
        uint64_t j = slow_draw(m, i);
        uint32_t t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

struct slow {
    uint64_t epochs, ndoc, nsample, cut;
    bool separate;
    uint32_t *doc, *shuffle;
};

static void slow_build(const struct maps_spec *q, uint64_t tokens, struct slow *r)
{
    uint64_t L = q->seq_length, n = q->end - q->first;
    for (r->epochs = 1; r->epochs * tokens < q->samples * L + 1; r->epochs++)
        ;
    r->ndoc = r->epochs * n;
    r->nsample = (r->epochs * tokens - 1) / L;
    r->cut = ((r->epochs - 1) * tokens - 1) / L;
    uint64_t epoch = (tokens - 1) / L; /* whole samples */
    r->separate =
        r->epochs > 1 && (double)(q->samples - r->cut) < (double)(int64_t)(0.80 * (double)epoch);
    r->doc = mem_new(r->ndoc, 4);
    r->shuffle = mem_new(r->nsample, 4);
    for (uint64_t i = 0; i < r->ndoc; i++)
        r->doc[i] = (uint32_t)(q->first + i % n);
    for (uint64_t i = 0; i < r->nsample; i++)
        r->shuffle[i] = (uint32_t)i;
    struct mt19937 m;
    mt_seed(&m, q->seed);
    uint64_t dcut = r->separate ? r->ndoc - n : r->ndoc, scut = r->separate ? r->cut : r->nsample;
    slow_shuffle(&m, r->doc, dcut);
    slow_shuffle(&m, r->doc + dcut, r->ndoc - dcut);
    slow_shuffle(&m, r->shuffle, scut);
    slow_shuffle(&m, r->shuffle + scut, r->nsample - scut);
}

/*
 * Row r is the place of token r * L of the concatenated documents, at the end of a document rather
 * than before the next.
 */
static void slow_check_rows(const struct maps *m, const struct shard *s, uint64_t L)
{
    uint64_t before = 0, place = 0;
    for (uint64_t r = 0; r <= m->nsample; r++) {
        int64_t p, t;
        while (r * L - before >= (uint64_t)shard_length(s, (uint64_t)m->doc[place])) {
            before += (uint64_t)shard_length(s, (uint64_t)m->doc[place]);
            place++;
        }
        maps_row(m, r, &p, &t);
        T_EQ(t, r * L - before);
        T_EQ(p, place);
    }
}

static void random_shards_against_the_rules(void)
{
    struct err e;
    int separates = 0;
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t length[40], n = 1 + t_rand(round, 0) % 40;
        uint64_t tokens = 0;
        for (uint32_t i = 0; i < n; i++)
            tokens += length[i] = 1 + t_rand(round, i + 1) % 50;
        write_counting(t_path("rnd"), length, n);
        struct maps_spec q = {.end = n,
                              .samples = 1 + t_rand(round, 50) % 200,
                              .seq_length = 1 + t_rand(round, 51) % 20,
                              .seed = t_rand(round, 52),
                              .extra = 1};
        struct shard s;
        struct maps m;
        struct slow r;
        T_OK(shard_open(&s, t_path("rnd"), &e), &e);
        T_OK(maps_build(&q, &s, &m, &e), &e);
        slow_build(&q, tokens, &r);
        separates += r.separate;
        T_EQ(m.epochs, r.epochs);
        T_EQ(m.separate, r.separate);
        T_EQ(m.ndoc, r.ndoc);
        T_EQ(m.nsample, r.nsample);
        T_MEM(m.doc, r.doc, 4 * r.ndoc);
        T_MEM(m.shuffle, r.shuffle, 4 * r.nsample);
        slow_check_rows(&m, &s, q.seq_length);
        free(r.doc);
        free(r.shuffle);
        maps_close(&m);
        shard_close(&s);
    }
    T_CHECK(separates > 5);
}

/* As Megatron-LM walks: need tokens are taken from one document after the other. */
static void walk_check_rows(const struct maps_spec *q, const struct shard *s, const struct maps *m)
{
    uint64_t place = 0;
    int64_t token = 0;
    for (uint64_t r = 0; r <= m->nsample; r++) {
        int64_t p, t, need = q->seq_length + (int64_t)q->extra;
        while (r) {
            int64_t length = shard_length(s, (uint64_t)m->doc[place]), left = length - token;
            if (need <= left)
                token += need - q->extra;
            else if (place + 1 == m->ndoc)
                token = length - q->extra;
            if (need <= left || place + 1 == m->ndoc)
                break;
            need -= left;
            place++;
            token = 0;
        }
        maps_row(m, r, &p, &t);
        T_EQ(p, place);
        T_EQ(t, token);
    }
}

static void write_idx(const char *prefix, const uint32_t *length, uint64_t n)
{
    struct err e;
    struct buf b = {0};
    uint64_t word, at = 0;
    char *path = mem_printf("%s.idx", prefix);
    buf_add(&b, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18); /* version 1, i32 */
    buf_add(&b, &n, 8);
    buf_add(&b, (word = n + 1, &word), 8);
    buf_add(&b, length, 4 * n);
    for (uint64_t i = 0; i < n; at += 4 * length[i++])
        buf_add(&b, &at, 8);
    for (word = 0; word <= n; word++)
        buf_add(&b, &word, 8);
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    buf_finish(&b);
    free(path);
}

/* More documents than a thread takes at once: empty ones, short ones, and some of more than 2^16
 * tokens. */
static void many_documents_against_the_walk(void)
{
    enum { N = 70000 };
    static uint32_t length[N];
    static const uint32_t seq_length[] = {1, 3, 20, 3000, 300000};
    struct err e;
    struct shard s;
    for (uint32_t i = 0; i < N; i++)
        length[i] = t_rand(7, i) % 4 ? t_rand(8, i) % 9 : 0;
    length[12345] = 65534;
    length[N - 9] = 65535;
    length[N - 8] = 100000;
    write_idx(t_path("many"), length, N);
    T_OK(open_idx(&s, t_path("many"), &e), &e);
    for (uint32_t i = 0; i < 40; i++) {
        struct maps m;
        struct maps_spec q = {.part = PART_VALID,
                              .first = i % 3,
                              .end = N - i % 2,
                              .samples = i % 8 < 2 ? 0 : 1000 * i,
                              .one_epoch = i % 8 < 2,
                              .seq_length = seq_length[i / 8],
                              .seed = i,
                              .extra = i % 4 < 2,
                              .keep_last = i % 8 == 0 || i % 8 == 2,
                              .wide = i % 5 == 0};
        if (q.samples * q.seq_length > 10000000)
            q.samples = 10;
        T_OK(maps_build(&q, &s, &m, &e), &e);
        T_CHECK(m.wide_sample == q.wide);
        walk_check_rows(&q, &s, &m);
        maps_close(&m);
    }
    shard_close(&s);
}

/* ---- files --------------------------------------------------------------------------------- */

static const struct maps_spec file_spec = {.part = PART_VALID,
                                           .first = 2,
                                           .end = 9,
                                           .samples = 70,
                                           .seq_length = 4,
                                           .seed = 5,
                                           .extra = 1};

static void open_fixture(struct shard *s)
{
    struct err e;
    write_counting(t_path("f"), (uint32_t[]){9, 8, 7, 6, 5, 4, 3, 9, 8, 7}, 10);
    T_OK(shard_open(s, t_path("f"), &e), &e);
}

static void saved_maps_are_opened(void)
{
    struct err e;
    struct shard s;
    struct maps m, back;
    open_fixture(&s);
    T_OK(maps_build(&file_spec, &s, &m, &e), &e);
    save_beside(&m, &file_spec, s.prefix);
    char *path = maps_path(&file_spec, "p", MAPS_SAMPLE);
    T_STR(path, "p_valid_indexmap_70ns_4sl_5s_sample_idx.npy");
    free(path);
    open_beside(&file_spec, &s, &back);
    T_EQ(back.nsample, m.nsample);
    T_EQ(back.separate, m.separate);
    T_MEM(back.doc, m.doc, 4 * m.ndoc);
    T_MEM(back.sample, m.sample, 8 * (m.nsample + 1));
    T_MEM(back.shuffle, m.shuffle, 4 * m.nsample);
    maps_close(&back);
    maps_close(&m);
    maps_close(&m);
    shard_close(&s);
}

/* Element `at` of one of the three files becomes `value`. */
static void alter(const struct shard *s, enum maps_file f, size_t at, int32_t value)
{
    struct err e;
    struct buf b = {0};
    char *path = maps_path(&file_spec, s->prefix, f);
    T_OK(file_read(path, 1 << 20, &b, &e), &e);
    memcpy(b.data + 128 + 4 * at, &value, 4);
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    buf_finish(&b);
    free(path);
}

static void stale_maps_are_refused(void)
{
    static const struct {
        enum maps_file f;
        size_t at;
        int32_t value;
        const char *words;
    } c[] = {
        {MAPS_DOC, 0, 1, "another share"},
        {MAPS_DOC, 3, 9, "another share"},
        {MAPS_DOC, 1, -1, "another share"},
        {MAPS_SAMPLE, 5, 1000000, "lengths"},
        {MAPS_SAMPLE, 0, 1, "lengths"},
        {MAPS_SHUFFLE, 7, -1, "each sample once"},
        {MAPS_SHUFFLE, 0, 1 << 20, "each sample once"},
    };
    struct err e;
    struct shard s;
    struct maps m;
    open_fixture(&s);
    T_OK(maps_build(&file_spec, &s, &m, &e), &e);
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        save_beside(&m, &file_spec, s.prefix);
        alter(&s, c[i].f, c[i].at, c[i].value);
        refuse_beside(&file_spec, &s, c[i].words);
    }
    save_beside(&m, &file_spec, s.prefix);
    alter(&s, MAPS_DOC, 0, m.doc[0] == 2 ? 3 : 2);
    refuse_beside(&file_spec, &s, "each document once");
    maps_close(&m);
    shard_close(&s);
}

/* Same name, other share, other texts: these file names do not show it. */
static void maps_of_other_data_are_refused(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    open_fixture(&s);
    T_OK(maps_build(&file_spec, &s, &m, &e), &e);
    save_beside(&m, &file_spec, s.prefix);
    maps_close(&m);
    struct maps_spec other = file_spec;
    other.first = 1;
    other.end = 8;
    refuse_beside(&other, &s, "f_valid_indexmap");
    shard_close(&s);
    write_counting(t_path("f"), (uint32_t[]){9, 8, 6, 7, 5, 4, 3, 9, 8, 7}, 10);
    T_OK(shard_open(&s, t_path("f"), &e), &e);
    refuse_beside(&file_spec, &s, "lengths of the documents");
    shard_close(&s);
}

static void wide_files_are_read(void)
{
    struct err e;
    struct shard s;
    struct maps m, back;
    open_fixture(&s);
    T_OK(maps_build(&file_spec, &s, &m, &e), &e);
    save_beside(&m, &file_spec, s.prefix);
    int64_t *wide = mem_new(2 * (m.nsample + 1), sizeof(*wide));
    for (uint64_t r = 0; r <= m.nsample; r++)
        maps_row(&m, r, &wide[2 * r], &wide[2 * r + 1]);
    char *path = maps_path(&file_spec, s.prefix, MAPS_SAMPLE);
    T_OK(npy_write(path, NPY_I8, 2, (uint64_t[]){m.nsample + 1, 2}, wide, &e), &e);
    free(path);
    for (uint64_t k = 0; k < m.nsample; k++)
        wide[k] = maps_order(&m, k);
    path = maps_path(&file_spec, s.prefix, MAPS_SHUFFLE);
    T_OK(npy_write(path, NPY_I8, 1, (uint64_t[]){m.nsample}, wide, &e), &e);
    free(path);
    free(wide);
    open_beside(&file_spec, &s, &back);
    T_CHECK(back.wide_sample && back.wide_shuffle);
    T_EQ(maps_order(&back, 3), maps_order(&m, 3));
    maps_close(&back);
    maps_close(&m);
    shard_close(&s);
}

static void obtain_builds_once(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    struct maps_found found;
    struct maps_wish keep = {.save = true}, look = {0}, anew = {.save = true, .rebuild = true};
    write_counting(t_path("o"), (uint32_t[]){9, 8, 7, 6, 5, 4, 3, 9, 8, 7}, 10);
    T_OK(shard_open(&s, t_path("o"), &e), &e);
    found = obtain_beside(&file_spec, &s, look, &m);
    T_CHECK(!found.reused && !found.why[0]);
    maps_close(&m);
    found = obtain_beside(&file_spec, &s, keep, &m);
    T_CHECK(!found.reused && !found.why[0]); /* `look` left no files */
    maps_close(&m);
    found = obtain_beside(&file_spec, &s, keep, &m);
    T_CHECK(found.reused && !found.why[0]);
    maps_close(&m);
    found = obtain_beside(&file_spec, &s, anew, &m);
    T_CHECK(!found.reused);
    maps_close(&m);
    alter(&s, MAPS_SHUFFLE, 0, -1);
    found = obtain_beside(&file_spec, &s, keep, &m);
    T_CHECK(!found.reused && strstr(found.why, "shuffle_idx.npy: does not name each sample once"));
    maps_close(&m);
    found = obtain_beside(&file_spec, &s, look, &m);
    T_CHECK(found.reused);
    maps_close(&m);
    shard_close(&s);
}

/* ---- edges --------------------------------------------------------------------------------- */

static void shares_without_tokens_are_refused(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    open_fixture(&s);
    struct maps_spec q = file_spec;
    q.end = q.first;
    T_ERR(maps_build(&q, &s, &m, &e), &e, ERR_USAGE, "the valid share, sequences 2 to 2, has no");
    q = file_spec;
    q.samples = UINT64_MAX / 2;
    T_ERR(maps_build(&q, &s, &m, &e), &e, ERR_USAGE, "more than can be counted");
    shard_close(&s);
}

static void the_idx_is_checked_before(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    struct buf b = {0};
    write_counting(t_path("bad"), (uint32_t[]){9, 8, 7, 6}, 4);
    T_OK(file_read(t_path("bad.idx"), 1000, &b, &e), &e);
    b.data[34 + 4 * 4 + 8] = 35; /* the second offset, 36 before */
    T_OK(file_replace(t_path("bad.idx"), b.data, b.len, &e), &e);
    buf_finish(&b);
    T_OK(shard_open(&s, t_path("bad"), &e), &e);
    struct maps_spec q = {.end = 4, .samples = 2, .seq_length = 2, .seed = 1, .extra = 1};
    T_ERR(maps_build(&q, &s, &m, &e), &e, ERR_DATA, "sequence 1 begins at byte 35");
    shard_close(&s);
}

/* An exact fit stays on the last token of its document. */
static void exact_fits(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    int64_t p, t;
    write_counting(t_path("x"), (uint32_t[]){5}, 1);
    T_OK(shard_open(&s, t_path("x"), &e), &e);
    struct maps_spec q = {.end = 1, .samples = 2, .seq_length = 2, .seed = 1, .extra = 1};
    T_OK(maps_build(&q, &s, &m, &e), &e);
    T_EQ(m.epochs, 1);
    T_EQ(m.nsample, 2);
    maps_row(&m, 2, &p, &t);
    T_EQ(p, 0);
    T_EQ(t, 4);
    maps_close(&m);
    q.samples = 3;
    T_OK(maps_build(&q, &s, &m, &e), &e);
    T_EQ(m.epochs, 2);
    T_EQ(m.nsample, 4);
    maps_close(&m);
    shard_close(&s);
}

T_MAIN(T_CASE(random_shards_against_the_rules), T_CASE(many_documents_against_the_walk),
       T_CASE(saved_maps_are_opened), T_CASE(stale_maps_are_refused),
       T_CASE(maps_of_other_data_are_refused), T_CASE(wide_files_are_read),
       T_CASE(obtain_builds_once), T_CASE(shares_without_tokens_are_refused),
       T_CASE(the_idx_is_checked_before), T_CASE(exact_fits))
