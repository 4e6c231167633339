// SPDX-License-Identifier: Apache-2.0
#include "samples/stories/tell.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/stories/forms.h"
#include "samples/stories/grammar.h"
#include "samples/stories/source.h"

enum {
    MAX_ROLES = 64,
    MAX_USED = 512,
    MAX_DEPTH = 24,
    MAX_RETRIES = 6,
    PHRASE_ROOM = 1024,
};

struct text {
    char *data;
    size_t len;
    size_t room;
    bool short_of_memory;
};

struct role {
    const char *name;
    const struct source *source;
    bool bound;
    size_t item; // of a list
    size_t at;   // of a rule: its expansion is teller.bound.data[at..at+len)
    size_t len;
};

struct used {
    const struct source *source;
    size_t item;
};

struct teller {
    uint64_t seed;
    struct sources sources;
    size_t n_roles;
    struct role roles[MAX_ROLES];
    const struct source *story;

    // The story being told.
    uint64_t random;
    struct used used[MAX_USED];
    size_t n_used;
    int numbers[26]; // 0: not drawn yet
    struct text out;
    struct text bound;
    bool capital; // the next letter is one
    bool article; // "a" or "an" goes to out.data[article_at] when the next word is known
    size_t article_at;
    int depth;
};

struct reference {
    struct span name;
    size_t column;
    enum word_form form;
};

// Random numbers: SplitMix64, started from a hash of the seed and the story's number.

static uint64_t tell_mix(uint64_t x)
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
    return (uint32_t)(((tell_mix(t->random) >> 32) * bound) >> 32);
}

// Text.

static void text_reserve(struct text *x, size_t more)
{
    if (x->short_of_memory || x->room - x->len > more) {
        return;
    }
    size_t room = 2 * x->room + more + 256;
    char *data = realloc(x->data, room);
    if (data == NULL) {
        x->short_of_memory = true;
        return;
    }
    x->data = data;
    x->room = room;
}

static void text_insert(struct text *x, size_t at, const char *s, size_t len)
{
    text_reserve(x, len);
    if (x->short_of_memory) {
        return;
    }
    memmove(x->data + at + len, x->data + at, x->len - at);
    memcpy(x->data + at, s, len);
    x->len += len;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void settle_article(struct teller *t, struct span rest)
{
    bool an = form_takes_an(rest.text, rest.len);
    const char *word = t->capital ? (an ? "An" : "A") : (an ? "an" : "a");
    text_insert(&t->out, t->article_at, word, strlen(word));
    t->article = false;
    t->capital = false;
}

// Parts of a story may be empty: no blank begins or ends a paragraph, none follows another.
static bool keeps_blank(struct teller *t, char c)
{
    struct text *x = &t->out;
    if (t->article && x->len == t->article_at) {
        return true;
    }
    if (c == '\n') {
        while (x->len > 0 && x->data[x->len - 1] == ' ') {
            x->len--;
        }
    }
    bool at_start = x->len == 0 || x->data[x->len - 1] == '\n';
    bool after_blank = !at_start && x->data[x->len - 1] == ' ';
    return !(c == ' ' && (at_start || after_blank)) && !(c == '\n' && at_start);
}

// Words as they stand in the story, but for '_' and for what waits for the next letter.
static void tell_put(struct teller *t, struct span s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.text[i] == '_' ? ' ' : s.text[i];
        if (t->article && is_letter(c)) {
            settle_article(t, (struct span){s.text + i, s.len - i});
        }
        if (!keeps_blank(t, c)) {
            continue;
        }
        if (t->capital && is_letter(c)) {
            c = (char)(c >= 'a' ? c - 'a' + 'A' : c);
            t->capital = false;
        }
        text_insert(&t->out, t->out.len, &c, 1);
    }
}

// A phrase in a form: verbs change the first word, nouns and adjectives the last.
static void put_phrase(struct teller *t, struct span s, enum word_form form)
{
    if (form == FORM_PLAIN) {
        tell_put(t, s);
        return;
    }
    char phrase[PHRASE_ROOM];
    size_t n = 0;
    for (size_t at = 0; at < s.len;) {
        size_t len = 0;
        while (at + len < s.len && s.text[at + len] != '_' && s.text[at + len] != ' ') {
            len++;
        }
        bool chosen = form_is_verb(form) ? at == 0 : at + len == s.len;
        if (len > WORD_ROOM - 12 || n + WORD_ROOM > sizeof phrase) {
            table_bug("too long a phrase", s);
        }
        n += form_word(s.text + at, len, chosen ? form : FORM_PLAIN, phrase + n);
        at += len;
        if (at < s.len) {
            phrase[n++] = ' ';
            at++;
        }
    }
    tell_put(t, (struct span){phrase, n});
}

// Names and references.

static struct role *find_role(struct teller *t, struct span name)
{
    for (size_t i = 0; i < t->n_roles; i++) {
        if (span_compare(t->roles[i].name, name) == 0) {
            return &t->roles[i];
        }
    }
    table_bug("nobody of this name in the cast", name);
}

static struct reference parse_reference(struct span s)
{
    struct reference ref = {.name = s, .column = 0, .form = FORM_PLAIN};
    const char *colon = memchr(s.text, ':', s.len);
    if (colon != NULL) {
        ref.name.len = (size_t)(colon - s.text);
        ref.form = form_by_name(colon + 1, s.len - ref.name.len - 1);
        if (ref.form == FORM_COUNT) {
            table_bug("no such form", s);
        }
    }
    const char *dot = memchr(s.text, '.', ref.name.len);
    if (dot != NULL) {
        ref.column = (size_t)(dot[1] - '0');
        ref.name.len = (size_t)(dot - s.text);
    }
    return ref;
}

// Drawing.

static bool was_used(const struct teller *t, const struct source *source, size_t item)
{
    for (size_t i = 0; i < t->n_used; i++) {
        if (t->used[i].source == source && t->used[i].item == item) {
            return true;
        }
    }
    return false;
}

static size_t draw_once(struct teller *t, const struct source *source)
{
    return source_pick(source, draw_below(t, source_weight(source)));
}

// What the story has not used yet: nothing is said twice while there is a choice.
static size_t draw_item(struct teller *t, const struct source *source)
{
    size_t item = draw_once(t, source);
    for (int i = 0; i < MAX_RETRIES && was_used(t, source, item); i++) {
        item = draw_once(t, source);
    }
    for (size_t i = 0; i < source->n_items && was_used(t, source, item); i++) {
        item = (item + 1) % source->n_items;
    }
    if (t->n_used < MAX_USED) {
        t->used[t->n_used++] = (struct used){source, item};
    }
    return item;
}

// Expansion.

static void expand(struct teller *t, struct span template);

static void expand_rule(struct teller *t, const struct source *rule)
{
    if (++t->depth > MAX_DEPTH) {
        table_bug("rules go round in circles", span_of(rule->name));
    }
    expand(t, rule->items[draw_item(t, rule)]);
    t->depth--;
}

// Expands a rule aside, into a text that the caller frees.
static struct text expand_aside(struct teller *t, const struct source *rule)
{
    struct text out = t->out;
    bool capital = t->capital;
    bool article = t->article;
    t->out = (struct text){0};
    t->capital = false;
    t->article = false;
    expand_rule(t, rule);
    struct text aside = t->out;
    t->out = out;
    t->out.short_of_memory |= aside.short_of_memory;
    t->capital = capital;
    t->article = article;
    return aside;
}

static void bind_role(struct teller *t, struct role *role)
{
    role->bound = true;
    if (!role->source->is_rule) {
        role->item = draw_item(t, role->source);
        return;
    }
    struct text aside = expand_aside(t, role->source);
    role->at = t->bound.len;
    text_insert(&t->bound, t->bound.len, aside.data, aside.len);
    role->len = t->bound.len - role->at;
    free(aside.data);
}

static void put_role(struct teller *t, struct reference ref)
{
    struct role *role = find_role(t, ref.name);
    if (!role->bound) {
        bind_role(t, role);
    }
    struct span s;
    if (role->source->is_rule) {
        s = (struct span){t->bound.data + role->at, role->len};
    } else {
        s = span_column(role->source->items[role->item], ref.column);
    }
    put_phrase(t, s, ref.form);
}

static void put_fresh(struct teller *t, struct reference ref)
{
    const struct source *source = sources_find(&t->sources, ref.name);
    if (source->is_rule && ref.form == FORM_PLAIN) {
        expand_rule(t, source);
    } else if (source->is_rule) {
        struct text aside = expand_aside(t, source);
        put_phrase(t, (struct span){aside.data, aside.len}, ref.form);
        free(aside.data);
    } else {
        put_phrase(t, span_column(source->items[draw_item(t, source)], ref.column), ref.form);
    }
}

static int get_number(struct teller *t, char letter)
{
    int *number = &t->numbers[letter - 'a'];
    if (*number == 0) {
        *number = 3 + (int)draw_below(t, 7);
    }
    return *number;
}

// "n", "n+m", "n-1", with ":d" for digits.
static void put_number(struct teller *t, struct span s)
{
    static const char *const words[] = {
        "no",       "one",     "two",     "three",     "four",     "five",     "six",
        "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
    };
    bool digits = s.len > 2 && memcmp(s.text + s.len - 2, ":d", 2) == 0;
    size_t len = digits ? s.len - 2 : s.len;
    int value = get_number(t, s.text[0]);
    if (len == 3) {
        char c = s.text[2];
        int other = c >= '0' && c <= '9' ? c - '0' : get_number(t, c);
        value += s.text[1] == '+' ? other : -other;
    }
    if (value < 0 || value >= (int)(sizeof words / sizeof *words)) {
        table_bug("a number out of range", s);
    }
    char figures[16];
    int n = snprintf(figures, sizeof figures, "%d", value);
    tell_put(t, digits ? (struct span){figures, (size_t)n} : span_of(words[value]));
}

// What stands between the bracket that s begins with and its pair.
static struct span inside_brackets(struct span s)
{
    const char *close = memchr(s.text, s.text[0] == '[' ? ']' : '}', s.len);
    if (close == NULL || close == s.text + 1) {
        table_bug("a bracket without its pair", s);
    }
    return (struct span){s.text + 1, (size_t)(close - s.text) - 1};
}

// One step of a template; returns how many bytes of it are done.
static size_t expand_mark(struct teller *t, struct span s)
{
    char open = s.text[0];
    if (open == '^') {
        t->capital = true;
        return 1;
    }
    if (open == '@') {
        t->article = true;
        t->article_at = t->out.len;
        return 1;
    }
    if (open == '<' || open == '>') {
        tell_put(t, (struct span){"\"", 1});
        return 1;
    }
    struct span inside = inside_brackets(s);
    if (inside.text[0] == '#') {
        put_number(t, (struct span){inside.text + 1, inside.len - 1});
    } else if (open == '[') {
        put_fresh(t, parse_reference(inside));
    } else {
        put_role(t, parse_reference(inside));
    }
    return inside.len + 2;
}

static void expand(struct teller *t, struct span template)
{
    for (size_t at = 0; at < template.len;) {
        struct span rest = {template.text + at, template.len - at};
        size_t plain = 0;
        while (plain < rest.len && strchr("^@<>[{", rest.text[plain]) == NULL) {
            plain++;
        }
        tell_put(t, (struct span){rest.text, plain});
        at += plain;
        if (plain < rest.len) {
            at += expand_mark(t, (struct span){rest.text + plain, rest.len - plain});
        }
    }
}

// Setting up.

// Meets a typing error in the tables at once, not in the one story of thousands that draws it.
static void check_reference(struct teller *t, struct span inside, char open)
{
    if (inside.text[0] == '#') {
        return;
    }
    struct reference ref = parse_reference(inside);
    const struct source *source =
        open == '[' ? sources_find(&t->sources, ref.name) : find_role(t, ref.name)->source;
    if (source->is_rule && ref.column > 0) {
        table_bug("a rule has no columns", inside);
    }
    if (!source->is_rule) {
        (void)span_column(source->items[0], ref.column);
    }
}

static void check_text(struct teller *t, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char open = text.text[i];
        if (open == '[' || open == '{') {
            check_reference(t, inside_brackets((struct span){text.text + i, text.len - i}), open);
        }
    }
}

static void check_rules(struct teller *t)
{
    for (size_t i = 0; i < t->sources.n; i++) {
        const struct source *source = &t->sources.at[i];
        for (size_t k = 0; source->is_rule && k < source->n_items; k++) {
            check_text(t, source->items[k]);
        }
    }
}

struct teller *teller_create(uint64_t seed)
{
    struct teller *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    t->seed = seed;
    if (!sources_init(&t->sources)) {
        teller_destroy(t);
        return NULL;
    }
    if (story_cast_len > MAX_ROLES) {
        table_bug("too large a cast", span_of(""));
    }
    for (t->n_roles = 0; t->n_roles < story_cast_len; t->n_roles++) {
        const struct story_role *role = &story_cast[t->n_roles];
        t->roles[t->n_roles].name = role->name;
        t->roles[t->n_roles].source = sources_find(&t->sources, span_of(role->source));
    }
    t->story = sources_find(&t->sources, span_of("story"));
    check_rules(t);
    return t;
}

void teller_destroy(struct teller *t)
{
    if (t == NULL) {
        return;
    }
    sources_finish(&t->sources);
    free(t->out.data);
    free(t->bound.data);
    free(t);
}

int teller_tell(struct teller *t, uint64_t number, const char **ret_text, size_t *ret_len)
{
    t->random = tell_mix(tell_mix(t->seed + 0x9E3779B97F4A7C15U) ^ (number * 0xD1342543DE82EF95U));
    t->n_used = 0;
    memset(t->numbers, 0, sizeof t->numbers);
    t->out.len = 0;
    t->bound.len = 0;
    t->capital = false;
    t->article = false;
    t->depth = 0;
    for (size_t i = 0; i < t->n_roles; i++) {
        t->roles[i].bound = false;
    }
    expand_rule(t, t->story);
    if (t->article) {
        table_bug("an article without a word", span_of(""));
    }
    while (t->out.len > 0 && strchr(" \n", t->out.data[t->out.len - 1]) != NULL) {
        t->out.len--;
    }
    text_insert(&t->out, t->out.len, "", 1);
    if (t->out.short_of_memory || t->bound.short_of_memory) {
        return -1;
    }
    *ret_text = t->out.data;
    *ret_len = t->out.len - 1;
    return 0;
}
