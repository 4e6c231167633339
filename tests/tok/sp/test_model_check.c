/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp/sp_cxx.h"
#include "tok/sp/unigram.h"

/* ---- each rule --------------------------------------------------------------------------- */

static void accept(struct buf *b)
{
    struct err e;
    struct sp_model m;
    struct sp_lib *l;
    T_OK(sp_check("made", b->data, b->len, &m, &e), &e);
    T_OK(sp_lib_open("made", b->data, b->len, &l, &e), &e);
    sp_lib_close(l);
    sp_model_finish(&m);
    buf_finish(b);
}

static void refuse(struct buf *b, const char *words)
{
    struct err e;
    struct sp_model m;
    T_ERR(sp_check("made", b->data, b->len, &m, &e), &e, ERR_DATA, words);
    buf_finish(b);
}

static void refuse_piece(const char *text, float score, int type, const char *words)
{
    struct buf b = {0};
    make_pieces(&b);
    make_piece(&b, text, score, type);
    refuse(&b, words);
}

static void a_made_model_is_taken(void)
{
    struct err e;
    struct sp_model m;
    struct buf b = {0}, rules = {0};
    make_pieces(&b);
    make_rules(&rules);
    make_trainer(&b, SP_UNIGRAM, false);
    make_normalizer(&b, rules.data, rules.len);
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_EQ(m.npieces, 14);
    T_EQ(m.unk, 0);
    T_EQ(m.bos, 1);
    T_EQ(m.eos, 2);
    T_EQ(m.pad, -1);
    T_EQ(m.kind, SP_UNIGRAM);
    T_EQ(sp_model_find(&m, "b", 1), 5);
    T_EQ(sp_model_find(&m, "f", 1), -1);
    T_STR(m.normalizer.name, "made");
    T_EQ(m.normalizer.charsmap_size, rules.len);
    T_CHECK(!m.normalizer.remove_extra_whitespaces);
    T_CHECK(m.normalizer.add_dummy_prefix);
    sp_model_finish(&m);
    buf_finish(&rules);
    accept(&b);
}

static void pieces_are_sane(void)
{
    struct buf b = {0};
    refuse(&b, "no pieces");
    refuse_piece("", -1, SP_NORMAL, "empty or longer");
    refuse_piece("a", -1, SP_NORMAL, "piece 14 occurs twice");
    refuse_piece("f", NAN, SP_NORMAL, "not a finite number");
    refuse_piece("f", INFINITY, SP_NORMAL, "not a finite number");
    refuse_piece("f", -INFINITY, SP_NORMAL, "not a finite number");
    make_pieces(&b);
    make_piece(&b, "f", -INFINITY,
               SP_NORMAL); /* the library's score of characters that no text has */
    make_trainer(&b, SP_CHAR, false);
    accept(&b);
    refuse_piece("f", -1, 0, "type is not in 1 .. 6");
    refuse_piece("f", -1, 7, "type is not in 1 .. 6");
    refuse_piece("<unk2>", 0, SP_UNKNOWN, "2 unknown pieces");
    refuse_piece("<0x00>", 0, SP_BYTE, "no byte fallback");
    char longer[8200];
    memset(longer, 'x', sizeof(longer));
    longer[8193] = 0;
    refuse_piece(longer, -1, SP_NORMAL, "empty or longer");
    make_piece(&b, "a", 0, SP_NORMAL);
    refuse(&b, "0 unknown pieces");
    make_piece(&b, "<unk>", 0, SP_UNKNOWN);
    refuse(&b, "no piece of text");
}

static void zero_bytes_and_wrong_wires_are_refused(void)
{
    struct buf b = {0}, in = {0};
    make_pieces(&b);
    protow_bytes(&in, 1, "f\0g", 3);
    protow_bytes(&b, 1, in.data, in.len);
    refuse(&b, "zero byte");
    make_pieces(&b);
    protow_varint(&b, 1, 5);
    refuse(&b, "another type");
    make_pieces(&b);
    protow_varint(&b, 2, 5);
    refuse(&b, "another type");
    make_pieces(&b);
    make_trainer(&b, 5, false);
    refuse(&b, "not in 1 .. 4");
    make_pieces(&b);
    make_trainer(&b, SP_BPE, false);
    make_trainer(&b, SP_BPE, false);
    refuse(&b, "there again");
    make_pieces(&b);
    b.len--;
    refuse(&b, "a length exceeds the message");
    buf_finish(&in);
}

static void byte_pieces_are_complete(void)
{
    struct buf b = {0};
    for (int miss = -1; miss < 256; miss += 51) {
        make_pieces(&b);
        for (int i = 0; i < 256; i++) {
            char text[8];
            snprintf(text, sizeof(text), "<0x%02X>", (unsigned)i);
            if (i != miss)
                make_piece(&b, text, 0, SP_BYTE);
        }
        make_trainer(&b, SP_BPE, true);
        if (miss < 0)
            accept(&b);
        else
            refuse(&b, "255 of the 256");
    }
    make_pieces(&b);
    make_piece(&b, "<0x0g>", 0, SP_BYTE);
    make_trainer(&b, SP_BPE, true);
    refuse(&b, "not spelled");
}

static void user_pieces_that_begin_alike_are_counted(void)
{
    for (int n = 64; n <= 65; n++) {
        struct buf b = {0};
        char text[70] = "";
        make_pieces(&b);
        for (int i = 0; i < n; i++) {
            text[i] = 'y';
            make_piece(&b, text, 0, SP_USER);
        }
        make_piece(&b, "z", 0, SP_USER);
        if (n == 64)
            accept(&b);
        else
            refuse(&b, "prefixes of one text");
    }
}

static void refuse_rules(size_t unit, uint32_t value, const char *words)
{
    struct buf b = {0}, rules = {0};
    make_pieces(&b);
    make_rules(&rules);
    store_u32(rules.data + 4 + unit * 4, value);
    make_normalizer(&b, rules.data, rules.len);
    refuse(&b, words);
    buf_finish(&rules);
}

static void rules_stay_inside(void)
{
    refuse_rules(0, rules_unit(0, false, 1024), "leads out of the trie");
    refuse_rules(0, rules_unit(0, false, 768), "leads out of the trie");
    refuse_rules(0, 1u << 9 | 100u << 10, "leads out of the trie"); /* times 256 */
    refuse_rules(RULES_A, rules_unit('A', false, 0x341 ^ 768 ^ 512), "leads out of the trie");
    refuse_rules(RULES_A, rules_unit('A', true, RULES_A ^ RULES_ROOT), "its own path");
    refuse_rules(RULES_LEAF, 0x80000002u, "beyond the end of the strings");
    refuse_rules(RULES_LEAF, 0xffffffffu, "beyond the end of the strings");
}

static void refuse_blob(size_t keep, uint32_t size, const char *tail, size_t ntail,
                        const char *words)
{
    struct buf b = {0}, rules = {0};
    make_pieces(&b);
    make_rules(&rules);
    store_u32(rules.data, size);
    rules.len = keep;
    buf_add(&rules, tail, ntail);
    make_normalizer(&b, rules.data, rules.len);
    refuse(&b, words);
    buf_finish(&rules);
}

static void blobs_are_whole(void)
{
    const uint32_t size = RULES_UNITS * 4;
    refuse_blob(3, size, "", 0, "do not hold a trie of the size");
    refuse_blob(4 + size, size + 4, "", 0, "do not hold a trie of the size");
    refuse_blob(4 + size, size - 1, "a", 2, "do not hold a trie of the size");
    refuse_blob(4 + size, 0, "a", 2, "do not hold a trie of the size");
    refuse_blob(4 + size, 512, "a", 2, "do not hold a trie of the size");
    refuse_blob(4 + size, 1024, "a", 2, "leads out of the trie");
    refuse_blob(4 + size, size, "", 0, "do not end in a zero byte");
    refuse_blob(4 + size, size, "a", 1, "do not end in a zero byte");
    refuse_blob(4 + size, size, "\xff", 2, "not UTF-8");
}

/* A chain of keys, each a prefix of the next: one state per block. */
static void keys_that_begin_alike_are_counted(void)
{
    for (uint32_t depth = 32; depth <= 33; depth++) {
        struct buf b = {0}, rules = {0};
        uint32_t units = (depth + 2) * 256, state = 256, size = units * 4;
        make_pieces(&b);
        uint32_t *unit = mem_new(units, 4);
        for (uint32_t i = 0; i < units; i++)
            unit[i] = 0x80000000u;
        unit[0] = rules_unit(0, false, state);
        for (uint32_t i = 0; i < depth; i++, state += 256)
            unit[state ^ 'A'] = rules_unit('A', true, (state ^ 'A') ^ (state + 256));
        buf_add(&rules, &size, 4);
        buf_add(&rules, unit, size);
        buf_add(&rules, "", 1);
        make_normalizer(&b, rules.data, rules.len);
        if (depth == 32)
            accept(&b);
        else
            refuse(&b, "more than 32 keys");
        free(unit);
        buf_finish(&rules);
    }
}

/* ---- no model that passes crashes the library -------------------------------------------- */

enum { MODELS = 6 };

static const struct {
    const char *kind, *rules, *user, *bytes;
} recipe[MODELS] = {
    {"unigram", "nmt_nfkc", "<s>,</s>,<EOD>,xy,xyz,\n", "true"},
    {"bpe", "nfkc_cf", "xy,xyz", "true"},
    {"unigram", "identity", "", "false"},
    {"bpe", "nmt_nfkc", "", "false"},
    {"char", "nfkc", "xy", "false"},
    {"word", "nmt_nfkc_cf", "", "false"},
};

static const char *const sample[] = {
    "Hello, World 2024! xyxyzy \n\n  two  spaces\t<s> </s>",
    ("\xef\xbc\xa1\xef\xbc\xa2\xe3\x88\xb1 \xef\xb7\xba \xc7\x84 \xe2\x84\xa2 \xe3\x8e\x8f "
     "e\xcc\x81"),
    "\xe5\x90\xbe\xe8\xbc\xa9\xe3\x81\xaf\xe7\x8c\xab\xe3\x81\xa7\xe3\x81\x82\xe3\x82\x8b",
    "\xff\xfe\x80 broken \xe2\x96 \xf0\x9f\x98\x80 \xf4\x90\x80\x80", ""};

static int next_sentence(void *arg, const char **ret_text, size_t *ret_n)
{
    int *n = arg;
    static char text[128];
    if (++*n > 600)
        return 0;
    *ret_n =
        (size_t)snprintf(text, sizeof(text), "%s %u %s %c%c%c", *n % 2 ? "the cat sat" : "a dog",
                         t_rand(9, (uint64_t)*n) % 50, *n % 3 ? "on the mat xyz" : "in hats",
                         'a' + *n % 26, 'a' + *n % 11, 'a' + *n % 7);
    *ret_text = text;
    return 1;
}

static void learn(int i, struct buf *ret)
{
    const char *const key[] = {"model_type",           "vocab_size",    "normalization_rule_name",
                               "user_defined_symbols", "byte_fallback", "num_threads",
                               "hard_vocab_limit",     "minloglevel"};
    const char *const value[] = {recipe[i].kind,  i < 2 ? "400" : "120",
                                 recipe[i].rules, recipe[i].user,
                                 recipe[i].bytes, "1",
                                 "false",         "3"};
    struct err e;
    int n = 0;
    T_OK(sp_lib_train(key, value, 8, -1, next_sentence, &n, ret, &e), &e);
}

/* Where the normalizer's rules are in a valid model; *ret_n 0 if it has none. */
static size_t find_rules(const struct buf *model, size_t *ret_n)
{
    struct err e;
    struct proto r;
    struct proto_field f, g;
    bool more;
    proto_init(&r, "model", model->data, model->len);
    do
        T_OK(proto_next(&r, &f, &more, &e), &e);
    while (more && f.number != 3);
    r = proto_inside(&r, &f);
    do
        T_OK(proto_next(&r, &g, &more, &e), &e);
    while (more && g.number != 2);
    *ret_n = more ? g.length : 0;
    return more ? (size_t)(g.bytes - (const unsigned char *)model->data) : 0;
}

/* The n-th variant: one byte changed, or up to 20; in every other one only inside the rules. */
static void alter(struct buf *b, const struct buf *model, uint64_t n, size_t rules_at,
                  size_t rules_n)
{
    buf_reset(b);
    buf_add(b, model->data, model->len);
    uint32_t changes = n % 3 ? 1 : 1 + t_rand(n, 0) % 20;
    bool in_rules = n % 2 && rules_n;
    for (uint32_t i = 0; i < changes; i++) {
        uint32_t r = t_rand(n, 1 + 2 * i);
        size_t at = in_rules ? rules_at + r % rules_n : r % model->len;
        b->data[at] = (char)t_rand(n, 2 + 2 * i);
    }
}

/* Our own encoder, where it applies, must agree with the library on altered models, too. */
static void compare(const struct unigram *u, const char *p, size_t n, const int *id, size_t k)
{
    struct unigram_state *s = unigram_state_create();
    struct tok_ids ids = {0};
    unigram_put(u, s, p, n, true, &ids);
    BUG_ON(ids.n != k || (k && memcmp(ids.id, id, k * sizeof(*id))), "other ids");
    tok_ids_finish(&ids);
    unigram_state_destroy(s);
}

static void use(const struct buf *b, const struct unigram *u)
{
    struct err e;
    struct sp_lib *l;
    if (sp_lib_open("altered", b->data, b->len, &l, &e))
        return;
    struct sp_room *room = sp_room_create();
    struct buf text = {0};
    for (size_t i = 0; i < sizeof(sample) / sizeof(*sample); i++) {
        const int *id;
        size_t n;
        if (sp_lib_encode(l, room, sample[i], strlen(sample[i]), &id, &n, &e))
            continue;
        if (u)
            compare(u, sample[i], strlen(sample[i]), id, n);
        sp_lib_decode(l, room, id, n, &text, &e);
    }
    /* every character of two and three bytes, among them all that the rules know */
    struct buf all = {0};
    for (int c = 0x80; c < 0x10000; c += 7) {
        char c3[3] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                      (char)(0x80 | (c & 63))};
        buf_add(&all, c3, 3);
    }
    const int *id;
    size_t n;
    if (!sp_lib_encode(l, room, all.data, all.len, &id, &n, &e)) {
        if (u)
            compare(u, all.data, all.len, id, n);
        sp_lib_decode(l, room, id, n, &text, &e);
    }
    buf_finish(&all);
    buf_finish(&text);
    sp_room_destroy(room);
    sp_lib_close(l);
}

struct score {
    volatile uint64_t next, passed;
};

/* Runs variants first .. end-1 of one model in a child; those that fail the check only if
 * `unchecked`. */
static void child(const struct buf *model, uint64_t end, bool unchecked, size_t rules_at,
                  size_t rules_n, struct score *s)
{
    struct buf b = {0};
    if (!freopen("/dev/null", "w", stderr))
        _exit(9);
    while (s->next < end) {
        uint64_t n = s->next;
        struct sp_model m;
        alarm(600); /* per variant: longer means it hangs */
        alter(&b, model, n, rules_at, rules_n);
        bool ok = !sp_check("altered", b.data, b.len, &m, NULL);
        struct unigram *u = ok ? unigram_create(&m) : NULL;
        s->passed += ok;
        if (ok || unchecked)
            use(&b, u);
        unigram_destroy(u);
        if (ok)
            sp_model_finish(&m);
        s->next = n + 1;
    }
    _exit(0);
}

/* How many of `count` variants crashed the child. */
static uint64_t crashes(const struct buf *model, uint64_t first, uint64_t count, bool unchecked,
                        uint64_t *passed)
{
    struct score *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    T_CHECK(s != MAP_FAILED);
    *s = (struct score){.next = first};
    size_t rules_n, rules_at = find_rules(model, &rules_n);
    uint64_t died = 0;
    while (s->next < first + count) {
        pid_t pid = fork();
        T_CHECK(pid >= 0);
        if (!pid)
            child(model, first + count, unchecked, rules_at, rules_n, s);
        int status;
        T_CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            died++;
            if (!unchecked)
                printf("# variant %llu died, status %d\n", (unsigned long long)s->next, status);
            s->next++;
        }
    }
    *passed += s->passed;
    munmap(s, sizeof(*s));
    return died;
}

/* WEFT_FULL=1 tries 30,000 variants of all six models, else 300 of the first two. */
static void no_altered_model_that_passes_crashes(void)
{
    bool full = getenv("WEFT_FULL") != NULL;
    uint64_t each = full ? 5000 : 150, passed = 0, died = 0, ignored = 0, unguarded = 0;
    for (int i = 0; i < (full ? MODELS : 2); i++) {
        struct buf model = {0};
        learn(i, &model);
        died += crashes(&model, (uint64_t)(i + 1) * 1000000, each, false, &passed);
        if (full)
            unguarded += crashes(&model, (uint64_t)(i + 1) * 1000000, each, true, &ignored);
        buf_finish(&model);
    }
    printf("# %llu variants, %llu passed the check, %llu crashes\n",
           (unsigned long long)each * (full ? MODELS : 2), (unsigned long long)passed,
           (unsigned long long)died);
    if (full)
        printf("# without the check: %llu crashes\n", (unsigned long long)unguarded);
    T_EQ(died, 0);
    T_CHECK(passed > each / 20);
    if (full)
        T_CHECK(unguarded > 0); /* otherwise the test could not fail */
}

/* A model known to crash 0.1.97: every step of the trie leads far away. */
static void the_harness_sees_a_crash(void)
{
    struct buf model = {0}, broken = {0};
    learn(0, &model);
    buf_add(&broken, model.data, model.len);
    size_t n, at = find_rules(&model, &n);
    T_CHECK(n > 100000);
    for (size_t i = 0; i < 20000; i++)
        store_u32(broken.data + at + 4 + 4 * i,
                  load_u32(broken.data + at + 4 + 4 * i) | 0x7ffffe00u);
    struct sp_model m;
    struct err e;
    T_CHECK(sp_check("broken", broken.data, broken.len, &m, &e) == ERR_DATA);
    pid_t pid = fork();
    if (!pid) {
        if (freopen("/dev/null", "w", stderr))
            use(&broken, NULL);
        _exit(0);
    }
    int status;
    T_CHECK(waitpid(pid, &status, 0) == pid);
    T_CHECK(!WIFEXITED(status) || WEXITSTATUS(status));
    buf_finish(&model);
    buf_finish(&broken);
}

T_MAIN(T_CASE(a_made_model_is_taken), T_CASE(pieces_are_sane),
       T_CASE(zero_bytes_and_wrong_wires_are_refused), T_CASE(byte_pieces_are_complete),
       T_CASE(user_pieces_that_begin_alike_are_counted), T_CASE(rules_stay_inside),
       T_CASE(blobs_are_whole), T_CASE(keys_that_begin_alike_are_counted),
       T_CASE(the_harness_sees_a_crash), T_CASE(no_altered_model_that_passes_crashes))
