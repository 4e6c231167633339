/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/column.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"

enum { STEP = 64 << 10 };

static int column_bad(const struct pq_column *c, const char *why, struct err *e)
{
    return pq_page_bad(c->f, c->page, why, e);
}

/* ---- parts of a page ------------------------------------------------------------------------- */

/* Reads n bytes of a page into `b`; n may be larger than the page. */
static int read_part(struct pq_column *c, struct buf *b, uint64_t n, struct err *e)
{
    buf_reset(b);
    if (n > COLUMN_PARTS)
        return column_bad(c, "has more than 64 MiB of levels or indices", e);
    int code = 0;
    while (b->len < n && !code) {
        size_t k = n - b->len < STEP ? (size_t)(n - b->len) : STEP;
        code = pq_stream_read(&c->in, buf_reserve(b, k), k, e);
        b->len += k;
    }
    return code;
}

/* ---- the delta encodings -------------------------------------------------------------------- */

static int stream_varint(struct pq_column *c, uint64_t *ret, struct err *e)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned char b;
        int code = pq_stream_read(&c->in, &b, 1, e);
        if (code)
            return code;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return 0;
        }
    }
    return column_bad(c, "has a number of more than 64 bits", e);
}

struct delta {
    uint64_t block, minis, per_mini, total, first;
    uint32_t *out; /* receives `total` values, n so far */
    uint64_t n, value;
};

static int delta_head(struct pq_column *c, struct delta *d, struct err *e)
{
    int code = stream_varint(c, &d->block, e);
    if (!code)
        code = stream_varint(c, &d->minis, e);
    if (!code)
        code = stream_varint(c, &d->total, e);
    if (!code)
        code = stream_varint(c, &d->first, e);
    if (code)
        return code;
    if (!d->minis || d->minis > 512 || d->block > 1 << 20 || d->block % d->minis ||
        d->block / d->minis % 8)
        return column_bad(c, "has delta blocks of an invalid size", e);
    if (d->total > c->left || d->total > COLUMN_PARTS / sizeof(uint32_t))
        return column_bad(c, "has more lengths than values, or too many", e);
    d->per_mini = d->block / d->minis;
    return d->per_mini ? 0 : column_bad(c, "has delta blocks of an invalid size", e);
}

static int beyond(const struct pq_column *c, struct err *e)
{
    return column_bad(c,
                      c->width ? "has an id below 0 or above 2147483647"
                               : "has a value of a length below 0 or above 2 GiB",
                      e);
}

static uint64_t unzigzag(uint64_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

/* Bits [at, at + n) of p, n <= 64; 8 bytes after them are readable. */
static uint64_t bits_at(const unsigned char *p, uint64_t at, unsigned n)
{
    uint64_t low = load_u64(p + at / 8) >> at % 8;
    if (at % 8 && n > 64 - at % 8)
        low |= (uint64_t)p[at / 8 + 8] << (64 - at % 8);
    return n == 64 ? low : low & ((UINT64_C(1) << n) - 1);
}

/* Appends the values of one miniblock, `bits` per delta, up to `total`. */
static int delta_mini(struct pq_column *c, struct delta *d, unsigned bits, uint64_t least,
                      struct err *e)
{
    if (bits > 64)
        return column_bad(c, "has deltas of more than 64 bits", e);
    size_t bytes = (size_t)(d->per_mini / 8 * bits);
    buf_reset(&c->indices);
    unsigned char *p = (unsigned char *)buf_reserve(&c->indices, bytes + 16);
    int code = pq_stream_read(&c->in, p, bytes, e);
    if (code)
        return code;
    uint64_t value = d->value, left = d->total - d->n;
    uint64_t k = left < d->per_mini ? left : d->per_mini;
    for (uint64_t i = 0; i < k; i++) {
        value += least + bits_at(p, i * bits, bits);
        if (value > INT32_MAX)
            return beyond(c, e);
        d->out[d->n + i] = (uint32_t)value;
    }
    d->value = value;
    d->n += k;
    return 0;
}

static int delta_block(struct pq_column *c, struct delta *d, struct err *e)
{
    unsigned char bits[512];
    uint64_t least;
    int code = stream_varint(c, &least, e);
    if (!code)
        code = pq_stream_read(&c->in, bits, d->minis, e);
    for (uint64_t i = 0; i < d->minis && d->n < d->total && !code; i++)
        code = delta_mini(c, d, bits[i], unzigzag(least), e);
    return code;
}

/* DELTA_BINARY_PACKED, from the page's stream: lengths or ids, each of which is below 2^31. */
static int delta_read(struct pq_column *c, uint32_t **ret, size_t *ret_n, struct err *e)
{
    struct delta d = {0};
    int code = delta_head(c, &d, e);
    if (code)
        return code;
    *ret = mem_grow(*ret, d.total ? (size_t)d.total : 1, sizeof(**ret));
    d.out = *ret;
    d.value = unzigzag(d.first);
    if (d.total && d.value > INT32_MAX)
        return beyond(c, e);
    if (d.total)
        d.out[d.n++] = (uint32_t)d.value;
    while (d.n < d.total && !code)
        code = delta_block(c, &d, e);
    *ret_n = d.n;
    return code;
}

/* ---- the dictionary ------------------------------------------------------------------------- */

static int add_word(struct pq_column *c, uint64_t n, struct err *e)
{
    uint64_t from = c->far.fd >= 0 ? c->far.size : c->words.len;
    if (c->nwords + 1 >= c->words_cap) {
        c->words_cap = c->words_cap * 2 + 1024;
        c->word = mem_grow(c->word, c->words_cap, sizeof(*c->word));
    }
    c->word[c->nwords++] = from;
    c->word[c->nwords] = from + n;
    int code = 0;
    if (c->far.fd < 0) {
        code = pq_stream_read(&c->in, buf_reserve(&c->words, n), n, e);
        c->words.len += n;
        return code;
    }
    char *p = buf_reserve(&c->indices, STEP);
    while (n && !code) {
        size_t k = n < STEP ? (size_t)n : STEP;
        code = pq_stream_read(&c->in, p, k, e);
        if (!code)
            code = spill_add(&c->far, p, k, e);
        n -= k;
    }
    return code;
}

/* The dictionary of a column of numbers. */
static int read_numbers(struct pq_column *c, const struct pq_header *h, struct err *e)
{
    int code = read_part(c, &c->words, (uint64_t)h->values * c->width, e);
    c->nwords = h->values;
    return code ? code : pq_stream_end(&c->in, e);
}

static int read_dictionary(struct pq_column *c, const struct pq_header *h, struct err *e)
{
    if (h->encoding != PQ_ENC_PLAIN && h->encoding != PQ_ENC_PLAIN_DICTIONARY)
        return column_bad(c, "has a dictionary in an unsupported encoding", e);
    if (h->values > COLUMN_WORDS)
        return column_bad(c, "has a dictionary of more than 4194304 values", e);
    c->nwords = 0;
    buf_reset(&c->words);
    spill_close(&c->far);
    c->far.fd = -1;
    int code = pq_stream_begin(&c->in, c->f, c->codec, h->at, h->packed, h->bytes, e);
    if (!code && c->width)
        return read_numbers(c, h, e);
    if (!code && h->bytes > COLUMN_DICTIONARY)
        code = spill_open(&c->far, c->beside, e);
    for (uint32_t i = 0; i < h->values && !code; i++) {
        char size[4];
        code = pq_stream_read(&c->in, size, 4, e);
        if (!code && load_u32(size) > pq_stream_left(&c->in))
            code = column_bad(c, "is damaged: a value goes beyond its end", e);
        if (!code)
            code = add_word(c, load_u32(size), e);
    }
    if (!code)
        code = pq_stream_end(&c->in, e);
    return !code && c->far.fd >= 0 ? spill_flush(&c->far, e) : code;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static unsigned bits_for(unsigned most)
{
    unsigned n = 0;
    for (; most >> n; n++)
        ;
    return n;
}

static int begin_indices(struct pq_column *c, struct err *e)
{
    unsigned char bits = 0;
    uint64_t left = pq_stream_left(&c->in);
    if (!left) { /* nulls only */
        pq_runs_open(&c->index, &(struct buf){0}, 0, 0);
        return 0;
    }
    int code = pq_stream_read(&c->in, &bits, 1, e);
    if (!code && bits > 32)
        code = column_bad(c, "has indices of more than 32 bits", e);
    if (!code)
        code = read_part(c, &c->indices, left - 1, e);
    pq_runs_open(&c->index, &c->indices, 0, bits);
    return code;
}

static int begin_values(struct pq_column *c, struct err *e)
{
    int code = 0;
    c->next = c->nlengths = c->nprefixes = 0;
    if ((c->encoding == PQ_ENC_DELTA) != !!c->width && c->encoding != PQ_ENC_PLAIN &&
        c->encoding != PQ_ENC_PLAIN_DICTIONARY && c->encoding != PQ_ENC_RLE_DICTIONARY)
        return column_bad(c, "is in an unsupported encoding", e);
    switch (c->encoding) {
    case PQ_ENC_PLAIN:
        return 0;
    case PQ_ENC_PLAIN_DICTIONARY:
    case PQ_ENC_RLE_DICTIONARY:
        return begin_indices(c, e);
    case PQ_ENC_DELTA_BYTES:
        buf_reset(&c->last);
        if (pq_stream_left(&c->in))
            code = delta_read(c, &c->prefix, &c->nprefixes, e);
        if (code)
            return code;
        /* fall through */
    case PQ_ENC_DELTA:
    case PQ_ENC_DELTA_LENGTH:
        if (pq_stream_left(&c->in))
            code = delta_read(c, &c->length, &c->nlengths, e);
        if (!code && c->encoding == PQ_ENC_DELTA_BYTES && c->nprefixes != c->nlengths)
            code = column_bad(c, "does not have as many prefixes as values", e);
        return code;
    default:
        return column_bad(c, "is in an unsupported encoding", e);
    }
}

static int read_levels(struct pq_column *c, struct buf *b, struct err *e)
{
    char size[4];
    int code = pq_stream_read(&c->in, size, 4, e);
    return code ? code : read_part(c, b, load_u32(size), e);
}

/* In a version 1 page the levels precede the values and are compressed with them. */
static int begin_data(struct pq_column *c, const struct pq_header *h, struct err *e)
{
    int code = pq_stream_begin(&c->in, c->f, c->codec, h->at, h->packed, h->bytes, e);
    if (!code && c->max_def && h->levels != PQ_ENC_RLE)
        return column_bad(c, "has levels in an unsupported encoding", e);
    if (!code && c->width && h->values)
        code = read_levels(c, &c->repeats, e);
    if (!code && c->max_def && h->values)
        code = read_levels(c, &c->levels, e);
    return code;
}

/* In version 2 they are not compressed. */
static int begin_data_v2(struct pq_column *c, const struct pq_header *h, struct err *e)
{
    uint64_t levels = (uint64_t)h->def_bytes + h->rep_bytes;
    if (levels > h->packed || levels > h->bytes)
        return column_bad(c, "has levels that are longer than it is", e);
    int code = pq_stream_begin(&c->in, c->f, PQ_PLAIN, h->at, levels, levels, e);
    if (!code)
        code = read_part(c, &c->repeats, h->rep_bytes, e);
    if (!code)
        code = read_part(c, &c->levels, h->def_bytes, e);
    return code ? code
                : pq_stream_begin(&c->in, c->f, h->compressed ? c->codec : PQ_PLAIN, h->at + levels,
                                  h->packed - levels, h->bytes - levels, e);
}

static int begin_page(struct pq_column *c, const struct pq_header *h, struct err *e)
{
    int code = pq_header_check(c->f, h, e);
    if (code || h->type == PQ_INDEX)
        return code;
    if (h->type == PQ_DICTIONARY)
        return read_dictionary(c, h, e);
    if (h->type != PQ_DATA && h->type != PQ_DATA_V2)
        return 0; /* the specification allows skipping unknown kinds */
    c->left = h->values;
    c->encoding = h->encoding;
    c->open = true;
    buf_reset(&c->levels);
    buf_reset(&c->repeats);
    code = h->type == PQ_DATA ? begin_data(c, h, e) : begin_data_v2(c, h, e);
    pq_runs_open(&c->def, &c->levels, 0, bits_for(c->max_def));
    pq_runs_open(&c->rep, &c->repeats, 0, 1);
    return code ? code : begin_values(c, e);
}

static int end_page(struct pq_column *c, struct err *e)
{
    int code = c->open ? pq_stream_end(&c->in, e) : 0;
    c->open = false;
    return code;
}

/* The next page that has values. */
static int next_page(struct pq_column *c, struct err *e)
{
    int code = end_page(c, e);
    while (!code && !c->left) {
        struct pq_header h;
        c->page = c->at;
        if (c->at == c->end)
            return column_bad(
                c, "should follow, but the column ends before the last row of its group", e);
        code = pq_header_read(c->f, c->at, c->end, &h, e);
        if (code)
            return code;
        c->at = h.at + h.packed;
        code = begin_page(c, &h, e);
        if (!code && !c->left)
            code = end_page(c, e);
    }
    return code;
}

/* ---- values --------------------------------------------------------------------------------- */

static int next_word(struct pq_column *c, uint64_t *ret_n, struct err *e)
{
    uint32_t i;
    if (!pq_runs_next(&c->index, &i))
        return column_bad(c, "has fewer indices than values", e);
    if (i >= c->nwords)
        return column_bad(c, "has an index beyond its dictionary", e);
    c->value_at = c->word[i];
    *ret_n = c->word[i + 1] - c->word[i];
    return 0;
}

/* A value that shares a prefix with the one before it. */
static int next_prefixed(struct pq_column *c, uint64_t *ret_n, struct err *e)
{
    size_t prefix = c->prefix[c->next], n = c->length[c->next];
    if (prefix > c->last.len)
        return column_bad(c, "has a prefix that is longer than the value before it", e);
    if (prefix + n > COLUMN_PREFIXED)
        return column_bad(c, "has a value of more than 64 MiB in DELTA_BYTE_ARRAY", e);
    if (n > pq_stream_left(&c->in))
        return column_bad(c, "is damaged: a value goes beyond its end", e);
    c->last.len = prefix;
    int code = pq_stream_read(&c->in, buf_reserve(&c->last, n), n, e);
    c->last.len += n;
    c->value_at = 0;
    *ret_n = c->last.len;
    return code;
}

static int next_value(struct pq_column *c, uint64_t *ret_n, struct err *e)
{
    char size[4];
    int code = 0;
    switch (c->encoding) {
    case PQ_ENC_PLAIN:
        code = pq_stream_read(&c->in, size, 4, e);
        *ret_n = code ? 0 : load_u32(size);
        break;
    case PQ_ENC_PLAIN_DICTIONARY:
    case PQ_ENC_RLE_DICTIONARY:
        return next_word(c, ret_n, e);
    default:
        if (c->next == c->nlengths)
            return column_bad(c, "has fewer lengths than values", e);
        if (c->encoding == PQ_ENC_DELTA_BYTES)
            code = next_prefixed(c, ret_n, e);
        else
            *ret_n = c->length[c->next];
        c->next++;
        if (code || c->encoding == PQ_ENC_DELTA_BYTES)
            return code;
    }
    if (!code && *ret_n > pq_stream_left(&c->in))
        code = column_bad(c, "is damaged: a value goes beyond its end", e);
    return code;
}

static int next_number(struct pq_column *c, int64_t *ret, struct err *e)
{
    unsigned char b[8];
    const unsigned char *p = b;
    uint32_t i;
    int code = 0;
    if (c->encoding == PQ_ENC_DELTA) {
        if (c->next == c->nlengths)
            return column_bad(c, "has fewer numbers than values", e);
        *ret = c->length[c->next++];
        return 0;
    }
    if (c->encoding == PQ_ENC_PLAIN)
        code = pq_stream_read(&c->in, b, c->width, e);
    else if (!pq_runs_next(&c->index, &i))
        return column_bad(c, "has fewer indices than values", e);
    else if (i >= c->nwords)
        return column_bad(c, "has an index beyond its dictionary", e);
    else
        p = (const unsigned char *)c->words.data + (size_t)i * c->width;
    if (!code)
        *ret = c->width == 4 ? (int32_t)load_u32(p) : (int64_t)load_u64(p);
    return code;
}

int pq_column_number(struct pq_column *c, struct pq_number *ret, struct err *e)
{
    uint32_t rep = 0, def = 0;
    int code = c->left ? 0 : next_page(c, e);
    if (code)
        return code;
    c->left--;
    if (!pq_runs_next(&c->rep, &rep) || !pq_runs_next(&c->def, &def))
        return column_bad(c, "has fewer levels than values", e);
    if (rep > 1 || def > c->max_def)
        return column_bad(c, "has a level that is too high", e);
    *ret = (struct pq_number){.rep = rep, .def = def, .value = INT64_MIN};
    return def == c->max_def ? next_number(c, &ret->value, e) : 0;
}

bool pq_column_done(const struct pq_column *c)
{
    return !c->left && c->at == c->end;
}

int pq_column_next(struct pq_column *c, bool *ret_there, uint64_t *ret_n, struct err *e)
{
    uint32_t level = c->max_def;
    int code = 0;
    BUG_ON(c->value, "%llu bytes of a value were not taken", (unsigned long long)c->value);
    if (!c->left)
        code = next_page(c, e);
    if (code)
        return code;
    c->left--;
    if (c->max_def && !pq_runs_next(&c->def, &level))
        return column_bad(c, "has fewer levels than values", e);
    if (level > c->max_def)
        return column_bad(c, "has a level that is too high", e);
    *ret_there = level == c->max_def;
    *ret_n = 0;
    if (*ret_there)
        code = next_value(c, ret_n, e);
    c->value = code ? 0 : *ret_n;
    return code;
}

int pq_column_take(struct pq_column *c, void *p, size_t n, struct err *e)
{
    int code = 0;
    bool word = c->encoding == PQ_ENC_PLAIN_DICTIONARY || c->encoding == PQ_ENC_RLE_DICTIONARY;
    if (!n)
        return 0;
    if (word && c->far.fd >= 0)
        code = spill_read(&c->far, c->value_at, p, n, e);
    else if (word)
        memcpy(p, c->words.data + c->value_at, n);
    else if (c->encoding == PQ_ENC_DELTA_BYTES)
        memcpy(p, c->last.data + c->value_at, n);
    else
        code = pq_stream_read(&c->in, p, n, e);
    c->value_at += n;
    c->value -= n;
    return code;
}

int pq_column_end(struct pq_column *c, struct err *e)
{
    int code = 0;
    if (c->left)
        return column_bad(c, "has more values than its row group has rows", e);
    code = end_page(c, e);
    return code;
}

void pq_column_init(struct pq_column *c, const struct pq_file *f, const char *beside,
                    const struct pq_leaf *leaf)
{
    *c = (struct pq_column){.f = f,
                            .beside = beside,
                            .max_def = leaf->max_def,
                            .width = leaf->width,
                            .far = {.fd = -1}};
}

void pq_column_begin(struct pq_column *c, const struct pq_chunk *chunk)
{
    c->codec = chunk->codec;
    c->at = c->page = chunk->at;
    c->end = chunk->at + chunk->size;
    c->left = c->value = 0;
    c->open = false;
    c->nwords = 0;
}

void pq_column_close(struct pq_column *c)
{
    pq_stream_close(&c->in);
    buf_finish(&c->levels);
    buf_finish(&c->repeats);
    buf_finish(&c->indices);
    buf_finish(&c->words);
    buf_finish(&c->last);
    spill_close(&c->far);
    free(c->word);
    free(c->length);
    free(c->prefix);
    *c = (struct pq_column){.far = {.fd = -1}};
}
