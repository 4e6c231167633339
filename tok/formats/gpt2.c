/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/formats/hf.h"
#include "tok/formats/readers.h"
#include "tok/text/byte_alphabet.h"

/*
 * GPT-2's own files: vocab.json, an object of pieces and ids, and merges.txt, a merge per line. As
 * Megatron-LM's GPT2BPETokenizer: byte-level, no normalizer, <|endoftext|> ends a document.
 */

enum { MERGES_FILE_MAX = 256 << 20 };

static const char eod[] = "<|endoftext|>";
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* merges.txt: "a b" on each line; a first line "#version..." and empty lines are ignored. */
static int take_merges(struct pipe_spec *s, const char *path, const char *p, size_t n,
                       struct err *e)
{
    size_t lines = 1, line = 0;
    struct hf_merges merges = {.s = s, .e = e};
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    void *pair;
    int code = mem_try(lines, sizeof(*s->merges.pair), "memory for merges", &pair, e);
    if (code)
        return code;
    s->merges.pair = pair;
    for (const char *end = p + n, *next; p < end && !code; p = next) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        size_t length = (size_t)((stop ? stop : end) - p);
        length -= length && p[length - 1] == '\r';
        line++;
        if (!length || (length >= 8 && !memcmp(p, "#version", 8)))
            continue;
        const char *space = memchr(p, ' ', length);
        size_t left = space ? (size_t)(space - p) : 0, right = length - left - 1;
        if (!space || memchr(space + 1, ' ', right))
            return err_set(e, ERR_DATA,
                           "%s: line %zu is \"%.*s\", not two pieces with a space between", path,
                           line, (int)(length < 64 ? length : 64), p);
        code = hf_add_merge(&merges, line, p, left, space + 1, right);
    }
    if (!code)
        code = hf_merges_end(&merges);
    if (code)
        err_wrap(e, "%s: line %zu", path, merges.failed);
    return code;
}

int pipe_add_byte_level(struct pipe_spec *s, const char *pattern, enum regex_dialect dialect,
                        struct err *e)
{
    struct regex *r;
    s->own_bytes = true;
    int code = regex_compile(s->path, pattern, strlen(pattern), dialect, &r, e);
    if (code)
        return code;
    pipe_add_pre(s, PRE_BYTE_LEVEL)->pattern = r;
    pipe_add_dec(s, DEC_BYTE_LEVEL);
    return 0;
}

void pipe_add_special(struct pipe_spec *s, const char *text, int32_t id)
{
    struct pipe_token *t = pipe_add_token(s, text, strlen(text));
    t->special = true;
    t->id = id;
}

/* merges.txt next to the vocabulary, unless another is named. */
static char *merges_path(const struct tok_options *o)
{
    if (o->merges)
        return mem_strdup(o->merges);
    const char *slash = strrchr(o->path, '/');
    return mem_printf("%.*smerges.txt", slash ? (int)(slash - o->path + 1) : 0, o->path);
}

/* JSON of pieces and ids counts as GPT-2's if there are merges. */
bool gpt2_looks(const struct tok_options *o, const char *p, size_t n)
{
    if (!json_object_looks(p, n))
        return false;
    if (o->type != TOK_AUTO || o->merges)
        return o->type == TOK_AUTO || o->type == TOK_GPT2_BPE;
    char *path = merges_path(o);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static bool has_text(const struct buf *file, const char *text)
{
    return memmem(file->data, file->len, text, strlen(text));
}

/* Refuses merges for pieces that are not spelled as GPT-2's: with <unk>, but, unlike RoBERTa's,
 * without the byte letter of a space (CTRL, XLM, the first GPT). No reader would give the intended
 * ids. */
static int check_merged(const struct tok_options *o, const struct buf *file, struct err *e)
{
    if (o->merges || !has_text(file, "\"<unk>\"") || has_text(file, "\"\u0120") ||
        has_text(file, "\"\\u0120"))
        return 0;
    err_set(e, ERR_USAGE,
            "%s: there is a merges.txt next to it, but its pieces are not spelled as GPT-2's",
            o->path);
    return err_hint(e, "use its tokenizer.json; if these are whole words, give --tokenizer-type "
                       "WhitespaceTokenizer");
}

/* Pieces with the word ending </w>, as CLIP's, need a pipeline that the files do not specify. */
static int check_ends(const struct pipe_spec *s, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < s->vocab.npieces; i++) {
        const struct string_ref *t = &s->vocab.piece[i];
        n += t->n > 4 && !memcmp(t->p + t->n - 4, "</w>", 4);
    }
    if (n <= s->vocab.npieces / 16)
        return 0;
    err_set(e, ERR_USAGE, "%s: %zu pieces end in </w>, which GPT-2's files have no rule for",
            s->path, n);
    return err_hint(e, "use its tokenizer.json");
}

/* Megatron-LM's reader has no rule for a byte without a symbol; text would lose it. */
static int check_bytes(const struct pipe_spec *s, struct err *e)
{
    char text[4];
    int missing = 0, first = 0;
    for (int b = 255; b >= 0; b--)
        if (vocab_find(&s->vocab, text, letter_put(text, (uint8_t)b)) < 0) {
            missing++;
            first = b;
        }
    if (!missing)
        return 0;
    err_set(e, ERR_DATA,
            "%s: has no entry for %d of the 256 bytes, the first is 0x%02x: it is no vocabulary of "
            "GPT-2's kind, and text would be lost",
            s->path, missing, (unsigned)first);
    return err_hint(e, "use its tokenizer.json; if these are whole words, give --tokenizer-type "
                       "WhitespaceTokenizer");
}

int gpt2_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
              struct tok_info *info, struct err *e)
{
    struct buf merges = {0};
    int code = o->type == TOK_AUTO ? check_merged(o, file, e) : 0;
    if (code)
        return code;
    char *path = merges_path(o);
    code = file_read_plain(path, MERGES_FILE_MAX, &merges, e);
    if (!code)
        code = hf_read_vocab(s, file->data, file->len, e);
    if (!code && o->type == TOK_AUTO)
        code = check_ends(s, e);
    if (!code)
        code = take_merges(s, path, merges.data, merges.len, e);
    if (!code)
        code = check_bytes(s, e);
    if (!code)
        code = pipe_add_byte_level(s, gpt2_pattern, REGEX_ONIGURUMA, e);
    if (!code && !o->no_digest) {
        struct sha *h = sha_create(); /* the digest covers both files */
        sha_add(h, file->data, file->len);
        sha_add(h, merges.data, merges.len);
        sha_text(h, info->digest);
        sha_destroy(h);
    }
    buf_finish(&merges);
    free(path);
    if (!code && vocab_find(&s->vocab, eod, sizeof(eod) - 1) >= 0)
        pipe_add_special(s, eod, -1);
    return code;
}

void gpt2_ids(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info)
{
    (void)o;
    info->eod = info->eos = info->bos = g->find(g->state, eod);
}
