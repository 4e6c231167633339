/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pretok/regex_open.h"

#if WEFT_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#else
typedef struct pcre2_code pcre2_code;
#endif

enum {
    PATTERN_MAX = 64 << 10,
    STEPS_EACH = 256,      /* steps for each byte of text so far, */
    STEPS_FREE = 1 << 26,  /* and of any text */
    MATCH_LIMIT = 2000000, /* of PCRE2, from one position on */
    HEAP_LIMIT = 64 << 10, /* KiB */
    STACK_MAX = 8 << 20
};

struct regex {
    char *text; /* the literal, or the pattern for messages */
    size_t n;
    bool literal;
    enum regex_dialect dialect;
    enum scan_family family;
    pcre2_code *code;
};

struct regex *regex_literal(const char *text, size_t n)
{
    struct regex *r = mem_new(1, sizeof(*r));
    r->text = mem_strndup(text, n);
    r->n = n;
    r->literal = true;
    return r;
}

enum scan_family regex_family(const struct regex *r)
{
    return r->family;
}

const char *regex_text(const struct regex *r)
{
    return r->text;
}

const char *regex_literal_text(const struct regex *r, size_t *ret_n)
{
    *ret_n = r->n;
    return r->literal ? r->text : NULL;
}

int regex_respell(const struct regex *r, struct buf *out, bool *ret_lines, struct err *e)
{
    *ret_lines = r->dialect == REGEX_ONIGURUMA;
    if (!r->literal)
        return regex_spell("", r->text, r->n, r->dialect, out, e);
    for (size_t i = 0, k; i < r->n; i += k)
        buf_addf(out, "\\x{%x}", utf8_at(r->text + i, &k));
    return 0;
}

#if WEFT_PCRE2

static int compile(const char *where, enum regex_dialect dialect, struct regex *r, struct err *e)
{
    struct buf b = {0};
    int code = regex_spell(where, r->text, r->n, dialect, &b, e);
    if (code)
        return buf_finish(&b), code;
    int why;
    PCRE2_SIZE at;
    pcre2_compile_context *c = pcre2_compile_context_create(NULL);
    BUG_ON(!c, "no memory for a pattern");
    pcre2_set_newline(c, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(c, 100);
    r->code =
        pcre2_compile((PCRE2_SPTR)b.data, b.len,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK |
                          (dialect == REGEX_ONIGURUMA ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY) |
                          PCRE2_NEVER_BACKSLASH_C,
                      &why, &at, c);
    pcre2_compile_context_free(c);
    buf_finish(&b);
    if (r->code) {
        pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
        return 0;
    }
    unsigned char text[160] = "";
    pcre2_get_error_message(why, text, sizeof(text));
    return err_set(e, ERR_DATA, "%s: the pattern \"%.200s\" is invalid: %s", where, r->text, text);
}

/* All matches of a pattern in a text on which PCRE2 takes too many steps, by the program that such
 * texts of any length have (regex_open.h): what is refused does not depend on the length. */
struct all_matches {
    struct regex_open *open; /* of `r`; NULL: none yet, or it has no program */
    const struct regex *r;
    bool found; /* in the text of the search */
    struct span {
        size_t start, end;
    } * at;
    size_t n, room;
    size_t next; /* match that is returned next */
    size_t seen; /* bytes of the text passed */
    bool begun;
};

struct regex_work {
    struct all_matches all;
    uint64_t seen;      /* bytes of the text searched before this search */
    uint64_t steps;     /* of the text so far */
    size_t start, last; /* where the attempt began, and the position of its last callout */
    size_t far;         /* the furthest so far */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/*
 * PCRE2 calls it after each repetition (regex_spell), backtracking included: a step for the call,
 * and one for each byte passed since the last one. A number above 0 is given before repetitions
 * with a large minimum: they may pass 2^number characters and fail.
 */
static int count_steps(pcre2_callout_block *b, void *arg)
{
    struct regex_work *w = arg;
    size_t at = b->current_position;
    if (b->start_match != w->start)
        w->start = w->last = b->start_match;
    w->steps += 1 + (at > w->last ? at - w->last : w->last - at);
    w->steps += b->callout_number ? (uint64_t)1 << b->callout_number : 0;
    w->last = at;
    w->far = at > w->far ? at : w->far;
    return w->steps > STEPS_FREE + STEPS_EACH * (w->seen + w->far) ? PCRE2_ERROR_CALLOUT : 0;
}

struct regex_work *regex_work_create(void)
{
    struct regex_work *w = mem_own(sizeof(*w));
    w->data = pcre2_match_data_create(1, NULL);
    w->context = pcre2_match_context_create(NULL);
    w->stack = pcre2_jit_stack_create(32 << 10, STACK_MAX, NULL);
    BUG_ON(!w->data || !w->context || !w->stack, "no memory for matching");
    pcre2_set_callout(w->context, count_steps, w);
    pcre2_set_heap_limit(w->context, HEAP_LIMIT);
    pcre2_jit_stack_assign(w->context, NULL, w->stack);
    return w;
}

void regex_work_begin(struct regex_work *w)
{
    w->seen = w->steps = w->far = 0;
}

void regex_work_destroy(struct regex_work *w)
{
    if (!w)
        return;
    pcre2_match_data_free(w->data);
    pcre2_match_context_free(w->context);
    pcre2_jit_stack_free(w->stack);
    regex_open_destroy(w->all.open);
    free(w->all.at);
    free(w);
}

void regex_destroy(struct regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r->text);
    free(r);
}

/* A search reached the end of its n bytes. */
static void end_search(struct regex_work *w, size_t n)
{
    w->seen += n;
    w->far = 0;
}

static int take_span(void *arg, const char *text, size_t n, bool match, bool ends, struct err *e)
{
    struct all_matches *m = arg;
    (void)text, (void)e;
    if (match && !m->begun) {
        ARRAY_GROW(m->at, m->n, m->room);
        m->at[m->n].start = m->seen;
    }
    m->seen += n;
    m->begun = match && !ends;
    if (match && ends)
        m->at[m->n++].end = m->seen;
    return 0;
}

/* False: the pattern has no program, or the program too takes too many steps. */
static bool find_all(struct all_matches *m, const struct regex *r, const char *text, size_t n)
{
    struct err ignored;
    if (m->r != r) {
        regex_open_destroy(m->open);
        m->open = regex_open_create(r);
        m->r = r;
        if (m->open && !regex_open_is_program(m->open)) {
            regex_open_destroy(m->open);
            m->open = NULL;
        }
    }
    if (!m->open)
        return false;
    m->n = m->next = m->seen = 0;
    m->begun = false;
    regex_open_pass_empty(m->open);
    m->found = !regex_open_put(m->open, text, n, true, take_span, m, &ignored);
    return m->found;
}

/* The next of all matches, from at->from on. */
static void next_of_all(struct regex_work *w, struct regex_at *at, size_t n, bool *ret_found)
{
    struct all_matches *m = &w->all;
    while (m->next < m->n &&
           (m->at[m->next].start < at->from || (at->matched && m->at[m->next].end == at->end)))
        m->next++;
    *ret_found = m->next < m->n;
    if (*ret_found) {
        at->start = m->at[m->next].start;
        at->end = m->at[m->next].end;
    } else {
        m->found = false;
        end_search(w, n);
    }
}

static int refuse_match(const struct regex *r, int why, size_t n, size_t from, struct err *e)
{
    bool memory = why == PCRE2_ERROR_JIT_STACKLIMIT || why == PCRE2_ERROR_HEAPLIMIT ||
                  why == PCRE2_ERROR_NOMEMORY;
    return err_set(e, ERR_DATA, "the pattern \"%.200s\" %s on %zu bytes of text, from byte %zu on",
                   r->text, memory ? "needs too much memory for matching" : "takes too many steps",
                   n, from);
}

static int regex_find(const struct regex *r, struct regex_work *w, const char *text, size_t n,
                      struct regex_at *at, bool *ret_found, struct err *e)
{
    uint64_t limit = MATCH_LIMIT + 16 * (uint64_t)n;
    w->all.found &= at->from > 0 && w->all.r == r; /* else another search begins */
    if (w->all.found) {
        next_of_all(w, at, n, ret_found);
        return 0;
    }
    w->start = w->last = at->from;
    pcre2_set_match_limit(w->context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    int got = pcre2_match(r->code, (PCRE2_SPTR)text, n, at->from, PCRE2_NO_UTF_CHECK, w->data,
                          w->context);
    *ret_found = got >= 0;
    if (got == PCRE2_ERROR_NOMATCH) {
        end_search(w, n);
        return 0;
    }
    if (got < 0 && find_all(&w->all, r, text, n)) {
        next_of_all(w, at, n, ret_found);
        return 0;
    }
    if (got < 0)
        return refuse_match(r, got, n, at->from, e);
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(w->data);
    at->start = place[0] < place[1] ? place[0] : place[1]; /* \K may put the end first */
    at->end = place[1];
    return 0;
}

struct regex_part {
    struct regex r; /* of which `code` is this thread's own */
    struct regex_work *w;
    bool prepared;
    uint32_t behind; /* characters */
};

static bool has_line_begin(const char *spelled)
{
    for (const char *p = spelled; (p = strchr(p, '^')); p++)
        if (p == spelled || p[-1] != '[')
            return true;
    return false;
}

bool regex_has_parts(const struct regex *r)
{
    bool lines = r->dialect == REGEX_ONIGURUMA && has_line_begin(r->text);
    return r->code && !lines && !strstr(r->text, "\\[^") && !strstr(r->text, "\\G") &&
           !strstr(r->text, "\\K");
}

struct regex_part *regex_part_create(const struct regex *r)
{
    struct buf b = {0};
    struct err ignored;
    if (!r->code || regex_spell("", r->text, r->n, r->dialect, &b, &ignored)) {
        buf_finish(&b);
        return NULL;
    }
    /* of ^ after a newline that may end the text PCRE2 does not say that it is not decided */
    bool lines = r->dialect == REGEX_ONIGURUMA && has_line_begin(buf_str(&b));
    bool looks = lines || strstr(buf_str(&b), "\\G") || strstr(buf_str(&b), "\\K");
    buf_finish(&b);
    if (looks)
        return NULL;
    struct regex_part *p = mem_new(1, sizeof(*p));
    p->r = *r;
    p->r.text = mem_strndup(r->text, r->n);
    p->r.code = pcre2_code_copy(r->code);
    BUG_ON(!p->r.code, "no memory for a pattern");
    pcre2_pattern_info(p->r.code, PCRE2_INFO_MAXLOOKBEHIND, &p->behind);
    return p;
}

void regex_part_destroy(struct regex_part *p)
{
    if (!p)
        return;
    pcre2_code_free(p->r.code);
    free(p->r.text);
    regex_work_destroy(p->w);
    free(p);
}

size_t regex_part_behind(const struct regex_part *p)
{
    return 4 * ((size_t)p->behind + 2);
}

void regex_part_begin(struct regex_part *p)
{
    if (p->w)
        regex_work_begin(p->w);
}

int regex_part_find(struct regex_part *p, struct regex_text t, struct regex_at *at, bool *ret_found,
                    struct err *e)
{
    uint64_t limit = MATCH_LIMIT + 16 * (uint64_t)t.n;
    if (!p->prepared) {
        pcre2_jit_compile(p->r.code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
        p->w = regex_work_create();
        p->prepared = true;
    }
    p->w->start = p->w->last = at->from;
    p->w->seen = t.before;
    p->w->far = 0;
    pcre2_set_match_limit(p->w->context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    int got = pcre2_match(p->r.code, (PCRE2_SPTR)t.text, t.n, at->from,
                          PCRE2_NO_UTF_CHECK | (t.last ? 0 : PCRE2_PARTIAL_HARD), p->w->data,
                          p->w->context);
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(p->w->data);
    *ret_found = got >= 0 && (t.last || place[1] < t.n);
    if (*ret_found) {
        at->start = place[0];
        at->end = place[1];
        return 0;
    }
    if (got < 0 && got != PCRE2_ERROR_NOMATCH && got != PCRE2_ERROR_PARTIAL)
        return refuse_match(&p->r, got, t.n, at->from, e);
    at->from = got == PCRE2_ERROR_NOMATCH ? t.n : place[0];
    return 0;
}

#else

struct regex_part *regex_part_create(const struct regex *r)
{
    (void)r;
    return NULL;
}

static int compile(const char *where, enum regex_dialect dialect, struct regex *r, struct err *e)
{
    (void)dialect;
    err_set(e, ERR_DATA, "%s: the pattern \"%.200s\" is not one of the known ones", where, r->text);
    return err_hint(e, "built with libpcre2-dev, weft runs any pattern");
}

struct regex_work *regex_work_create(void)
{
    return NULL;
}

void regex_work_begin(struct regex_work *w)
{
    (void)w;
}

void regex_work_destroy(struct regex_work *w)
{
    (void)w;
}

static void end_search(struct regex_work *w, size_t n)
{
    (void)w, (void)n;
}

void regex_destroy(struct regex *r)
{
    if (r)
        free(r->text);
    free(r);
}

static int regex_find(const struct regex *r, struct regex_work *w, const char *text, size_t n,
                      struct regex_at *at, bool *ret_found, struct err *e)
{
    (void)w, (void)text, (void)n, (void)at, (void)ret_found, (void)e;
    BUG("the pattern %s was compiled without PCRE2", r->text);
}

#endif

/* Is there a possessive-looking {1,3}+ in it? */
static bool repeats_a_repetition(const char *pattern)
{
    for (const char *p = pattern; (p = strstr(p, "}+")); p++)
        if (p > pattern && ((p[-1] >= '0' && p[-1] <= '9') || p[-1] == ','))
            return true;
    return false;
}

static int make(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                bool family, struct regex **ret, struct err *e)
{
    if (n > PATTERN_MAX || strlen(pattern) != n)
        return err_set(e, ERR_DATA,
                       "%s: a pattern of %zu bytes is too long or contains NUL in "
                       "it",
                       where, n);
    struct regex *r = regex_literal(pattern, n);
    r->literal = false;
    r->dialect = dialect;
    /* in Oniguruma {1,3}+ is not possessive, unlike in the engines that the families were written
     * for */
    if (family && (dialect == REGEX_RUST || !repeats_a_repetition(pattern)))
        r->family = scan_find(pattern);
    int code = r->family == SCAN_NONE ? compile(where, dialect, r, e) : 0;
    if (code)
        regex_destroy(r);
    else
        *ret = r;
    return code;
}

int regex_compile(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                  struct regex **ret, struct err *e)
{
    return make(where, pattern, n, dialect, true, ret, e);
}

int regex_compile_search(const char *where, const char *pattern, size_t n, struct regex **ret,
                         struct err *e)
{
    return make(where, pattern, n, REGEX_ONIGURUMA, false, ret, e);
}

int regex_next(const struct regex *r, struct regex_work *w, const char *text, size_t n,
               struct regex_at *at, bool *ret_found, struct err *e)
{
    if (r->literal) {
        const char *p = at->from < n ? memmem(text + at->from, n - at->from, r->text, r->n) : NULL;
        *ret_found = p;
        if (p) {
            at->start = (size_t)(p - text);
            at->from = at->end = at->start + r->n;
        }
        return 0;
    }
    for (size_t last = at->end;;) {
        *ret_found = false;
        if (at->from > n || !n) /* after an empty match at the end */
            return end_search(w, n), 0;
        int code = regex_find(r, w, text, n, at, ret_found, e);
        if (code || !*ret_found)
            return code;
        if (at->end > at->start || !at->matched || at->end != last)
            break;
        size_t step = at->from < n ? utf8_char(text + at->from, text + n) : 1;
        at->from += step ? step : 1; /* an empty match right after the match before */
    }
    at->from = at->end;
    at->matched = true;
    return 0;
}
