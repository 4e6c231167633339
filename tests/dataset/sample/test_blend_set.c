/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/sample/batch.h"
#include "dataset/sample/blend_set.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

/* Files of the known corpora under the paths that Megatron-LM was given, so that names agree. */
static void enter(void)
{
    struct err e;
    T_OK(file_mkdirs(t_path("d"), &e), &e);
    T_EQ(chdir(t_dir()), 0);
    if (file_exists("d/a_text_document.idx"))
        return;
    write_recipe("d/a_text_document", &recipe_a);
    write_recipe("d/b_text_document", &recipe_b);
    write_recipe("d/c_text_document", &recipe_c);
}

static struct core_tokenizer null_tokenizer(void)
{
    struct core_tokenizer t;
    core_tokenizer_of("NullTokenizer", NULL, NULL, 50256, &t);
    return t;
}

static char *a_name[] = {"d/a_text_document", "d/b_text_document", "d/c_text_document"};

/* core_v0.12.3 with numpy 1.24.2, seed 1234, L 128: names and digests of the files. */
struct known {
    size_t n;
    double weight[3]; /* 0: none */
    const char *split;
    uint64_t samples;
    const char *name, *which, *sample; /* MD5; name: of the description */
    uint64_t count;
};

static const struct known knowns[] = {
    {3,
     {0.3, 0.5, 0.2},
     "90,9,1",
     3000,
     "f483a2b63b56b436705f6d1c49692d4f",
     "9a4469b732ca1adf4a9174d070110288",
     "66cee233333d536a66e7016f27a4f2d4",
     3000},
    {3,
     {0},
     "98,2,0",
     2000,
     "527af73e2aabed4fa118e45b49cdd6bd",
     "b233867a9721b80cf575807af31e0ef8",
     "5233c8bfaddd7461a6308e88b57db5a6",
     2000},
    {3,
     {0},
     "98,2,0",
     SAMPLES_ALL,
     "b7f76e83007ec29ed4467100516af75b",
     "e66be9d0e4e2029d05a79bce6c6c6cdf",
     "50ac6cf0921b38cf13d11c0a6b1ee41b",
     2463},
    {2,
     {1.0, 2.0},
     NULL,
     800,
     "c2ff3cbbb777febc5efe694a20522d84",
     "b4c58f34c81f3312f7fa2bc258265d35",
     "58a665dd10bcb91a450153901622f4e3",
     801},
};

static void blends_are_those_of_megatron(void)
{
    enter();
    struct err e;
    struct core_tokenizer tok = null_tokenizer();
    for (size_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++) {
        const struct known *k = &knowns[i];
        double weight[3];
        memcpy(weight, k->weight, sizeof(weight));
        struct blend_list l = {a_name, weight[0] > 0 ? weight : NULL, k->n};
        struct blend_set_config c = {.shared = k->split ? &l : NULL,
                                     .own = {k->split ? NULL : &l},
                                     .split = k->split,
                                     .cache = (const char *[]){"c0", "c1", "c2", "c3"}[i],
                                     .tokenizer = &tok,
                                     .seq_length = 128,
                                     .seed = 1234,
                                     .samples = {k->samples},
                                     .limit = 50257,
                                     .pad = -1,
                                     .save = true};
        for (int round = 0; round < 3; round++) {
            struct blend_set m;
            c.rebuild = round == 2;
            T_OK(blend_set_open(&m, &c, &e), &e);
            const struct blend_set_share *p = &m.part[PART_TRAIN];
            T_EQ(p->count, k->count);
            T_EQ(p->reused, round == 1);
            T_EQ(p->set[0]->found.reused, round == 1);
            T_CHECK(strstr(p->path[0], k->name));
            check_md5(p->path[0], k->which);
            check_md5(p->path[1], k->sample);
            check_md5(p->description, k->name);
            uint64_t sum = 0;
            for (size_t d = 0; d < p->n && round != 1; d++)
                sum += p->taken[d];
            T_EQ(sum, round == 1 ? 0 : k->count);
            blend_set_close(&m);
        }
    }
}

/* One dataset: core's names for the maps whose bytes test_maps.c knows. */
static void a_cache_has_names_of_core(void)
{
    enter();
    struct err e;
    struct core_tokenizer tok = null_tokenizer();
    struct blend_list l = {a_name, NULL, 1};
    struct blend_set_config c = {.shared = &l,
                                 .split = "969,30,1",
                                 .cache = "one",
                                 .tokenizer = &tok,
                                 .seq_length = 128,
                                 .seed = 1234,
                                 .samples = {500},
                                 .limit = 50257,
                                 .pad = -1,
                                 .save = true};
    static const char base[] = "one/111e4d6ee59f7f1ff7f76122b17e4376-GPTDataset-train-";
    char path[200];
    struct blend_set m;
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(!m.part[PART_TRAIN].blended);
    snprintf(path, sizeof(path), "%sdescription.txt", base);
    check_md5(path, "111e4d6ee59f7f1ff7f76122b17e4376");
    snprintf(path, sizeof(path), "%ssample_index.npy", base);
    check_md5(path, "ef40588abfcd3186c280ae4ec418d691");
    blend_set_close(&m);
    /* with any tokenizer the maps are the same */
    core_tokenizer_of("GPT2BPETokenizer", "vocab.json", "merges.txt", 0, &tok);
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(m.part[PART_TRAIN].set[0]->found.reused);
    T_STR(m.part[PART_TRAIN].set[0]->at.path[MAPS_SAMPLE], path);
    blend_set_close(&m);
    c.seed = 1235;
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(!m.part[PART_TRAIN].set[0]->found.reused);
    blend_set_close(&m);
}

/* A sample of the blend is that of its dataset. */
static void samples_come_from_their_sets(void)
{
    enter();
    struct err e;
    double weight[] = {3, 1};
    struct blend_list l = {a_name + 1, weight, 2};
    struct blend_set_config c = {.shared = &l,
                                 .split = "1",
                                 .seq_length = 64,
                                 .seed = 5,
                                 .samples = {300},
                                 .limit = 50257,
                                 .pad = -1};
    struct blend_set m;
    T_OK(blend_set_open(&m, &c, &e), &e);
    const struct blend_set_share *p = &m.part[PART_TRAIN];
    struct feed f = blend_set_feed(&m, PART_TRAIN);
    T_EQ(f.count, 300);
    T_EQ(p->taken[0], 225);
    T_EQ(p->taken[1], 75);
    uint64_t next[2] = {0};
    for (uint64_t k = 0; k < f.count; k++) {
        int32_t got[65], want[65];
        uint64_t at;
        struct gpt *g = blend_set_at(p, k, &at);
        T_EQ(at, next[g == p->set[1]]++);
        T_OK(f.sample(f.self, k, got, &e), &e);
        T_OK(gpt_sample(g, at, want, &e), &e);
        T_MEM(got, want, sizeof(got));
    }
    T_EQ(blend_set_once(p), 300);
    blend_set_close(&m);
}

static void what_cannot_be_is_told(void)
{
    enter();
    struct err e;
    write_counting("d/tiny", (uint32_t[]){3, 4}, 2);
    char *name[] = {"d/a_text_document", "d/tiny"};
    struct blend_list l = {name, NULL, 2};
    struct blend_set_config c = {
        .shared = &l, .split = "1", .seq_length = 64, .samples = {300}, .limit = 99999, .pad = -1};
    struct blend_set m;
    T_ERR(blend_set_open(&m, &c, &e), &e, ERR_USAGE,
          "d/tiny: its train share has 7 tokens, too few");
    double weight[] = {1, 1};
    l.weight = weight;
    c.samples[0] = SAMPLES_ALL;
    T_ERR(blend_set_open(&m, &c, &e), &e, ERR_USAGE, "weights need a number");
    l.weight = NULL;
    c = (struct blend_set_config){.shared = &l,
                                  .split = "969,30,1",
                                  .seq_length = 2,
                                  .samples = {10, 10, 0},
                                  .limit = 99999,
                                  .pad = -1};
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_STR(m.empty[PART_VALID], "d/tiny");
    T_ERR(blend_set_need(&m, PART_VALID, &e), &e, ERR_USAGE, "d/tiny: the valid share is empty");
    T_OK(blend_set_need(&m, PART_TRAIN, &e), &e);
    blend_set_close(&m);
    c.seq_length = 0;
    T_ERR(blend_set_open(&m, &c, &e), &e, ERR_USAGE, "sequence length of 0");
    blend_set_close(&m);
    /* by the old rules, two sequences at 969,30,1 leave d/tiny nothing to validate with */
    double both[] = {0.5, 0.5};
    l.weight = both;
    c = (struct blend_set_config){.shared = &l,
                                  .split = "969,30,1",
                                  .rules = RULES_V2,
                                  .seq_length = 2,
                                  .samples = {10, 10, 0},
                                  .limit = 99999,
                                  .pad = -1};
    e = (struct err){0};
    int code = blend_set_open(&m, &c, &e);
    if (!code)
        code = blend_set_need(&m, PART_VALID, &e);
    T_EQ(code, ERR_USAGE);
    T_STR(e.msg, "d/tiny: its valid share is empty");
    blend_set_close(&m);
}

/* Files of a blend that were changed are made again. */
static void bad_files_are_made_again(void)
{
    enter();
    struct err e;
    struct blend_list l = {a_name, NULL, 2};
    struct blend_set_config c = {.shared = &l,
                                 .split = "1",
                                 .cache = "bad",
                                 .seq_length = 64,
                                 .samples = {300},
                                 .limit = 50257,
                                 .pad = -1,
                                 .save = true};
    struct blend_set m;
    T_OK(blend_set_open(&m, &c, &e), &e);
    char *path = mem_strdup(m.part[0].path[1]);
    blend_set_close(&m);
    struct buf b = {0};
    T_OK(file_read(path, 1 << 20, &b, &e), &e);
    struct buf good = {0};
    buf_add(&good, b.data, b.len);
    b.data[b.len - 8]++;
    for (int cut = 0; cut < 2; cut++) {
        T_OK(file_replace(path, b.data, b.len - (size_t)cut * 8, &e), &e);
        T_OK(blend_set_open(&m, &c, &e), &e);
        T_CHECK(!m.part[0].reused);
        blend_set_close(&m);
        buf_finish(&b);
        T_OK(file_read(path, 1 << 20, &b, &e), &e);
        T_EQ(b.len, good.len);
        T_MEM(b.data, good.data, b.len);
    }
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(m.part[0].reused);
    blend_set_close(&m);
    buf_finish(&b);
    buf_finish(&good);
    free(path);
}

static int start_rank(const struct blend_set_config *c)
{
    struct err e;
    struct blend_set m;
    if (blend_set_open(&m, c, &e))
        return 1;
    int32_t text[65];
    struct feed f = blend_set_feed(&m, PART_TRAIN);
    int code = 0;
    for (uint64_t k = 0; k < f.count && !code; k++)
        code = f.sample(f.self, k, text, &e);
    blend_set_close(&m);
    return code;
}

/* Many ranks start at once over an empty folder, and over one of other data. */
static void many_ranks_may_start_at_once(void)
{
    enter();
    struct blend_list l = {a_name, NULL, 3};
    struct blend_set_config c = {.shared = &l,
                                 .split = "1",
                                 .cache = "many",
                                 .seq_length = 64,
                                 .samples = {700},
                                 .limit = 50257,
                                 .pad = -1,
                                 .save = true};
    enum { RANKS = 8 };
    for (int round = 0; round < 2; round++) {
        pid_t pid[RANKS];
        for (int r = 0; r < RANKS; r++) {
            pid[r] = fork();
            if (!pid[r])
                _exit(start_rank(&c));
        }
        for (int r = 0; r < RANKS; r++) {
            int status;
            T_EQ(waitpid(pid[r], &status, 0), pid[r]);
            T_EQ(status, 0);
        }
        write_counting("d/c_text_document", (uint32_t[]){300, 400, 500}, 3);
    }
    write_recipe("d/c_text_document", &recipe_c);
}

/* The shares of one dataset, as before there were blends. */
static void shares_are_built_then_reused(void)
{
    enter();
    struct err e;
    struct blend_set m;
    struct blend_list l = {a_name, NULL, 1};
    struct blend_set_config c = {.shared = &l,
                                 .split = "969,30,1",
                                 .seq_length = 128,
                                 .seed = 1234,
                                 .samples = {2700, 40, 0},
                                 .save = true,
                                 .idx_only = true};
    for (int round = 0; round < 3; round++) {
        c.rebuild = round == 2;
        T_OK(blend_set_open(&m, &c, &e), &e);
        const struct gpt *train = m.part[PART_TRAIN].set[0], *valid = m.part[PART_VALID].set[0];
        T_EQ(train->found.reused, round == 1);
        T_EQ(valid->found.reused, round == 1);
        T_STR(train->found.why, "");
        T_EQ(train->maps.epochs, 3);
        T_CHECK(train->maps.separate);
        T_EQ(train->maps.nsample, 3469);
        T_EQ(valid->spec.first, 969);
        T_EQ(valid->spec.end, 999);
        T_CHECK(!m.ready[PART_TEST]);
        T_CHECK(!m.empty[PART_TEST]);
        T_CHECK(
            strstr(valid->at.path[2], "a_text_document_valid_indexmap_40ns_128sl_1234s_shuffle"));
        check_md5(train->at.path[0], "64098968130602ea2256861c06aabff0");
        check_md5(train->at.path[1], "cdc2f7aa20690777e1eb51ee31ff2009");
        check_md5(train->at.path[2], "5947698e0630ef4802014881bd14dfa2");
        blend_set_close(&m);
    }
}

/* Many sets of three short documents. */
enum { MANY = 40, MOST = 7, THREADS = 4, LENGTH = 16 };

static void write_many(char *name[MANY])
{
    for (uint32_t i = 0; i < MANY; i++) {
        name[i] = mem_printf("d/many%u", i);
        write_counting(name[i], (uint32_t[]){30 + i, 1, 40}, 3);
    }
}

static int files_mapped(const struct blend_set *m)
{
    int n = 0;
    for (size_t i = 0; i < m->nsource; i++) {
        n += (m->source[i].shard.idx.data != NULL) + (m->source[i].shard.bin.data != NULL);
        for (int k = 0; k < MAPS_FILES; k++)
            n += m->source[i].part[PART_TRAIN].maps.file[k].data != NULL;
    }
    return n;
}

struct reader {
    const struct blend_set *m;
    const int32_t *want;
    uint64_t step;
    bool ok;
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    struct feed f = blend_set_feed(r->m, PART_TRAIN);
    int32_t got[LENGTH + 1];
    r->ok = true;
    for (uint64_t k = 0, at = 0; k < f.count && r->ok; k++, at = (at + r->step) % f.count) {
        f.ahead(f.self, (at + 3) % f.count, (enum feed_step)(k % FEED_STEPS));
        r->ok = !f.sample(f.self, at, got, NULL) &&
                !memcmp(got, r->want + at * (LENGTH + 1), sizeof(got));
    }
    return NULL;
}

/* More files than may be mapped are mapped in turn; the samples are the same. */
static void many_sets_need_few_maps(void)
{
    enter();
    struct err e;
    struct blend_set m;
    char *name[MANY];
    write_many(name);
    struct blend_list l = {name, NULL, MANY};
    struct blend_set_config c = {.shared = &l,
                                 .split = "1",
                                 .cache = "few",
                                 .seq_length = LENGTH,
                                 .samples = {SAMPLES_ALL},
                                 .limit = 50257,
                                 .pad = -1,
                                 .save = true};
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(!m.pool);
    T_EQ(files_mapped(&m), 0);
    struct feed f = blend_set_feed(&m, PART_TRAIN);
    int32_t *want = mem_new(f.count * (LENGTH + 1), sizeof(*want));
    for (uint64_t k = 0; k < f.count; k++)
        T_OK(f.sample(f.self, k, want + k * (LENGTH + 1), &e), &e);
    T_EQ(files_mapped(&m), 5 * MANY);
    blend_set_close(&m);

    c.maps = MOST;
    T_OK(blend_set_open(&m, &c, &e), &e);
    T_CHECK(m.pool);
    pthread_t thread[THREADS];
    struct reader r[THREADS];
    for (uint64_t t = 0; t < THREADS; t++) {
        r[t] = (struct reader){.m = &m, .want = want, .step = t ? 2 * t + 5 : 1};
        T_EQ(pthread_create(&thread[t], NULL, read_all, &r[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        T_CHECK(r[t].ok);
    }
    f = blend_set_feed(&m, PART_TRAIN);
    for (uint64_t k = 0; k < 50; k++) {
        T_OK(f.sample(f.self, k * 7 % f.count, want, &e), &e);
        T_CHECK(files_mapped(&m) <= MOST && files_mapped(&m) >= 5);
    }
    blend_set_close(&m);
    free(want);
    for (int i = 0; i < MANY; i++)
        free(name[i]);
}

T_MAIN(T_CASE(many_sets_need_few_maps), T_CASE(blends_are_those_of_megatron),
       T_CASE(a_cache_has_names_of_core), T_CASE(samples_come_from_their_sets),
       T_CASE(what_cannot_be_is_told), T_CASE(bad_files_are_made_again),
       T_CASE(many_ranks_may_start_at_once), T_CASE(shares_are_built_then_reused))
