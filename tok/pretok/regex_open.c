/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex_open.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pretok/regex_prog.h"

#if WEFT_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    WIDE = 0x10000,      /* characters below it are looked up in a table, */
    OTHERS = 1024,       /* and so many of the others */
    BEFORE = 8,          /* bytes that are kept before those that may be read again */
    STEPS_EACH = 64,     /* bytes read for each byte of a text so far, */
    WAYS_EACH = 256,     /* ways to match that are followed, */
    STEPS_FREE = 1 << 26 /* and of any text */
};

#define KNOWN ((uint64_t)1 << 63)
#define NO_CHAR UINT32_MAX

/* A way to match: it began at `start` and goes on with the instruction `at`. */
struct way {
    int at;
    uint64_t start;
};

/* Positions are those in the whole text. */
struct regex_open {
    const struct regex *r;
    struct regex_part *part; /* of a pattern without a program */
    size_t more, enough;     /* bytes not searched yet; as many as are searched again */
    struct regex_prog *g;
    pcre2_match_data *data;
    uint64_t *mask; /* by character: the atoms that match it, and KNOWN */
    struct {
        uint32_t c;
        uint64_t mask;
    } * other;
    struct way *way, *next; /* in order of preference, and so of their starts */
    size_t nways, nnext;
    uint32_t *seen, round; /* by instruction: the last round in which it was reached */
    int *stack;
    struct buf text;
    size_t most;      /* of its bytes */
    uint64_t begin;   /* of `text` */
    uint64_t at, out; /* where reading is; bytes passed on */
    uint32_t before;  /* the character before `at` */
    uint64_t start, end, last;
    bool found;   /* a match [start .. end), unless a preferred way leads to another */
    bool matched; /* there was one before, which ended at `last` */
    bool begun;   /* part of the match, or of the text between matches, is passed on; */
    bool inside;  /* it is the match */
    bool empties; /* empty matches are passed on, too */
    uint64_t taken, work, total;
    uint64_t followed; /* ways, over all characters */
    regex_open_span *put;
    void *arg;
    struct err *e;
};

/* False: the pattern needs the whole text. */
static bool regex_open_prepare(struct regex_open *o)
{
    struct buf b = {0};
    struct err ignored;
    bool lines;
    struct regex_prog *g = regex_respell(o->r, &b, &lines, &ignored)
                               ? NULL
                               : regex_prog_create(buf_str(&b), b.len, lines);
    buf_finish(&b);
    o->part = g ? NULL : regex_part_create(o->r);
    regex_open_reset(o);
    if (!g)
        return o->part;
    size_t n = (size_t)g->nsteps;
    o->g = g;
    o->data = pcre2_match_data_create(1, NULL);
    BUG_ON(!o->data, "no memory for matching");
    o->mask = mem_new(WIDE, sizeof(*o->mask));
    o->other = mem_new(OTHERS, sizeof(*o->other));
    o->way = mem_new(n, sizeof(*o->way));
    o->next = mem_new(n, sizeof(*o->next));
    o->seen = mem_new(n, sizeof(*o->seen));
    o->stack = mem_new(2 * n + 1, sizeof(*o->stack));
    return true;
}

/* Instructions are made when a text comes, where it is known that there is a way. */
struct regex_open *regex_open_create(const struct regex *r)
{
    struct regex_open *o = mem_new(1, sizeof(*o));
    o->r = r;
    o->most = REGEX_OPEN_KEPT;
    if (regex_family(r) != SCAN_NONE || regex_has_parts(r) || regex_open_prepare(o))
        return o;
    regex_open_destroy(o);
    return NULL;
}

bool regex_open_is_program(struct regex_open *o)
{
    return o->g || (!o->part && regex_open_prepare(o) && o->g);
}

void regex_open_destroy(struct regex_open *o)
{
    if (!o)
        return;
    regex_part_destroy(o->part);
    regex_prog_destroy(o->g);
    pcre2_match_data_free(o->data);
    free(o->mask);
    free(o->other);
    free(o->way);
    free(o->next);
    free(o->seen);
    free(o->stack);
    buf_finish(&o->text);
    free(o);
}

void regex_open_reset(struct regex_open *o)
{
    o->nways = o->text.len = o->more = o->enough = 0;
    o->start = o->end = o->last = 0;
    if (o->part)
        regex_part_begin(o->part);
    o->begin = o->at = o->out = o->taken = o->total = o->followed = 0;
    o->before = NO_CHAR;
    o->found = o->matched = o->begun = o->inside = false;
}

void regex_open_limit(struct regex_open *o, size_t most)
{
    o->most = most;
}

void regex_open_pass_empty(struct regex_open *o)
{
    o->empties = true;
}

uint64_t regex_open_take_work(struct regex_open *o)
{
    uint64_t work = o->work;
    o->work = 0;
    return work;
}

/* ---- characters ------------------------------------------------------------------------------ */

static uint64_t try_atoms(struct regex_open *o, uint32_t c)
{
    char u[4];
    size_t n = utf8_put(u, c);
    uint64_t mask = KNOWN;
    for (int i = 0; i < o->g->natoms; i++)
        if (pcre2_match(o->g->atom[i], (PCRE2_SPTR)u, n, 0, PCRE2_NO_UTF_CHECK, o->data, NULL) >= 0)
            mask |= (uint64_t)1 << i;
    return mask;
}

/* The atoms that match a character. */
static uint64_t mask_of(struct regex_open *o, uint32_t c)
{
    if (c < WIDE)
        return o->mask[c] ? o->mask[c] : (o->mask[c] = try_atoms(o, c));
    if (c == NO_CHAR)
        return 0;
    size_t i = c % OTHERS;
    if (o->other[i].c != c) {
        o->other[i].c = c;
        o->other[i].mask = try_atoms(o, c);
    }
    return o->other[i].mask;
}

/* ---- one character --------------------------------------------------------------------------- */

static bool holds(struct regex_open *o, const struct prog_step *s, uint32_t c, uint64_t mask)
{
    switch (s->test) {
    case TEST_AHEAD:
        return mask >> s->atom & 1;
    case TEST_NOT_AHEAD:
        return !(mask >> s->atom & 1);
    case TEST_BEHIND:
        return mask_of(o, o->before) >> s->atom & 1;
    case TEST_NOT_BEHIND:
        return !(mask_of(o, o->before) >> s->atom & 1);
    case TEST_TEXT_BEGINS:
        return o->before == NO_CHAR;
    case TEST_TEXT_ENDS:
        return c == NO_CHAR;
    case TEST_LINE_BEGINS: /* not after a newline that ends the text */
        return o->before == NO_CHAR || (o->before == '\n' && c != NO_CHAR);
    case TEST_LINE_ENDS:
        return c == NO_CHAR || c == '\n';
    }
    return false;
}

/* Follows one way up to the next character, `c`; true if it is a match. */
static bool follow(struct regex_open *o, struct way w, uint32_t c, uint64_t mask)
{
    size_t n = 0;
    o->stack[n++] = w.at;
    while (n) {
        int i = o->stack[--n];
        const struct prog_step *s = &o->g->step[i];
        if (o->seen[i] == o->round)
            continue;
        o->seen[i] = o->round;
        if (s->kind == PROG_MATCH) {
            o->found = true;
            o->start = w.start;
            o->end = o->at;
            return true;
        }
        if (s->kind == PROG_SPLIT)
            o->stack[n++] = s->y;
        if (s->kind == PROG_SPLIT || (s->kind == PROG_TEST && holds(o, s, c, mask)))
            o->stack[n++] = s->x;
        if (s->kind == PROG_CHAR && mask >> s->atom & 1)
            o->next[o->nnext++] = (struct way){s->x, w.start};
    }
    return false;
}

/* All ways over the character `c` of k bytes; ways after one that is a match are dropped. */
static void read_char(struct regex_open *o, uint32_t c, size_t k)
{
    uint64_t mask = mask_of(o, c);
    bool match = false;
    o->nnext = 0;
    if (!++o->round) {
        memset(o->seen, 0, (size_t)o->g->nsteps * sizeof(*o->seen));
        o->round = 1;
    }
    for (size_t i = 0; i < o->nways && !match; i++)
        match = follow(o, o->way[i], c, mask);
    if (!match && !o->found)
        follow(o, (struct way){o->g->entry, o->at}, c, mask);
    struct way *swap = o->way;
    o->way = o->next;
    o->next = swap;
    o->nways = o->nnext;
    o->followed += o->nnext;
    o->before = c;
    o->at += k;
    o->work += k;
    o->total += k;
}

/* ---- matches --------------------------------------------------------------------------------- */

static int pass_span(struct regex_open *o, uint64_t to, bool match, bool ends)
{
    size_t n = (size_t)(to - o->out);
    bool empty = match && o->empties && o->start == o->end && o->taken;
    if (!n && !(ends && o->begun) && !empty)
        return 0;
    const char *text = buf_str(&o->text) + (o->out - o->begin);
    o->out = to;
    o->begun = !ends;
    return o->put(o->arg, text, n, match, ends, o->e);
}

/* The match found, and before it the text between matches. */
static int pass_match(struct regex_open *o, bool ends)
{
    int code = o->inside ? 0 : pass_span(o, o->start, false, true);
    o->inside = !ends;
    return code ? code : pass_span(o, o->end, true, ends);
}

/* Reads again from a position on, where a search begins. */
static void read_from(struct regex_open *o, uint64_t at)
{
    size_t i = (size_t)(at - o->begin), k;
    o->before = i ? utf8_at(o->text.data + utf8_before(o->text.data, i), &k) : NO_CHAR;
    o->at = at;
    o->nways = 0;
    o->found = false;
}

/* The match found is the one. An empty one right after the match before is none. */
static int end_match(struct regex_open *o)
{
    size_t i = (size_t)(o->end - o->begin), k = 0;
    if (o->start == o->end && o->matched && o->end == o->last) {
        if (i < o->text.len)
            utf8_at(o->text.data + i, &k);
        read_from(o, o->end + k);
        return 0;
    }
    int code = pass_match(o, true);
    o->matched = true;
    o->last = o->end;
    read_from(o, o->end);
    return code;
}

/* Passes on what is sure: of a match, the end so far; of the text between matches, what precedes
 * all ways. */
static int pass_sure(struct regex_open *o)
{
    if (o->found && o->start < o->end && o->way[0].start == o->start)
        return pass_match(o, false);
    return o->inside ? 0 : pass_span(o, o->nways ? o->way[0].start : o->at, false, false);
}

static void drop_passed(struct regex_open *o)
{
    size_t least = o->part ? regex_part_behind(o->part) : BEFORE;
    size_t done = (size_t)(o->out - o->begin), gone = done > least ? done - least : 0;
    if (!gone || gone < o->text.len - gone)
        return;
    while (gone && ((unsigned char)o->text.data[gone] & 0xc0) == 0x80)
        gone--;
    o->text.len -= gone;
    memmove(o->text.data, o->text.data + gone, o->text.len);
    o->begin += gone;
    o->work += o->text.len;
}

static int check_steps(struct regex_open *o)
{
    if (o->text.len > o->most)
        return err_set(o->e, ERR_DATA,
                       "the pattern \"%.200s\" needs more than %d MiB of text to decide a match, "
                       "from byte %llu on; --long-text-memory raises that",
                       regex_text(o->r), (int)(o->most >> 20), (unsigned long long)o->out);
    if (o->total <= STEPS_FREE + STEPS_EACH * o->taken &&
        o->followed <= STEPS_FREE + WAYS_EACH * o->taken)
        return 0;
    return err_set(o->e, ERR_DATA,
                   "the pattern \"%.200s\" takes too many steps on %llu bytes of text, from byte "
                   "%llu on",
                   regex_text(o->r), (unsigned long long)o->taken, (unsigned long long)o->out);
}

/* Reads up to the end of what there is. */
static int read_on(struct regex_open *o, bool last)
{
    uint64_t end = o->begin + o->text.len;
    int code = 0;
    while (!code && (o->at < end || last)) {
        bool over = o->at == end;
        size_t k = 0;
        uint32_t c = over ? NO_CHAR : utf8_at(o->text.data + (o->at - o->begin), &k);
        read_char(o, c, k);
        if (o->found && !o->nways) {
            code = end_match(o);
            over = over && o->at == end;
        }
        if (over)
            break;
        code = code ? code : check_steps(o);
    }
    if (last && !code)
        code = pass_span(o, end, false, true);
    return code;
}

/* ---- a pattern without a program -------------------------------------------------------------
 */

/* A match at the place found; an empty one right after the match before is none. Returns where to
 * search on. */
static int take_match(struct regex_open *o, const struct regex_at *at)
{
    size_t k = 0;
    o->start = o->begin + at->start;
    o->end = o->begin + at->end;
    o->at = o->end;
    if (o->start == o->end && o->matched && o->end == o->last) {
        if (at->end < o->text.len)
            utf8_at(o->text.data + at->end, &k);
        o->at += k ? k : 1; /* beyond the end: the search is over */
        return 0;
    }
    o->matched = true;
    o->last = o->end;
    return pass_match(o, true);
}

/* Searches what there is; what no further text can change is passed on. */
static int search_on(struct regex_open *o, bool last)
{
    uint64_t end = o->begin + o->text.len;
    bool found = true;
    int code = 0;
    memset(buf_reserve(&o->text, 1), 0, 1);
    while (!code && found && o->at < end + last) {
        struct regex_at at = {.from = (size_t)(o->at - o->begin)};
        size_t from = at.from;
        const struct regex_text t = {o->text.data, o->text.len, o->begin, last};
        code = regex_part_find(o->part, t, &at, &found, o->e);
        o->work += (found ? at.end : o->text.len) - from;
        if (!code && found)
            code = take_match(o, &at);
        else
            o->at = o->begin + at.from;
    }
    if (!code)
        code = pass_span(o, last ? end : o->at < end ? o->at : end, false, last);
    o->enough = o->text.len - (size_t)(o->out - o->begin);
    o->more = 0;
    return code ? code : check_steps(o);
}

int regex_open_put(struct regex_open *o, const char *text, size_t n, bool last,
                   regex_open_span *put, void *arg, struct err *e)
{
    if (!o->g && !o->part && !regex_open_prepare(o))
        return err_set(e, ERR_DATA, "the pattern \"%.200s\" needs the text in one piece",
                       regex_text(o->r));
    o->put = put;
    o->arg = arg;
    o->e = e;
    buf_add(&o->text, text, n);
    o->taken += n;
    o->more += n;
    int code = 0;
    if (!o->part)
        code = read_on(o, last);
    else if (last || o->more >= o->enough || o->text.len > o->most)
        code = search_on(o, last);
    if (!code && !last && !o->part)
        code = pass_sure(o);
    if (code || last)
        regex_open_reset(o);
    else
        drop_passed(o);
    return code;
}

#else

struct regex_open *regex_open_create(const struct regex *r)
{
    (void)r;
    return NULL;
}

bool regex_open_is_program(struct regex_open *o)
{
    (void)o;
    return false;
}

void regex_open_destroy(struct regex_open *o)
{
    (void)o;
}

void regex_open_reset(struct regex_open *o)
{
    (void)o;
}

void regex_open_limit(struct regex_open *o, size_t most)
{
    (void)o, (void)most;
}

void regex_open_pass_empty(struct regex_open *o)
{
    (void)o;
}

uint64_t regex_open_take_work(struct regex_open *o)
{
    (void)o;
    return 0;
}

int regex_open_put(struct regex_open *o, const char *text, size_t n, bool last,
                   regex_open_span *put, void *arg, struct err *e)
{
    (void)o, (void)text, (void)n, (void)last, (void)put, (void)arg, (void)e;
    BUG("a pattern was compiled without PCRE2");
}

#endif
