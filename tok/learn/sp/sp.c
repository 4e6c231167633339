/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/sp.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "tok/sp/normalize.h"
#include "tok/text/trie.h"

enum { PADDING = 64, MARK = 3, SEED = 12345678 };

static const char mark[] = "\xe2\x96\x81", unknown[] = "\xe2\x96\x85";

/* ---- rules ------------------------------------------------------------------------------- */

static int one_word(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more, struct err *e)
{
    (void)e;
    bool *given = arg;
    *ret_more = !*given;
    *given = true;
    *ret_text = "a";
    *ret_n = 1;
    return 0;
}

static int keep_rules(struct learn_rules *r, const struct buf *model, struct err *e)
{
    struct sp_model m;
    int code = sp_check("the normalizer", model->data, model->len, &m, e);
    if (code)
        return code;
    r->name = mem_strdup(m.normalizer.name);
    if (m.normalizer.charsmap_size)
        buf_add(&r->charsmap, m.normalizer.charsmap, m.normalizer.charsmap_size);
    sp_model_finish(&m);
    return 0;
}

int learn_rules_init(struct learn_rules *r, const struct sp_train_options *o, struct err *e)
{
    static const char *const name[] = {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"};
    enum { IDENTITY = 4 };
    *r = (struct learn_rules){0};
    bool own = o->normalization_rule_tsv && *o->normalization_rule_tsv;
    if (!own && o->normalization_rule_name == IDENTITY) {
        r->name = mem_strdup(name[IDENTITY]);
        return 0;
    }
    /* every model has the rules, so the smallest one is trained */
    struct sp_train_options little = {.model_type = SP_CHAR - 1,
                                      .vocab_size = 16,
                                      .character_coverage = 1,
                                      .max_sentencepiece_length = 16,
                                      .normalization_rule_name = o->normalization_rule_name,
                                      .normalization_rule_tsv = o->normalization_rule_tsv,
                                      .max_sentence_length = 4192,
                                      .num_threads = 1,
                                      .num_sub_iterations = 2,
                                      .seed_sentencepiece_size = 1000,
                                      .shrinking_factor = 0.75,
                                      .bos_id = 1,
                                      .eos_id = 2,
                                      .pad_id = -1,
                                      .unk_piece = "<unk>",
                                      .bos_piece = "<s>",
                                      .eos_piece = "</s>",
                                      .pad_piece = "<pad>",
                                      .unk_surface = " ",
                                      .random_seed = -1};
    bool given = false;
    struct sp_train_input in = {.next = one_word, .arg = &given, .input_format = ""};
    struct sp_train_report report;
    struct buf model = {0};
    int code = sp_train(&little, &in, &model, &report, e);
    if (!code)
        code = keep_rules(r, &model, e);
    buf_finish(&model);
    return code;
}

void learn_rules_finish(struct learn_rules *r)
{
    free(r->name);
    buf_finish(&r->charsmap);
    *r = (struct learn_rules){0};
}

/* ---- sentences into words ---------------------------------------------------------------- */

struct sampled {
    uint64_t count;
    size_t n;
    char text[];
};

struct scratch {
    struct buf norm;
    uint32_t *at; /* starts of words */
    size_t n, cap;
    uint64_t invalid;
    char apart[64]; /* keeps threads off each other's cache lines */
};

struct front {
    const struct learn_sp_options *o;
    struct sp_norm norm;
    struct trie meta;
    bool begins[256]; /* a special piece begins with this byte */
    bool plain[256];  /* unchanged ASCII other than a space, with which no special piece begins */
    bool quick;       /* words of such bytes need no further processing */
    bool suffix, together; /* marks are after words; runs of them stay together */
    struct scratch *scratch;
    struct learn_count *count;
    uint64_t *chars; /* counts by character */
    uint64_t *hash;  /* of each sentence, 0 for none, if their order matters */
    uint64_t nhash, hash_cap;
    struct sampled **sample;
    uint64_t nsample, seen;
};

static void init_meta(struct front *f)
{
    const struct learn_meta *m = f->o->meta;
    struct trie_key *key = mem_new(m->n, sizeof(*key));
    struct string_map seen;
    size_t n = 0;
    string_map_init(&seen, m->n);
    for (size_t i = 0; i < m->n; i++) {
        const struct learn_meta_piece *p = &m->piece[i];
        f->begins[(unsigned char)*p->text] = true;
        if (string_map_add(&seen, p->text, p->length, 0))
            key[n++] = (struct trie_key){p->text, p->length, (int32_t)i};
    }
    trie_init(&f->meta, key, n);
    string_map_finish(&seen);
    free(key);
}

/* The longest special piece at p, or 0. */
static size_t match_meta(const struct front *f, const char *p, const char *end)
{
    size_t longest = 0;
    uint32_t at = TRIE_ROOT;
    for (size_t i = 0; p + i < end && trie_step(&f->meta, &at, p[i]); i++)
        if (trie_value(&f->meta, at) >= 0)
            longest = i + 1;
    return longest;
}

/* Replaces special pieces by a tab, in place, from this byte on. */
static void put_boundaries(const struct front *f, struct buf *b, size_t from)
{
    char *p = b->data + from, *to = p, *end = b->data + b->len;
    while (p < end) {
        size_t k = f->begins[(unsigned char)*p] ? match_meta(f, p, end) : 0;
        if (k) {
            *to++ = '\t';
            p += k;
        } else {
            *to++ = *p++;
        }
    }
    b->len = (size_t)(to - b->data);
}

static const char *find_mark(const char *p, const char *end)
{
    while (end - p >= MARK && (p = memchr(p, mark[0], (size_t)(end - p) - MARK + 1))) {
        if (p[1] == mark[1] && p[2] == mark[2])
            return p;
        p++;
    }
    return NULL;
}

static void need_places(struct scratch *s, size_t n)
{
    if (s->cap < s->n + n) {
        s->cap = s->n + n + n / 2;
        s->at = mem_grow(s->at, s->cap, sizeof(*s->at));
    }
}

/* Starts of words in the text normalized from this byte on. */
static void cut_words(const struct front *f, struct scratch *s, size_t from)
{
    const char *text = s->norm.data, *end = text + s->norm.len;
    bool behind = from >= MARK && memcmp(text + from - MARK, mark, MARK) == 0;
    const char *last = behind ? text + from : NULL; /* after a mark */
    need_places(s, (s->norm.len - from) / MARK + 2);
    for (const char *p = find_mark(text + from, end); p; p = find_mark(last, end)) {
        if (!f->suffix && p > text && !(f->together && p == last))
            s->at[s->n++] = (uint32_t)(p - text);
        if (f->suffix && f->together && last && p > last)
            s->at[s->n++] = (uint32_t)(last - text);
        last = p + MARK;
        if (f->suffix && !f->together && last < end)
            s->at[s->n++] = (uint32_t)(last - text);
    }
    if (f->suffix && f->together && last && last < end)
        s->at[s->n++] = (uint32_t)(last - text);
}

static uint64_t hash_text(const char *p, size_t n)
{
    return n ? string_key(p, n).hash | 1 : 0;
}

static inline char *copy_word(char *to, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        memcpy(to + i, p + i, 16);
    return to + n;
}

/*
 * Copies words of plain bytes separated by one space, the bulk of many texts, straight to the
 * result. Returns the bytes used; 64 bytes after the text are readable.
 */
static size_t put_quick(const struct front *f, struct scratch *s, const struct sp_norm_state *st,
                        const char *text, size_t n)
{
    if (!st->begun || st->held || st->after_space)
        return 0;
    const char *p = text, *end = text + n;
    char *to = buf_reserve(&s->norm, MARK * n + PADDING);
    need_places(s, n + 2);
    for (;;) {
        const char *q = p;
        while (q < end && f->plain[(unsigned char)*q])
            q++;
        /* what precedes a non-ASCII character may belong to it */
        if (q > p && (q == end || (*q & 0x80)))
            q--;
        to = copy_word(to, p, (size_t)(q - p));
        bool more =
            q > p && q + 2 < end && *q == ' ' && f->plain[(unsigned char)q[1]] && !(q[2] & 0x80);
        p = q;
        if (!more)
            break;
        s->at[s->n++] = (uint32_t)(to - s->norm.data);
        memcpy(to, mark, MARK);
        to += MARK;
        p++;
    }
    s->norm.len = (size_t)(to - s->norm.data);
    return (size_t)(p - text);
}

static bool has_begin(const struct front *f, const struct buf *b, size_t from)
{
    bool has = false;
    for (size_t i = from; i < b->len; i++)
        has |= f->begins[(unsigned char)b->data[i]];
    return has;
}

/* Normalizes, replaces special pieces and splits. */
static void sp_normalize(const struct front *f, struct scratch *s, const char *text, size_t n)
{
    struct sp_norm_state st = {0};
    bool quick = f->quick;
    size_t i = 0, from = 0; /* start of what was not scanned yet */
    buf_reset(&s->norm);
    need_places(s, 2);
    s->n = 0;
    s->at[s->n++] = 0;
    while (i < n) {
        i += quick ? put_quick(f, s, &st, text + i, n - i) : 0;
        if (i == n)
            break;
        from = quick ? s->norm.len : from;
        i += sp_norm_put(&f->norm, &st, text + i, n - i, true, quick ? s->norm.len : SIZE_MAX,
                         &s->norm);
        if (quick && has_begin(f, &s->norm, from))
            quick = false;
        else if (quick)
            cut_words(f, s, from);
    }
    sp_norm_end(&f->norm, &st, &s->norm);
    s->invalid += st.invalid;
    if (!quick) {
        put_boundaries(f, &s->norm, from);
        cut_words(f, s, from);
    }
    memset(buf_reserve(&s->norm, PADDING), 0, PADDING);
    need_places(s, 1);
    s->at[s->n] = (uint32_t)s->norm.len;
}

/* A learn_split. If the order matters, the sentence's number precedes the text. */
static void split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                  uint64_t count)
{
    struct front *f = arg;
    struct scratch *s = &f->scratch[thread];
    bool whole = f->o->cut == LEARN_WHOLE;
    size_t skip = whole ? sizeof(uint64_t) : 0;
    s->n = 0;
    sp_normalize(f, s, text + skip, n - skip);
    n = s->norm.len;
    if (whole) {
        f->hash[load_u64(text)] = hash_text(s->norm.data, n);
        s->at[1] = (uint32_t)n;
        s->n = 1;
    }
    if (n)
        learn_table_add(t, s->norm.data, s->at, s->n, count);
}

/* ---- sentences --------------------------------------------------------------------------- */

static int count_one(struct front *f, const char *text, size_t n, uint64_t count, struct err *e)
{
    if (f->o->cut != LEARN_WHOLE)
        return learn_count_add(f->count, text, n, count, e);
    ARRAY_GROW(f->hash, f->nhash, f->hash_cap);
    struct buf b = {0};
    uint64_t number = f->nhash++;
    buf_add(&b, &number, sizeof(number));
    buf_add(&b, text, n);
    int code = learn_count_add(f->count, b.data, b.len, count, e);
    buf_finish(&b);
    return code;
}

static struct sampled *sp_keep(const char *text, size_t n, uint64_t count)
{
    struct sampled *s = mem_grow(NULL, 1, sizeof(*s) + n);
    s->count = count;
    s->n = n;
    memcpy(s->text, text, n);
    return s;
}

/* Keeps each sentence with equal probability (reservoir sampling). */
static void sample(struct front *f, const char *text, size_t n, uint64_t count)
{
    uint64_t most = (uint64_t)f->o->train->input_sentence_size, at = f->nsample;
    uint64_t number = f->seen++;
    if (at == most) {
        struct rng4 r = rng_block(SEED, RNG_SAMPLE, 0, number);
        uint64_t u = (uint64_t)r.v[0] << 32 | r.v[1];
        at = (uint64_t)((__uint128_t)u * (number + 1) >> 64);
        if (at >= most)
            return;
        free(f->sample[at]);
    } else {
        if ((at & (at - 1)) == 0)
            f->sample = mem_grow(f->sample, at ? 2 * at : 1, sizeof(*f->sample));
        f->nsample++;
    }
    f->sample[at] = sp_keep(text, n, count);
}

static int count_sample(struct front *f, struct learn_sp *ret, struct err *e)
{
    int code = 0;
    for (uint64_t i = 0; i < f->nsample && !code; i++) {
        const struct sampled *s = f->sample[i];
        ret->report.sentences++;
        ret->report.bytes += s->n;
        code = count_one(f, s->text, s->n, s->count, e);
    }
    return code;
}

/* Strips the count of a line "text TAB count". */
static int take_count(const char *text, size_t *n, uint64_t *ret, uint64_t number, struct err *e)
{
    const char *tab = memchr(text, '\t', *n), *end = text + *n;
    uint64_t v = 0;
    const char *p = tab ? tab + 1 : end;
    size_t digits = (size_t)(end - p);
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (!tab || p < end || digits > 18 || v < 1)
        return err_set(e, ERR_DATA, "sentence %llu: expected text, a tab and a count of at least 1",
                       (unsigned long long)number);
    *ret = v;
    *n = (size_t)(tab - text);
    return 0;
}

static int take_sentence(struct front *f, const char *text, size_t n, uint64_t count,
                         struct learn_sp *ret, bool *ret_done, struct err *e)
{
    const struct sp_train_options *t = f->o->train;
    if (!n)
        return 0;
    if (n > (size_t)t->max_sentence_length) {
        ret->report.too_long++;
        return 0;
    }
    if (memchr(text, unknown[0], n) && memmem(text, n, unknown, MARK)) {
        ret->report.reserved++;
        return 0;
    }
    if (t->input_sentence_size && t->shuffle_input_sentence) {
        sample(f, text, n, count);
        return 0;
    }
    ret->report.sentences++;
    ret->report.bytes += n;
    *ret_done = ret->report.sentences == (uint64_t)t->input_sentence_size;
    return count_one(f, text, n, count, e);
}

static int sp_read_all(struct front *f, struct learn_sp *ret, struct err *e)
{
    const struct sp_train_input *in = f->o->in;
    bool more = true, done = false;
    int code = 0;
    for (uint64_t number = 1; !code && !done; number++) {
        const char *text;
        size_t n;
        uint64_t count = 1;
        code = in->next(in->arg, &text, &n, &more, e);
        if (code || !more)
            break;
        if (in->tsv)
            code = take_count(text, &n, &count, number, e);
        if (!code)
            code = take_sentence(f, text, n, count, ret, &done, e);
    }
    return code ? code : count_sample(f, ret, e);
}

/* ---- order ------------------------------------------------------------------------------- */

struct place {
    uint64_t hash, rank;
};

static struct place *find_place(struct place *p, size_t mask, uint64_t hash)
{
    size_t i = hash >> 7 & mask;
    while (p[i].hash && p[i].hash != hash)
        i = (i + 1) & mask;
    return &p[i];
}

/*
 * The first position of each sentence. The library removes empty ones in one pass from first to
 * last, by moving the last one into their place.
 */
static uint64_t *rank_sentences(const struct front *f, const struct learn_words *w)
{
    size_t mask = 15;
    while (mask < 2 * w->n)
        mask = 2 * mask + 1;
    struct place *p = mem_new(mask + 1, sizeof(*p));
    uint64_t left = f->nhash;
    for (uint64_t i = 0; i < left; i++) {
        uint64_t hash = f->hash[i];
        if (!hash)
            hash = f->hash[--left];
        struct place *x = hash ? find_place(p, mask, hash) : NULL;
        if (x && !x->hash && x->rank == 0)
            *x = (struct place){hash, i + 1};
    }
    uint64_t *rank = mem_new(w->n + 1, sizeof(*rank));
    for (size_t i = 0; i < w->n; i++) {
        size_t n = (size_t)(w->start[i + 1] - w->start[i]);
        rank[i] = find_place(p, mask, hash_text(w->text + w->start[i], n))->rank;
    }
    free(p);
    return rank;
}

static void count_chars(void *arg, const char *word, size_t n, uint64_t count)
{
    const struct front *f = arg;
    const char *p = word, *end = p + n;
    for (size_t k; p < end; p += k) {
        k = *p & 0x80 ? utf8_char(p, end) : 1;
        f->chars[utf8_code(p, k)] += count;
    }
}

/* ---- load -------------------------------------------------------------------------------- */

static void open_front(struct front *f)
{
    const struct learn_sp_options *o = f->o;
    const struct sp_train_options *t = o->train;
    struct sp_model m = {.whitespace_as_suffix = t->treat_whitespace_as_suffix,
                         .normalizer = {.charsmap_size = o->rules->charsmap.len,
                                        .charsmap = (unsigned char *)o->rules->charsmap.data,
                                        .add_dummy_prefix = t->add_dummy_prefix,
                                        .remove_extra_whitespaces = t->remove_extra_whitespaces,
                                        .escape_whitespaces = true}};
    sp_norm_init(&f->norm, &m);
    init_meta(f);
    f->suffix = o->cut == LEARN_WORDS && t->treat_whitespace_as_suffix;
    f->together = o->cut == LEARN_WORDS && t->allow_whitespace_only_pieces;
    f->quick = f->norm.blank && !f->suffix && !f->norm.suffix && !f->begins[(unsigned char)*mark];
    for (int c = 0; c < 128; c++)
        f->plain[c] = f->norm.copy[c] && !f->begins[c];
    f->scratch = mem_new((size_t)pool_threads(o->pool), sizeof(*f->scratch));
    f->count = learn_count_create(o->pool, o->memory, o->beside, split, f);
    f->chars = mem_new(LEARN_CHARS, sizeof(*f->chars));
    learn_count_each(f->count, count_chars, f);
}

static void close_front(struct front *f)
{
    learn_count_destroy(f->count);
    for (int i = 0; i < pool_threads(f->o->pool); i++) {
        free(f->scratch[i].at);
        buf_finish(&f->scratch[i].norm);
    }
    free(f->scratch);
    for (uint64_t i = 0; i < f->nsample; i++)
        free(f->sample[i]);
    free(f->sample);
    free(f->hash);
    trie_finish(&f->meta);
    sp_norm_finish(&f->norm);
}

int learn_sp_load(const struct learn_sp_options *o, struct learn_sp *ret, struct err *e)
{
    struct front f = {.o = o};
    struct learn_words w = {0};
    uint64_t *rank = NULL;
    *ret = (struct learn_sp){0};
    open_front(&f);
    int code = sp_read_all(&f, ret, e);
    if (!code)
        code = learn_count_finish(f.count, o->cost, &w, &ret->counted, e);
    if (!code && !w.n)
        code = err_set(e, ERR_DATA, "the input has no sentence to learn from");
    if (!code && o->cut == LEARN_WHOLE)
        rank = rank_sentences(&f, &w);
    for (int i = 0; i < pool_threads(o->pool); i++)
        ret->invalid += f.scratch[i].invalid;
    close_front(&f);
    if (!code)
        code = learn_sp_chars(o, f.chars, &w, rank, ret, e);
    free(f.chars);
    learn_words_finish(&w);
    free(rank);
    return code;
}

void learn_sentences_finish(struct learn_sentences *s)
{
    free(s->ch);
    free(s->start);
    free(s->count);
    *s = (struct learn_sentences){0};
}

void learn_sp_finish(struct learn_sp *s)
{
    learn_sentences_finish(&s->text);
    free(s->required);
    s->required = NULL;
    s->nrequired = 0;
}
