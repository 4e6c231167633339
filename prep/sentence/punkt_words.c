/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sentence/punkt_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/utf8.h"
#include "tok/unicode/unicode.h"

enum { FILE_MAX = 64 << 20 };

struct slot {
    size_t at; /* in `words`; 0: a free slot, as no word is at 0 */
    uint32_t n;
    unsigned facts;
};

enum { CLASSES = 0x20000 }; /* no cased and few other characters are above */

struct punkt {
    uint8_t *class; /* of the first CLASSES code points */
    struct buf words;
    struct slot *slot;
    size_t slots, count; /* slots: a power of two */
};

/* ---- characters ----------------------------------------------------------------------------- */

static unsigned category_class(uint32_t c)
{
    enum { MARK = PUNKT_LETTER | PUNKT_IGNORED };
    static const uint8_t class[UNI_CATEGORIES] = {
        [UNI_LU] = PUNKT_LETTER, [UNI_LL] = PUNKT_LETTER, [UNI_LT] = PUNKT_LETTER,
        [UNI_LO] = PUNKT_LETTER, [UNI_LM] = MARK,         [UNI_NL] = PUNKT_LETTER,
        [UNI_PC] = PUNKT_LETTER, [UNI_ND] = PUNKT_DIGIT,  [UNI_MN] = MARK,
        [UNI_ME] = MARK,         [UNI_MC] = PUNKT_LETTER, [UNI_CF] = PUNKT_IGNORED,
        [UNI_SK] = PUNKT_IGNORED};
    return class[uni_category(UNI_16, c)];
}

static void mark_named(struct punkt *p, const char *name, unsigned bits)
{
    struct uni_ranges r;
    BUG_ON(!uni_find_named(name, &r), "no property %s", name);
    while (uni_next_range(&r))
        for (uint32_t c = r.first; c < r.end && c < CLASSES; c++)
            p->class[c] |= (uint8_t)bits;
}

static void fill_classes(struct punkt *p)
{
    static const uint32_t inside[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    p->class = mem_new(CLASSES, 1);
    for (uint32_t c = 0; c < CLASSES; c++)
        p->class[c] = (uint8_t)category_class(c);
    mark_named(p, "uppercase", PUNKT_UPPER | PUNKT_LETTER); /* circled letters are letters */
    mark_named(p, "lowercase", PUNKT_LOWER | PUNKT_LETTER);
    mark_named(p, "cased", PUNKT_CASED);
    mark_named(p, "whitespace", PUNKT_SPACE);
    for (uint32_t c = 0x1c; c < 0x20; c++)
        p->class[c] = PUNKT_CONTROL;
    p->class[0x200c] |= PUNKT_LETTER; /* joiners */
    p->class[0x200d] |= PUNKT_LETTER;
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
        p->class[inside[i]] |= PUNKT_IGNORED;
}

unsigned punkt_class(const struct punkt *p, const char *at, const char *end, size_t *ret_n)
{
    *ret_n = 1;
    if (!(*at & 0x80))
        return p->class[(unsigned char)*at];
    size_t n = utf8_char(at, end);
    if (!n)
        return 0;
    *ret_n = n;
    uint32_t c = utf8_code(at, n);
    return c < CLASSES ? p->class[c] : category_class(c);
}

/* Whether the sigma w[at .. at + 2) is the last letter of a word. */
static bool final_sigma(const struct punkt *p, const char *w, size_t n, size_t at)
{
    unsigned before = 0, behind = 0;
    size_t k;
    for (size_t i = at; i && !before;) {
        for (i--; i && (w[i] & 0xc0) == 0x80;)
            i--;
        unsigned class = punkt_class(p, w + i, w + n, &k);
        before = class & PUNKT_IGNORED ? 0 : class | PUNKT_IGNORED;
    }
    for (size_t i = at + 2; i < n && !behind; i += k) {
        unsigned class = punkt_class(p, w + i, w + n, &k);
        behind = class & PUNKT_IGNORED ? 0 : class | PUNKT_IGNORED;
    }
    return before & PUNKT_CASED && !(behind & PUNKT_CASED);
}

void punkt_lower(const struct punkt *p, const char *w, size_t n, struct buf *ret)
{
    size_t i = 0, from = ret->len;
    char *to = buf_reserve(ret, n);
    for (; i < n && !(w[i] & 0x80); i++)
        to[i] = (char)(w[i] >= 'A' && w[i] <= 'Z' ? w[i] | 0x20 : w[i]);
    ret->len += i;
    if (i == n)
        return;
    ret->len = from;
    uni_lowercase(w, n, ret);
    for (i = 0; i + 1 < n; i++) {
        if (w[i] != '\xce' || w[i + 1] != '\xa3' || !final_sigma(p, w, n, i))
            continue;
        struct buf before = {0}; /* the text before it may change its length */
        uni_lowercase(w, i, &before);
        memcpy(ret->data + from + before.len, "\xcf\x82", 2);
        buf_finish(&before);
    }
}

/* ---- words ---------------------------------------------------------------------------------- */

struct punkt *punkt_create(void)
{
    struct punkt *p = mem_new(1, sizeof(*p));
    fill_classes(p);
    buf_addc(&p->words, '\0');
    p->slots = 1024;
    p->slot = mem_new(p->slots, sizeof(*p->slot));
    return p;
}

void punkt_destroy(struct punkt *p)
{
    if (!p)
        return;
    free(p->class);
    buf_finish(&p->words);
    free(p->slot);
    free(p);
}

static struct slot *punkt_words_find(const struct punkt *p, const char *word, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)word[i]) * 0x100000001b3u;
    for (size_t i = (size_t)(h ^ h >> 32);; i++) {
        struct slot *s = &p->slot[i & (p->slots - 1)];
        if (!s->at || (s->n == n && !memcmp(p->words.data + s->at, word, n)))
            return s;
    }
}

static void enlarge(struct punkt *p)
{
    struct slot *old = p->slot;
    size_t n = p->slots;
    p->slots *= 4;
    p->slot = mem_new(p->slots, sizeof(*p->slot));
    for (size_t i = 0; i < n; i++)
        if (old[i].at)
            *punkt_words_find(p, p->words.data + old[i].at, old[i].n) = old[i];
    free(old);
}

void punkt_add(struct punkt *p, const char *word, size_t n, unsigned facts)
{
    BUG_ON(n > UINT32_MAX, "a word of %zu bytes", n);
    struct slot *s = punkt_words_find(p, word, n);
    if (!s->at) {
        *s = (struct slot){p->words.len, (uint32_t)n, 0};
        buf_add(&p->words, word, n);
        buf_addc(&p->words, '\0'); /* so that an empty word has a place, too */
        s->facts = facts;
        if (++p->count > p->slots / 2)
            enlarge(p);
        return;
    }
    s->facts |= facts;
}

unsigned punkt_facts(const struct punkt *p, const char *word, size_t n)
{
    return punkt_words_find(p, word, n)->facts;
}

/* ---- NLTK's files --------------------------------------------------------------------------- */

enum { WORDS, PAIRS, CONTEXTS };

static const struct {
    const char *name;
    int kind;
    unsigned facts;
} files[] = {{"abbrev_types.txt", WORDS, PUNKT_ABBREVIATION},
             {"collocations.tab", PAIRS, PUNKT_PAIR},
             {"sent_starters.txt", WORDS, PUNKT_STARTER},
             {"ortho_context.tab", CONTEXTS, 0}};
enum { FILES = sizeof(files) / sizeof(*files) };

/* Reads "word TAB number", the number of the six lowest facts. */
static bool take_context(struct punkt *p, const char *line, const char *tab, const char *end)
{
    unsigned facts = 0;
    if (tab + 1 == end || end - tab > 4)
        return false;
    for (const char *d = tab + 1; d < end; d++) {
        if (*d < '0' || *d > '9')
            return false;
        facts = facts * 10 + (unsigned)(*d - '0');
    }
    if (facts & 1 || facts >= PUNKT_ABBREVIATION)
        return false;
    punkt_add(p, line, (size_t)(tab - line), facts);
    return true;
}

static bool take_line(struct punkt *p, size_t file, const char *line, const char *end)
{
    size_t n = (size_t)(end - line);
    const char *tab = n ? memchr(line, '\t', n) : NULL;
    bool two = tab && !memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    if (utf8_good(line, n) != n || (files[file].kind == WORDS ? tab != NULL : !two))
        return false;
    if (files[file].kind == CONTEXTS)
        return take_context(p, line, tab, end);
    punkt_add(p, line, n, files[file].facts);
    return true;
}

int punkt_parse(struct punkt *p, const char *path, const char *text, size_t n, struct err *e)
{
    static const char *const want[] = {"a word", "two words with a tab between",
                                       "a word, a tab and an even number below 128"};
    size_t length = strlen(path), file = 0, line = 1;
    while (file < FILES &&
           (length < strlen(files[file].name) ||
            strcmp(path + length - strlen(files[file].name), files[file].name) != 0))
        file++;
    BUG_ON(file == FILES, "%s: is none of punkt's files", path);
    for (const char *at = text, *end = text + n; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (!take_line(p, file, at, stop))
            return err_set(e, ERR_DATA, "%s: line %zu: is not %s", path, line,
                           want[files[file].kind]);
        at = stop + 1;
    }
    return 0;
}

int punkt_load(struct punkt *p, const char *folder, char ret_digest[XXH_TEXT], struct err *e)
{
    struct xxh *h = xxh_create();
    int code = 0;
    for (size_t i = 0; i < FILES && !code; i++) {
        struct buf b = {0};
        char *path = path_join(folder, files[i].name);
        code = file_read(path, FILE_MAX, &b, e);
        if (!code)
            code = punkt_parse(p, path, b.data, b.len, e);
        if (!code)
            xxh_add(h, b.data, b.len);
        buf_finish(&b);
        free(path);
    }
    xxh_text(h, ret_digest);
    xxh_destroy(h);
    return code;
}
