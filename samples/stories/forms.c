// SPDX-License-Identifier: Apache-2.0
#include "samples/stories/forms.h"

#include <stdbool.h>
#include <string.h>

static const char *const form_names[FORM_COUNT] = {
    [FORM_PLAIN] = "",          [FORM_PLURAL] = "s",  [FORM_PRESENT] = "z",
    [FORM_PAST] = "ed",         [FORM_ING] = "ing",   [FORM_COMPARATIVE] = "er",
    [FORM_SUPERLATIVE] = "est", [FORM_ADVERB] = "ly", [FORM_OBJECT] = "him",
    [FORM_OWNER] = "his",       [FORM_SELF] = "self",
};

// Pairs "word form word form ...". What no pair names follows the rules below.
static const char *const exceptions[FORM_COUNT] = {
    [FORM_PLURAL] =
        "man men woman women child children foot feet tooth teeth goose geese "
        "mouse mice ox oxen leaf leaves wolf wolves loaf loaves shelf shelves "
        "knife knives calf calves half halves elf elves thief thieves scarf scarves "
        "dwarf dwarves hoof hooves sheep sheep fish fish deer deer trout trout "
        "salmon salmon squid squid swine swine moose moose potato potatoes tomato "
        "tomatoes hero heroes echo echoes mango mangoes volcano volcanoes "
        "bookshelf bookshelves dormouse dormice louse lice woodlouse woodlice reindeer reindeer "
        "bison bison cod cod "
        "haddock haddock mackerel mackerel tuna tuna plaice plaice bream bream halibut halibut",
    [FORM_PRESENT] = "be is have has go goes do does",
    [FORM_PAST] =
        "be was have had go went do did come came become became run ran sit sat stand stood "
        "understand understood see saw sing sang ring rang spring sprang drink drank sink sank "
        "shrink shrank stink stank begin began swim swam say said pay paid lay laid hear heard "
        "make made tell told sell sold find found bind bound wind wound grind ground "
        "think thought bring brought buy bought fight fought catch caught teach taught seek sought "
        "know knew grow grew blow blew throw threw draw drew fly flew take took shake shook "
        "mistake mistook give gave forgive forgave get got forget forgot write wrote ride rode "
        "drive drove rise rose shine shone hide hid slide slid bite bit light lit eat ate "
        "fall fell feel felt keep kept sleep slept weep wept creep crept sweep swept leap leapt "
        "kneel knelt meet met feed fed lead led read read speed sped bleed bled breed bred "
        "hold held leave left lose lost shoot shot stick stuck strike struck string strung "
        "swing swung sling slung cling clung fling flung sting stung dig dug spin spun win won "
        "hang hung wear wore tear tore bear bore swear swore break broke speak spoke wake woke "
        "weave wove freeze froze steal stole choose chose bend bent lend lent send sent spend "
        "spent build built mean meant dream dreamt learn learnt burn burnt spell spelt "
        "spill spilt spoil spoilt cut cut put put let let set set shut shut hit hit split split "
        "spread spread burst burst cost cost hurt hurt quit quit bet bet cast cast rid rid "
        "slit slit shed shed knit knitted lie lay awake awoke begin began mow mowed sew sewed "
        "sow sowed show showed stride strode strive strove shear sheared beat beat wring wrung "
        "smell smelt "
        "forbid forbade unwind unwound overhear overheard upset upset",
    [FORM_ING] = "dye dyeing age ageing",
    [FORM_COMPARATIVE] = "good better bad worse far farther little smaller fun funnier",
    [FORM_SUPERLATIVE] = "good best bad worst far farthest little smallest fun funniest",
    [FORM_ADVERB] = "good well fast fast hard hard true truly whole wholly early early "
                    "straight straight loud loudly shy shyly sly slyly dry dryly spry spryly",
    [FORM_OBJECT] = "he him she her it it they them",
    [FORM_OWNER] = "he his she her it its they their",
    [FORM_SELF] = "he himself she herself it itself they themselves",
};

// Longer words that double their last letter because the stress lies on it.
static const char doubles[] = "begin admit forget permit regret prefer refer unwrap unzip unplug "
                              "outrun upset forbid zigzag hobnob catnap equip";

static bool is_vowel(char c)
{
    return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

static bool has_suffix(const char *word, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len >= n && memcmp(word + len - n, suffix, n) == 0;
}

// Finds word among blanks in text; returns what follows it, or NULL. step 2 looks at pairs.
static const char *find_word(const char *text, const char *word, size_t len, int step)
{
    if (text == NULL) {
        return NULL;
    }
    for (int index = 0; *text != '\0'; index++) {
        size_t n = strcspn(text, " ");
        const char *next = text + n + (text[n] == ' ');
        if (index % step == 0 && n == len && memcmp(text, word, n) == 0) {
            return next;
        }
        text = next;
    }
    return NULL;
}

// Groups of vowels, less a silent e: little has two, bake one, quit one.
static int count_syllables(const char *word, size_t len)
{
    int count = 0;
    bool in_vowels = false;
    for (size_t i = 0; i < len; i++) {
        bool q_sound = word[i] == 'u' && i > 0 && word[i - 1] == 'q';
        bool vowel = !q_sound && (is_vowel(word[i]) || (word[i] == 'y' && i > 0));
        count += vowel && !in_vowels;
        in_vowels = vowel;
    }
    bool silent_e = len > 2 && word[len - 1] == 'e' && !is_vowel(word[len - 2]) &&
                    !(word[len - 2] == 'l' && !is_vowel(word[len - 3]));
    return silent_e && count > 1 ? count - 1 : count;
}

// run, running; but rain, raining; box, boxing; open, opening.
static bool doubles_last(const char *word, size_t len)
{
    if (find_word(doubles, word, len, 1) != NULL) {
        return true;
    }
    if (len < 3) {
        return false;
    }
    char last = word[len - 1];
    char mid = word[len - 2];
    char first = word[len - 3];
    if (is_vowel(last) || strchr("wxy", last) != NULL || !is_vowel(mid)) {
        return false;
    }
    bool q_sound = first == 'u' && len > 3 && word[len - 4] == 'q';
    if (is_vowel(first) && !q_sound) {
        return false;
    }
    return last == 'l' || count_syllables(word, len) == 1;
}

static size_t forms_join(char out[WORD_ROOM], const char *stem, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    memcpy(out, stem, len);
    memcpy(out + len, ending, n + 1);
    return len + n;
}

// An ending that begins with a vowel: run, running; mimic, mimicking; rain, raining.
static size_t join_vowel(char out[WORD_ROOM], const char *word, size_t len, const char *ending)
{
    size_t n = forms_join(out, word, len, "");
    if (doubles_last(word, len)) {
        out[n++] = word[len - 1];
    } else if (has_suffix(word, len, "ic")) {
        out[n++] = 'k';
    }
    return n + forms_join(out + n, ending, strlen(ending), "");
}

static size_t add_s(const char *word, size_t len, char out[WORD_ROOM])
{
    if (has_suffix(word, len, "fish")) {
        return forms_join(out, word, len, "");
    }
    if (has_suffix(word, len, "man") && len > 4) {
        return forms_join(out, word, len - 2, "en");
    }
    if (has_suffix(word, len, "s") || has_suffix(word, len, "x") || has_suffix(word, len, "z") ||
        has_suffix(word, len, "ch") || has_suffix(word, len, "sh")) {
        return forms_join(out, word, len, "es");
    }
    if (len > 1 && word[len - 1] == 'y' && !is_vowel(word[len - 2])) {
        return forms_join(out, word, len - 1, "ies");
    }
    return forms_join(out, word, len, "s");
}

// -ed, -er and -est share their spelling rules.
static size_t add_e_ending(const char *word, size_t len, const char *ending, char out[WORD_ROOM])
{
    if (word[len - 1] == 'e') {
        return forms_join(out, word, len, ending + 1);
    }
    if (len > 1 && word[len - 1] == 'y' && !is_vowel(word[len - 2])) {
        size_t n = forms_join(out, word, len - 1, "i");
        return n + forms_join(out + n, ending, strlen(ending), "");
    }
    return join_vowel(out, word, len, ending);
}

static size_t add_ing(const char *word, size_t len, char out[WORD_ROOM])
{
    if (has_suffix(word, len, "ie")) {
        return forms_join(out, word, len - 2, "ying");
    }
    bool keeps_e = has_suffix(word, len, "ee") || has_suffix(word, len, "oe") ||
                   has_suffix(word, len, "ye") || len == 2;
    if (word[len - 1] == 'e' && !keeps_e) {
        return forms_join(out, word, len - 1, "ing");
    }
    return join_vowel(out, word, len, "ing");
}

// Long adjectives take a word in front: more careful, most beautiful.
static bool compares_by_word(const char *word, size_t len)
{
    int syllables = count_syllables(word, len);
    if (syllables < 2) {
        return false;
    }
    bool short_kind = has_suffix(word, len, "y") || has_suffix(word, len, "ow") ||
                      has_suffix(word, len, "er") || has_suffix(word, len, "le");
    return syllables > 2 ? !has_suffix(word, len, "y") : !short_kind;
}

static size_t add_ly(const char *word, size_t len, char out[WORD_ROOM])
{
    if (has_suffix(word, len, "ic")) {
        return forms_join(out, word, len, "ally");
    }
    if (has_suffix(word, len, "ll")) {
        return forms_join(out, word, len, "y");
    }
    if (len > 2 && has_suffix(word, len, "le") && !is_vowel(word[len - 3])) {
        return forms_join(out, word, len - 1, "y");
    }
    if (len > 2 && word[len - 1] == 'y' && !is_vowel(word[len - 2])) {
        return forms_join(out, word, len - 1, "ily");
    }
    return forms_join(out, word, len, "ly");
}

static size_t put_in_front(const char *front, const char *word, size_t len, char out[WORD_ROOM])
{
    size_t n = strlen(front);
    memcpy(out, front, n);
    return n + forms_join(out + n, word, len, "");
}

enum word_form form_by_name(const char *name, size_t len)
{
    for (int form = 0; form < FORM_COUNT; form++) {
        if (strlen(form_names[form]) == len && memcmp(form_names[form], name, len) == 0) {
            return (enum word_form)form;
        }
    }
    return FORM_COUNT;
}

int form_is_verb(enum word_form form)
{
    return form == FORM_PRESENT || form == FORM_PAST || form == FORM_ING;
}

size_t form_word(const char *word, size_t len, enum word_form form, char out[WORD_ROOM])
{
    const char *known = find_word(exceptions[form], word, len, 2);
    if (known != NULL) {
        return forms_join(out, known, strcspn(known, " "), "");
    }
    switch (form) {
    case FORM_PLURAL:
    case FORM_PRESENT:
        return add_s(word, len, out);
    case FORM_PAST:
        return add_e_ending(word, len, "ed", out);
    case FORM_ING:
        return add_ing(word, len, out);
    case FORM_COMPARATIVE:
        return compares_by_word(word, len) ? put_in_front("more ", word, len, out)
                                           : add_e_ending(word, len, "er", out);
    case FORM_SUPERLATIVE:
        return compares_by_word(word, len) ? put_in_front("most ", word, len, out)
                                           : add_e_ending(word, len, "est", out);
    case FORM_ADVERB:
        return add_ly(word, len, out);
    case FORM_PLAIN:
    case FORM_OBJECT:
    case FORM_OWNER:
    case FORM_SELF:
    case FORM_COUNT:
        break;
    }
    return forms_join(out, word, len, "");
}

int form_takes_an(const char *word, size_t len)
{
    static const char *const an[] = {"hour", "honest"};
    static const char *const a[] = {"uni", "use", "usual", "one", "once", "ukulele", "ewe"};
    for (size_t i = 0; i < sizeof an / sizeof *an; i++) {
        if (len >= strlen(an[i]) && memcmp(word, an[i], strlen(an[i])) == 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
        if (len >= strlen(a[i]) && memcmp(word, a[i], strlen(a[i])) == 0) {
            return 0;
        }
    }
    return len > 0 && is_vowel(word[0]);
}
