/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tok/scan.h"
#include "tok/unicode.h"

enum { PADDING = 64 };

struct scratch {
    uint32_t *at;
    size_t cap;
    struct buf text, norm; /* mended; normalized */
    uint64_t invalid;
    char apart[64]; /* threads write to lines of their own */
};

struct learn_bytes {
    enum scan_family family;
    bool nfc;
    struct scratch *scratch;
    int threads;
};

struct learn_bytes *learn_bytes_create(const struct learn_family *family, int threads)
{
    struct learn_bytes *b = mem_new(1, sizeof(*b));
    *b = (struct learn_bytes){.family = scan_find(family->pattern),
                              .nfc = family->nfc,
                              .threads = threads};
    BUG_ON(b->family == SCAN_NONE, "no scanner knows the pattern of %s", family->name);
    b->scratch = mem_new((size_t)threads, sizeof(*b->scratch));
    return b;
}

void learn_bytes_destroy(struct learn_bytes *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->threads; i++) {
        free(b->scratch[i].at);
        buf_finish(&b->scratch[i].text);
        buf_finish(&b->scratch[i].norm);
    }
    free(b->scratch);
    free(b);
}

uint64_t learn_bytes_invalid(const struct learn_bytes *b)
{
    uint64_t n = 0;
    for (int i = 0; i < b->threads; i++)
        n += b->scratch[i].invalid;
    return n;
}

/* The first byte that is no UTF-8, or the end. */
static const char *valid_part(const char *p, const char *end)
{
    while (p < end) {
        if (end - p >= 8 && !(load_u64(p) & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        size_t k = utf8_char(p, end);
        if (!k)
            return p;
        p += k;
    }
    return end;
}

static void mend(struct scratch *s, const char *text, size_t n, const char *bad)
{
    const char *end = text + n;
    buf_reset(&s->text);
    while (text < end) {
        buf_add(&s->text, text, (size_t)(bad - text));
        text = bad;
        if (text < end) {
            buf_adds(&s->text, "\xef\xbf\xbd");
            s->invalid++;
            text++;
        }
        bad = valid_part(text, end);
    }
    memset(buf_reserve(&s->text, PADDING), 0, PADDING);
}

void learn_bytes_split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                       uint64_t count)
{
    struct learn_bytes *b = arg;
    struct scratch *s = &b->scratch[thread];
    const char *bad = valid_part(text, text + n);
    if (bad < text + n) {
        mend(s, text, n, bad);
        text = s->text.data;
        n = s->text.len;
    }
    if (b->nfc) {
        buf_reset(&s->norm);
        uni_normalize(UNI_NFC, text, n, &s->norm);
        memset(buf_reserve(&s->norm, PADDING), 0, PADDING);
        text = s->norm.data;
        n = s->norm.len;
    }
    if (s->cap < n + 1) {
        free(s->at);
        s->cap = n + n / 2 + 1;
        s->at = mem_grow(NULL, s->cap, sizeof(*s->at));
    }
    size_t words = scan_starts(b->family, text, n, s->at);
    learn_table_add(t, text, s->at, words, count);
}
