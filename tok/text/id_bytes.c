/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/id_bytes.h"

#include <stdlib.h>
#include <string.h>
#include "base/core/bytes.h"
#include "base/core/simd.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

enum {
    AT_ONCE = 512, /* ids that room is made for */
    STEP = 16,
    WIDTH = 64, /* bytes that are written for four ids */
    RUNS = 1024 /* ids whose bytes are looked at together */
};

void id_bytes_init(struct id_bytes_table *s, size_t n)
{
    *s = (struct id_bytes_table){.of = mem_new(n + 1, sizeof(*s->of))};
    mem_large_pages(s->of, n * sizeof(*s->of));
    memset(buf_reserve(&s->text, STEP), 0, STEP);
}

void id_bytes_finish(struct id_bytes_table *s)
{
    free(s->of);
    buf_finish(&s->text);
}

static void set_far(struct id_bytes_table *s, struct id_bytes_entry *to, const char *p, size_t n)
{
    to->far.at = s->text.len;
    to->far.length = (uint32_t)n;
    buf_add(&s->text, p, n);
    memset(buf_reserve(&s->text, STEP), 0, STEP);
}

/* 1 to 15 bytes of which none is 0, else false; are they UTF-8? */
static bool set_plain(struct id_bytes_entry *to, const char *p, size_t n, bool *ret_good)
{
    char text[STEP] = {0};
    memcpy(text, p, n);
    memcpy(to->all, text, STEP);
    *ret_good =
        !((load_u64(text) | load_u64(text + 8)) & 0x8080808080808080u) || utf8_good(p, n) == n;
    return !memchr(text, 0, n);
}

#ifdef __x86_64__
AVX512_BYTES static inline unsigned ids_equal(__m128i v, int c)
{
    return _mm_cmpeq_epi8_mask(v, _mm_set1_epi8((char)c));
}

AVX512_BYTES static inline unsigned from(__m128i v, int c)
{
    return _mm_cmpge_epu8_mask(v, _mm_set1_epi8((char)c));
}

/* RFC 3629, as sets of places. */
AVX512_BYTES static inline bool good_wide(__m128i v)
{
    unsigned high = (unsigned)_mm_movepi8_mask(v), lead = from(v, 0xc2), three = from(v, 0xe0),
             four = from(v, 0xf0), next = high & ~from(v, 0xc0), odd = next & from(v, 0xa0),
             far = next & from(v, 0x90);
    unsigned bad = high & ~(lead | next);
    bad |= from(v, 0xf5) | ((lead << 1 | three << 2 | four << 3) ^ next);
    bad |= ids_equal(v, 0xe0) << 1 & ~odd;
    bad |= ids_equal(v, 0xed) << 1 & odd;
    bad |= ids_equal(v, 0xf0) << 1 & ~far;
    bad |= ids_equal(v, 0xf4) << 1 & far;
    return !bad;
}

AVX512_BYTES static bool set_wide(struct id_bytes_entry *to, const char *p, size_t n,
                                  bool *ret_good)
{
    unsigned all = (1u << n) - 1;
    __m128i v = _mm_maskz_loadu_epi8((__mmask16)all, p);
    _mm_storeu_si128((void *)to->all, v);
    *ret_good = good_wide(v);
    return _mm_test_epi8_mask(v, v) == all;
}
#endif

static bool set_near(struct id_bytes_entry *to, const char *p, size_t n, bool *ret_good)
{
#ifdef __x86_64__
    if (cpu_avx512_bytes())
        return set_wide(to, p, n, ret_good);
#endif
    return set_plain(to, p, n, ret_good);
}

void id_bytes_set(struct id_bytes_table *s, size_t id, const char *p, size_t n, int mark)
{
    struct id_bytes_entry *to = &s->of[id];
    bool good = true;
    int tag = mark;
    if (n && n <= ID_BYTES_LENGTH && set_near(to, p, n, &good)) {
        tag |= (int)n;
    } else {
        *to = (struct id_bytes_entry){0};
        if (n || !(mark & ID_BYTES_RUN)) {
            set_far(s, to, p, n);
            tag |= ID_BYTES_FAR;
            good = utf8_good(p, n) == n;
        }
    }
    tag |= good ? 0 : ID_BYTES_PART;
    s->parts |= !good && !(mark & ID_BYTES_RUN);
    to->all[15] = (char)tag;
}

const char *id_bytes_text(const struct id_bytes_table *s, int32_t id, size_t *ret_n)
{
    const struct id_bytes_entry *of = &s->of[id];
    bool far = id_bytes_tag(of) & ID_BYTES_FAR;
    *ret_n = far ? of->far.length : id_bytes_tag(of) & ID_BYTES_LENGTH;
    return far ? s->text.data + of->far.at : of->text;
}

/* ---- ids up to `end` or the first that does not lie in the table; there is room for them --------
 */

typedef char *put_near(const struct id_bytes_entry *of, const int32_t **id, const int32_t *end,
                       char *to, unsigned *seen);

static char *ids_put_plain(const struct id_bytes_entry *of, const int32_t **id, const int32_t *end,
                           char *to, unsigned *seen)
{
    const int32_t *p = *id;
    unsigned all = 0;
    for (; p < end; p++) {
        const struct id_bytes_entry *s = &of[*p];
        unsigned tag = id_bytes_tag(s);
        memcpy(to, s->all, 16);
        if (tag >= ID_BYTES_FAR)
            break;
        all |= tag;
        to += tag & ID_BYTES_LENGTH;
    }
    *id = p;
    *seen |= all;
    return to;
}

#ifdef __x86_64__
AVX512_BYTES static inline __m128i one(const struct id_bytes_entry *of, int32_t id)
{
    return _mm_loadu_si128((const void *)&of[(uint32_t)id]);
}

AVX512_BYTES static inline __m512i four(const struct id_bytes_entry *of, const int32_t *id)
{
    __m512i v = _mm512_castsi128_si512(one(of, id[0]));
    v = _mm512_inserti32x4(v, one(of, id[1]), 1);
    v = _mm512_inserti32x4(v, one(of, id[2]), 2);
    return _mm512_inserti32x4(v, one(of, id[3]), 3);
}

/* A text's bytes are none of them 0, so that those which are not are the ones that count. Of a tag
 * the highest bit is seen: it is in no mask that is used. */
AVX512_BYTES static char *put_wide(const struct id_bytes_entry *of, const int32_t **id,
                                   const int32_t *end, char *to, unsigned *seen)
{
    const __m512i count = _mm512_broadcast_i32x4(_mm_setr_epi8(
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, (char)ID_BYTES_FAR));
    const uint64_t far = 0x8000800080008000u;
    __m512i all = _mm512_setzero_si512();
    const int32_t *p = *id;
    for (; end - p >= 8; p += 8) {
        __m512i v = four(of, p), w = four(of, p + 4);
        uint64_t m = _mm512_test_epi8_mask(v, count), k = _mm512_test_epi8_mask(w, count);
        if ((m | k) & far)
            break;
        all = _mm512_or_si512(all, _mm512_or_si512(v, w));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(m, v));
        to += __builtin_popcountll(m);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(k, w));
        to += __builtin_popcountll(k);
    }
    *id = p;
    char tag[WIDTH];
    _mm512_storeu_si512(tag, all);
    *seen |= (uint8_t)(tag[15] | tag[31] | tag[47] | tag[63]);
    return ids_put_plain(of, id, end - p < 8 ? end : p + 8, to, seen);
}
#endif

static void put_far(const struct id_bytes_table *s, const struct id_bytes_entry *of,
                    struct buf *out)
{
    size_t n = of->far.length;
    const char *from = s->text.data + of->far.at;
    char *to = buf_reserve(out, n + STEP);
    for (size_t i = 0; i < n; i += STEP)
        memcpy(to + i, from + i, STEP);
    out->len += n;
}

static inline unsigned put_all(const struct id_bytes_table *s, const int32_t *id, size_t n,
                               struct buf *out, put_near *near)
{
    const int32_t *p = id, *end = id + n;
    unsigned seen = 0;
    while (p < end) {
        const int32_t *stop = end - p < AT_ONCE ? end : p + AT_ONCE;
        char *to = buf_reserve(out, (size_t)(stop - p) * STEP + WIDTH);
        to = near(s->of, &p, stop, to, &seen);
        out->len = (size_t)(to - out->data);
        if (p < stop && id_bytes_tag(&s->of[*p]) & ID_BYTES_FAR) {
            seen |= id_bytes_tag(&s->of[*p]) | (s->of[*p].far.length ? 0 : ID_BYTES_NOTHING);
            put_far(s, &s->of[*p++], out);
        }
    }
    return seen;
}

static unsigned all_plain(const struct id_bytes_table *s, const int32_t *id, size_t n,
                          struct buf *out)
{
    return put_all(s, id, n, out, ids_put_plain);
}

#ifdef __x86_64__
static unsigned all_wide(const struct id_bytes_table *s, const int32_t *id, size_t n,
                         struct buf *out)
{
    return put_all(s, id, n, out, put_wide);
}
#endif

id_bytes_way *id_bytes_ways(size_t i)
{
#ifdef __x86_64__
    if (i == 1 && cpu_avx512_bytes())
        return all_wide;
#endif
    return i ? NULL : all_plain;
}

unsigned id_bytes_append(const struct id_bytes_table *s, const int32_t *id, size_t n,
                         struct buf *out)
{
#ifdef __x86_64__
    if (n >= 4 && cpu_avx512_bytes())
        return all_wide(s, id, n, out);
#endif
    return all_plain(s, id, n, out);
}

/* Ids up to the last place among the first k where no run of bytes goes on; where there is none, up
 * to the first. */
static size_t to_place(const struct id_bytes_table *s, const int32_t *id, size_t n, size_t k)
{
    size_t last = k;
    while (last && last < n && id_bytes_tag(&s->of[id[last - 1]]) & ID_BYTES_RUN)
        last--;
    while (!last && k < n && id_bytes_tag(&s->of[id[k - 1]]) & ID_BYTES_RUN)
        k++;
    return last ? last : k;
}

size_t id_bytes_append_runs(const struct id_bytes_table *s, const int32_t *id, size_t n,
                            struct buf *out, size_t *ret_odd)
{
    size_t done = 0;
    *ret_odd = s->parts ? n : 0;
    while (done < n && !*ret_odd) {
        size_t k = n - done < RUNS ? n - done : RUNS, from = out->len;
        k = to_place(s, id + done, n - done, k);
        unsigned seen = id_bytes_append(s, id + done, k, out);
        size_t length = out->len - from;
        bool split =
            (seen & (ID_BYTES_PART | ID_BYTES_NOTHING)) == (ID_BYTES_PART | ID_BYTES_NOTHING);
        if (!split && (!(seen & ID_BYTES_PART) || utf8_good(out->data + from, length) == length)) {
            done += k;
        } else {
            out->len = from;
            *ret_odd = k;
        }
    }
    return done;
}
