/* SPDX-License-Identifier: Apache-2.0 */

/* Index maps equal those that Megatron-LM made, whose files are taken as they are. */

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/maps.h"
#include "tests/dataset/index/beside.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

/*
 * core_v0.12.3 with numpy 1.24.2 on the corpora of corpus.h, seed 1234, L 128: digests of whole
 * .npy files.
 */
struct known {
    const char *split;
    enum part part;
    uint64_t samples; /* 0: none requested */
    uint32_t extra;
    bool keep_last;
    uint64_t epochs;
    bool separate;
    uint64_t ndoc, nsample;
    const char *md5[3];
};

static const struct known knowns[] = {
    {"969,30,1",
     PART_TRAIN,
     500,
     1,
     false,
     1,
     false,
     969,
     1156,
     {"6876dcfc5d6bfb9408f2531ec43ebd87", "ef40588abfcd3186c280ae4ec418d691",
      "aadded3c933dcc37fb8a69f3dba04d27"}},
    {"969,30,1",
     PART_TRAIN,
     2700,
     1,
     false,
     3,
     true,
     2907,
     3469,
     {"64098968130602ea2256861c06aabff0", "cdc2f7aa20690777e1eb51ee31ff2009",
      "5947698e0630ef4802014881bd14dfa2"}},
    {"969,30,1",
     PART_TRAIN,
     3300,
     1,
     false,
     3,
     false,
     2907,
     3469,
     {"41066c46cbe23029eee3730f1dca15e6", "fa94b9c3e5dde41b436808e76e5aea8a",
      "b2edddaf0d9fe9f9f3fa6976dffab4b9"}},
    {"90,10",
     PART_VALID,
     0,
     1,
     true,
     1,
     false,
     100,
     117,
     {"76cf700b8b4b1f7515b13c86ea18129a", "65b27406e49d41fffa35f66fd2a295a7",
      "0a152fe420f92f6c3ac8138f838e13ee"}},
    {"90,10",
     PART_TRAIN,
     1500,
     0,
     false,
     2,
     true,
     1800,
     2151,
     {"5db467c79d1b8b4d6483322953478465", "e1c73fcd1b3dbe3edfd8e8f321440529",
      "76239047fe1c8031f2c9f9dd1774e2fd"}},
    {"90,10",
     PART_VALID,
     50,
     0,
     true,
     1,
     false,
     100,
     117,
     {"76cf700b8b4b1f7515b13c86ea18129a", "1366d2e04c2b78a76f49096d17753bd1",
      "0a152fe420f92f6c3ac8138f838e13ee"}},
};

static void spec_of(const struct known *k, const struct shard *s, struct maps_spec *ret)
{
    struct err e;
    struct split split;
    *ret = (struct maps_spec){.part = k->part,
                              .samples = k->samples,
                              .one_epoch = !k->samples,
                              .seq_length = 128,
                              .seed = 1234,
                              .extra = k->extra,
                              .keep_last = k->keep_last};
    T_OK(split_parse(k->split, &split, &e), &e);
    T_CHECK(split_range(&split, k->part, s->nseq, &ret->first, &ret->end));
}

/* The digest of the .npy file that an array makes. */
static void check_array(enum npy_dtype t, int ndim, const uint64_t *shape, const void *p,
                        const char *want)
{
    struct buf b = {0};
    char got[33];
    size_t n = npy_width(t);
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    npy_header(&b, t, ndim, shape);
    buf_add(&b, p, n);
    md5_text(b.data, b.len, got);
    buf_finish(&b);
    T_STR(got, want);
}

static void known_maps(void)
{
    struct err e;
    struct shard s;
    write_recipe(t_path("a"), &recipe_a);
    T_OK(shard_open(&s, t_path("a"), &e), &e);
    for (size_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++) {
        const struct known *k = &knowns[i];
        struct maps_spec spec;
        struct maps m;
        spec_of(k, &s, &spec);
        T_OK(maps_build(&spec, &s, &m, &e), &e);
        T_EQ(m.ndoc, k->ndoc);
        T_EQ(m.nsample, k->nsample);
        T_EQ(m.separate, k->separate);
        T_EQ(m.epochs, k->epochs);
        check_array(NPY_I4, 1, (uint64_t[]){m.ndoc}, m.doc, k->md5[0]);
        check_array(NPY_I4, 2, (uint64_t[]){m.nsample + 1, 2}, m.sample, k->md5[1]);
        check_array(NPY_U4, 1, (uint64_t[]){m.nsample}, m.shuffle, k->md5[2]);
        maps_close(&m);
    }
    shard_close(&s);
}

static void copy_in(const char *from, const char *to)
{
    struct err e;
    struct buf b = {0};
    T_OK(file_read(from, 1 << 20, &b, &e), &e);
    T_OK(file_replace(to, b.data, b.len, &e), &e);
    buf_finish(&b);
}

static const struct maps_spec megatron_spec = {
    .part = PART_TRAIN, .end = 35, .samples = 1600, .seq_length = 1024, .seed = 1234, .extra = 1};

#define MEGATRON "index-map/my-gpt2_text_document"

/* Megatron-LM's .idx without its ending; skips where it is not there. */
static char *megatron_prefix(void)
{
    const char *idx = t_data(MEGATRON ".idx");
    return mem_strndup(idx, strlen(idx) - strlen(".idx"));
}

/* The .idx and the three files that Megatron-LM left beside it. */
static void megatrons_files_are_equalled(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    char *theirs_at = megatron_prefix();
    copy_in(t_data(MEGATRON ".idx"), t_path("mega.idx"));
    T_OK(open_idx(&s, t_path("mega"), &e), &e);
    T_OK(maps_build(&megatron_spec, &s, &m, &e), &e);
    T_EQ(m.epochs, 8);
    T_EQ(m.tokens, 207769);
    T_CHECK(!m.separate);
    save_beside(&m, &megatron_spec, t_path("mega"));
    for (int f = 0; f < MAPS_FILES; f++) {
        struct buf ours = {0}, theirs = {0};
        char *a = maps_path(&megatron_spec, t_path("mega"), (enum maps_file)f);
        char *b = maps_path(&megatron_spec, theirs_at, (enum maps_file)f);
        T_OK(file_read(a, 1 << 20, &ours, &e), &e);
        T_OK(file_read(b, 1 << 20, &theirs, &e), &e);
        T_EQ(ours.len, theirs.len);
        T_MEM(ours.data, theirs.data, theirs.len);
        buf_finish(&ours);
        buf_finish(&theirs);
        free(a);
        free(b);
    }
    free(theirs_at);
    maps_close(&m);
    shard_close(&s);
}

static void megatrons_files_are_taken(void)
{
    struct err e;
    struct shard s;
    struct maps m;
    char *prefix = megatron_prefix();
    T_OK(open_idx(&s, prefix, &e), &e);
    free(prefix);
    open_beside(&megatron_spec, &s, &m);
    T_EQ(m.nsample, 1623);
    T_EQ(maps_order(&m, 0), 489);
    T_EQ(m.doc[0], 5);
    maps_close(&m);
    shard_close(&s);
}

T_MAIN(T_CASE(known_maps), T_CASE(megatrons_files_are_equalled), T_CASE(megatrons_files_are_taken))
