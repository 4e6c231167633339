/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/stories/tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "samples/stories/forms.h"
#include "samples/stories/source.h"

enum {
    MAX_USED = 512,
    MAX_DEPTH = 24,
    MAX_RETRIES = 6,
};

/* A member of the cast. */
struct role {
    struct span name;
    const struct source *source;
    bool bound;
    size_t item;    /* of a list */
    size_t at, len; /* of a rule: its expansion is teller.bound.data[at..at+len) */
};

struct used {
    const struct source *source;
    size_t item;
};

struct teller {
    uint64_t seed;
    struct sources sources;
    size_t n_roles;
    struct role *roles;
    const struct source *story;

    /* The story being told. */
    uint64_t random;
    struct used used[MAX_USED];
    size_t n_used;
    int numbers[26]; /* 0: not drawn yet */
    struct buf out, bound, phrase;
    bool capital; /* the next letter is one */
    bool article; /* "a" or "an" goes to out.data[article_at] when the next word is known */
    size_t article_at;
    int depth;
};

struct reference {
    struct span name;
    size_t column;
    enum word_form form;
};

/* ---- random numbers: SplitMix64, started from a hash of the seed and the story's number ---- */

static uint64_t mix_bits(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9U;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

static uint32_t draw_below(struct teller *t, uint32_t bound)
{
    t->random += 0x9E3779B97F4A7C15U;
    return (uint32_t)(((mix_bits(t->random) >> 32) * bound) >> 32);
}

/* ---- text ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void settle_article(struct teller *t, struct span rest)
{
    const char *word = form_takes_an(&t->sources, rest) ? "an" : "a";
    size_t len = strlen(word);
    buf_reserve(&t->out, len);
    char *at = t->out.data + t->article_at;
    memmove(at + len, at, t->out.len - t->article_at);
    memcpy(at, word, len);
    at[0] = t->capital ? 'A' : 'a';
    t->out.len += len;
    t->article = false;
    t->capital = false;
}

/* Parts of a story may be empty: no blank begins or ends a paragraph, none follows another. */
static bool keeps_blank(struct teller *t, char c)
{
    struct buf *x = &t->out;
    if (t->article && x->len == t->article_at)
        return true;
    while (c == '\n' && x->len > 0 && x->data[x->len - 1] == ' ')
        x->len--;
    bool at_start = x->len == 0 || x->data[x->len - 1] == '\n';
    bool after_blank = !at_start && x->data[x->len - 1] == ' ';
    return !(c == ' ' && (at_start || after_blank)) && !(c == '\n' && at_start);
}

/* Words as they stand in the story, but for '_' and for what waits for the next letter. */
static void tell_put(struct teller *t, struct span s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.text[i] == '_' ? ' ' : s.text[i];
        if (t->article && is_letter(c))
            settle_article(t, (struct span){s.text + i, s.len - i});
        if (!keeps_blank(t, c))
            continue;
        if (t->capital && is_letter(c)) {
            c = (char)(c >= 'a' ? c - 'a' + 'A' : c);
            t->capital = false;
        }
        buf_addc(&t->out, c);
    }
}

/* A phrase in a form: verbs change the first word, nouns and adjectives the last. */
static void put_phrase(struct teller *t, struct span s, enum word_form form)
{
    if (form == FORM_PLAIN) {
        tell_put(t, s);
        return;
    }
    buf_reset(&t->phrase);
    for (size_t at = 0, len; at < s.len; at += len + 1) {
        for (len = 0; at + len < s.len && s.text[at + len] != '_' && s.text[at + len] != ' ';)
            len++;
        bool chosen = form_is_verb(form) ? at == 0 : at + len == s.len;
        struct span word = {s.text + at, len};
        form_put(&t->sources, word, chosen ? form : FORM_PLAIN, &t->phrase);
        if (at + len < s.len)
            buf_addc(&t->phrase, ' ');
    }
    tell_put(t, (struct span){t->phrase.data, t->phrase.len});
}

/* ---- names and references ---- */

static struct role *find_role(struct teller *t, struct span name)
{
    for (size_t i = 0; i < t->n_roles; i++)
        if (span_equal(t->roles[i].name, name))
            return &t->roles[i];
    BUG("stories: the cast has no '%.*s'", (int)name.len, name.text);
}

static struct reference parse_reference(struct span s)
{
    struct reference ref = {.name = s, .form = FORM_PLAIN};
    const char *colon = memchr(s.text, ':', s.len);
    if (colon) {
        ref.name.len = (size_t)(colon - s.text);
        ref.form = form_by_name((struct span){colon + 1, s.len - ref.name.len - 1});
        BUG_ON(ref.form == FORM_COUNT, "stories: '%.*s' has no such form", (int)s.len, s.text);
    }
    const char *dot = memchr(s.text, '.', ref.name.len);
    if (dot) {
        ref.column = (size_t)(dot[1] - '0');
        ref.name.len = (size_t)(dot - s.text);
    }
    return ref;
}

/* ---- drawing ---- */

static bool was_used(const struct teller *t, const struct source *source, size_t item)
{
    for (size_t i = 0; i < t->n_used; i++)
        if (t->used[i].source == source && t->used[i].item == item)
            return true;
    return false;
}

static size_t draw_once(struct teller *t, const struct source *source)
{
    return source_pick(source, draw_below(t, source_weight(source)));
}

/* An item that the story has not used yet: nothing is said twice while there is a choice. */
static size_t draw_item(struct teller *t, const struct source *source)
{
    size_t item = draw_once(t, source);
    for (int i = 0; i < MAX_RETRIES && was_used(t, source, item); i++)
        item = draw_once(t, source);
    for (size_t i = 0; i < source->n_items && was_used(t, source, item); i++)
        item = (item + 1) % source->n_items;
    if (t->n_used < MAX_USED)
        t->used[t->n_used++] = (struct used){source, item};
    return item;
}

/* ---- expansion ---- */

static void expand(struct teller *t, struct span text);

static void expand_rule(struct teller *t, const struct source *rule)
{
    BUG_ON(++t->depth > MAX_DEPTH, "stories: the rule '%.*s' leads to itself", (int)rule->name.len,
           rule->name.text);
    expand(t, rule->items[draw_item(t, rule)]);
    t->depth--;
}

/* Expands a rule into a text of its own, which the caller frees. */
static struct buf expand_apart(struct teller *t, const struct source *rule)
{
    struct buf out = t->out;
    bool capital = t->capital, article = t->article;
    t->out = (struct buf){0};
    t->capital = t->article = false;
    expand_rule(t, rule);
    struct buf apart = t->out;
    t->out = out;
    t->capital = capital;
    t->article = article;
    return apart;
}

static void bind_role(struct teller *t, struct role *role)
{
    role->bound = true;
    if (!role->source->is_rule) {
        role->item = draw_item(t, role->source);
        return;
    }
    struct buf apart = expand_apart(t, role->source);
    role->at = t->bound.len;
    role->len = apart.len;
    buf_add(&t->bound, apart.data, apart.len);
    buf_finish(&apart);
}

static void put_role(struct teller *t, struct reference ref)
{
    struct role *role = find_role(t, ref.name);
    if (!role->bound)
        bind_role(t, role);
    if (role->source->is_rule)
        put_phrase(t, (struct span){t->bound.data + role->at, role->len}, ref.form);
    else
        put_phrase(t, span_column(role->source->items[role->item], ref.column), ref.form);
}

static void put_fresh(struct teller *t, struct reference ref)
{
    const struct source *source = sources_find(&t->sources, ref.name);
    if (source->is_rule && ref.form == FORM_PLAIN) {
        expand_rule(t, source);
    } else if (source->is_rule) {
        struct buf apart = expand_apart(t, source);
        put_phrase(t, (struct span){apart.data, apart.len}, ref.form);
        buf_finish(&apart);
    } else {
        put_phrase(t, span_column(source->items[draw_item(t, source)], ref.column), ref.form);
    }
}

static int get_number(struct teller *t, char letter)
{
    int *number = &t->numbers[letter - 'a'];
    if (*number == 0)
        *number = 3 + (int)draw_below(t, 7);
    return *number;
}

/* "n", "n+m", "n-1", with ":d" for digits. */
static void put_number(struct teller *t, struct span s)
{
    const struct source *words = sources_find(&t->sources, span_of("numbers"));
    bool digits = s.len > 2 && !memcmp(s.text + s.len - 2, ":d", 2);
    int value = get_number(t, s.text[0]);
    if (s.len - 2 * digits == 3) {
        char c = s.text[2];
        int other = c >= '0' && c <= '9' ? c - '0' : get_number(t, c);
        value += s.text[1] == '+' ? other : -other;
    }
    BUG_ON(value < 0 || (size_t)value >= words->n_items, "stories: {#%.*s} is %d", (int)s.len,
           s.text, value);
    buf_reset(&t->phrase);
    buf_addf(&t->phrase, "%d", value);
    tell_put(t, digits ? (struct span){t->phrase.data, t->phrase.len} : words->items[value]);
}

/* What stands between the bracket that s begins with and its pair. */
static struct span inside_brackets(struct span s)
{
    const char *close = memchr(s.text, s.text[0] == '[' ? ']' : '}', s.len);
    BUG_ON(!close || close == s.text + 1, "stories: a bracket without its pair: '%.*s'", (int)s.len,
           s.text);
    return (struct span){s.text + 1, (size_t)(close - s.text) - 1};
}

/* What the mark at the beginning of `s` means; returns how many bytes of it are done. */
static size_t expand_mark(struct teller *t, struct span s)
{
    switch (s.text[0]) {
    case '^':
        t->capital = true;
        return 1;
    case '@':
        t->article = true;
        t->article_at = t->out.len;
        return 1;
    case '<':
    case '>':
        tell_put(t, span_of("\""));
        return 1;
    case '\n': /* the text goes on in the next line */
        tell_put(t, span_of(" "));
        return 1;
    case '\\':
        tell_put(t, span_of("\n"));
        return sizeof("\\n") - 1;
    default:
        break;
    }
    struct span inside = inside_brackets(s);
    if (inside.text[0] == '#')
        put_number(t, (struct span){inside.text + 1, inside.len - 1});
    else if (s.text[0] == '[')
        put_fresh(t, parse_reference(inside));
    else
        put_role(t, parse_reference(inside));
    return inside.len + 2;
}

static void expand(struct teller *t, struct span text)
{
    for (size_t at = 0; at < text.len;) {
        size_t plain = at;
        while (plain < text.len && !strchr("^@<>[{\n\\", text.text[plain]))
            plain++;
        tell_put(t, (struct span){text.text + at, plain - at});
        at = plain;
        if (at < text.len)
            at += expand_mark(t, (struct span){text.text + at, text.len - at});
    }
}

/* ---- setting up ---- */

/* Finds a mistake in the tables at once, not in the one story of thousands that draws it. */
static void check_text(struct teller *t, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char open = text.text[i];
        BUG_ON(open == '\\' && (i + 1 == text.len || text.text[i + 1] != 'n'),
               "stories: only n follows a \\: '%.*s'", (int)text.len, text.text);
        if (open != '[' && open != '{')
            continue;
        struct span inside = inside_brackets((struct span){text.text + i, text.len - i});
        if (inside.text[0] == '#')
            continue;
        struct reference ref = parse_reference(inside);
        const struct source *source =
            open == '[' ? sources_find(&t->sources, ref.name) : find_role(t, ref.name)->source;
        BUG_ON(source->is_rule && ref.column, "stories: '%.*s' is a rule and has no columns",
               (int)inside.len, inside.text);
        if (!source->is_rule)
            (void)span_column(source->items[0], ref.column);
    }
}

struct teller *teller_create(uint64_t seed)
{
    struct teller *t = mem_new(1, sizeof(*t));
    t->seed = seed;
    sources_init(&t->sources);
    const struct source *cast = sources_find(&t->sources, span_of("cast"));
    t->roles = mem_new(cast->n_items, sizeof(*t->roles));
    for (; t->n_roles < cast->n_items; t->n_roles++) {
        struct span member = cast->items[t->n_roles];
        t->roles[t->n_roles].name = span_column(member, 0);
        t->roles[t->n_roles].source = sources_find(&t->sources, span_column(member, 1));
    }
    t->story = sources_find(&t->sources, span_of("story"));
    for (size_t i = 0; i < t->sources.n; i++)
        for (size_t k = 0; t->sources.at[i].is_rule && k < t->sources.at[i].n_items; k++)
            check_text(t, t->sources.at[i].items[k]);
    return t;
}

void teller_destroy(struct teller *t)
{
    if (!t)
        return;
    sources_finish(&t->sources);
    free(t->roles);
    buf_finish(&t->out);
    buf_finish(&t->bound);
    buf_finish(&t->phrase);
    free(t);
}

const char *teller_tell(struct teller *t, uint64_t number, size_t *ret_len)
{
    t->random = mix_bits(mix_bits(t->seed + 0x9E3779B97F4A7C15U) ^ (number * 0xD1342543DE82EF95U));
    t->n_used = 0;
    memset(t->numbers, 0, sizeof(t->numbers));
    buf_reset(&t->out);
    buf_reset(&t->bound);
    t->capital = t->article = false;
    t->depth = 0;
    for (size_t i = 0; i < t->n_roles; i++)
        t->roles[i].bound = false;
    expand_rule(t, t->story);
    BUG_ON(t->article, "stories: an article without a word in story %llu",
           (unsigned long long)number);
    while (t->out.len > 0 && strchr(" \n", t->out.data[t->out.len - 1]))
        t->out.len--;
    *ret_len = t->out.len;
    return buf_str(&t->out);
}
