/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/utf8.h"
#include "base/core/mem.h"
#include "prep/build/state.h"

enum { PIECE = 256 << 10 };

/* ---- bad records ---------------------------------------------------------------------------- */

/* Formats the place of a bad record and its reason. */
static void bad_place(const struct build *b, const struct item *it, const struct bad *bad,
                      struct err *ret)
{
    err_set(ret, ERR_DATA, "%s: %s %" PRIu64 ": %s", source_name(&b->source, it->input), it->unit,
            b->line + bad->line + 1, it->why.data + bad->why);
}

static int copy_line(const struct spill *from, struct outfile *to, struct err *e)
{
    char *p = mem_new(PIECE, 1);
    int code = 0;
    for (uint64_t at = 0; at < from->size && !code; at += PIECE) {
        size_t n = from->size - at < PIECE ? (size_t)(from->size - at) : PIECE;
        code = spill_read(from, at, p, n, e);
        if (!code)
            code = outfile_write(to, p, n, e);
    }
    free(p);
    return code;
}

static int quarantine(struct build *b, const struct item *it, const struct bad *bad, struct err *e)
{
    int code = b->bad.path ? 0 : outfile_resume(&b->bad, b->bad_path, b->folder, 0, e);
    if (!code && it->kind == ITEM_LONG)
        code = copy_line(&it->large->line, &b->bad, e);
    else if (!code)
        code = outfile_write(&b->bad, it->text.data + bad->at, bad->n, e);
    return code ? code : outfile_write(&b->bad, "\n", 1, e);
}

/* The first line is not JSON: perhaps the file is plain text. */
static bool like_text(const struct build *b, const struct item *it, const struct bad *bad)
{
    const char *p = it->text.data + bad->at, *end = p + bad->n;
    if (it->kind != ITEM_LINES || b->q->form.pretokenized || b->line + bad->line)
        return false;
    if (utf8_invalid(p, bad->n))
        return false;
    while (p < end && jsonl_white(*p))
        p++;
    return p < end && *p != '{';
}

static const char *bad_cure(const struct build *b, const struct item *it, const struct bad *bad)
{
    if (bad->kind == ERR_KIND_CR_LINES)
        return JSONL_CR_CURE;
    return like_text(b, it, bad)
               ? "if this is plain text, --input-format text takes each line as a document"
               : "--on-bad-record skip drops such records, quarantine also keeps them in a file";
}

static int take_bad(struct build *b, const struct item *it, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < item_bads(it) && !code; i++) {
        const struct bad *bad = item_bad(it, i);
        struct err place;
        if (bad->filtered) {
            b->counts.filtered++;
            continue;
        }
        bad_place(b, it, bad, &place);
        if (b->q->on_bad == BAD_FAIL) {
            *e = place;
            return err_hint(e, "%s", bad_cure(b, it, bad));
        }
        b->counts.bad++;
        b->cr |= bad->kind == ERR_KIND_CR_LINES;
        if (b->q->note && b->notes++ < BUILD_NOTES)
            b->q->note(b->q->arg, place.msg);
        if (b->q->on_bad == BAD_QUARANTINE)
            code = quarantine(b, it, bad, e);
    }
    return code;
}

/* ---- tokens --------------------------------------------------------------------------------- */

/* The writer of a record, by its number among all records. */
static struct shard_writer *writer_of(struct build *b, size_t k, uint64_t record)
{
    return &b->writer[k * b->parts + record % b->parts];
}

/* Walks the documents of a column in order; zeroed except for the column. */
struct walk {
    struct build *of;
    const struct item *it;
    size_t k;
    uint64_t record; /* of the item's first line */
    uint64_t line;
    size_t at, bad;
};

static bool next_document(struct walk *x, struct shard_writer **ret, uint32_t *ret_n)
{
    const struct column *col = &x->it->column[x->k];
    if (x->at == col->length.len)
        return false;
    for (; x->bad < item_bads(x->it) && item_bad(x->it, x->bad)->line == x->line; x->bad++)
        x->line++; /* this line has no document */
    *ret = writer_of(x->of, x->k, x->record + x->line++);
    memcpy(ret_n, col->length.data + x->at, sizeof(*ret_n));
    x->at += sizeof(*ret_n);
    return true;
}

static const struct shard_run *runs_of(const struct column *col, size_t *ret_n)
{
    *ret_n = col->run.len / sizeof(struct shard_run);
    return (const struct shard_run *)(const void *)col->run.data;
}

/* A sequence of n ids from *id on, which is advanced. */
static int put_ids_sequence(struct shard_writer *w, bool refused, const int32_t **id, uint32_t n,
                            struct err *e)
{
    int code = refused ? shard_writer_check(w, *id, n, e) : 0;
    *id += n;
    return code ? code : shard_writer_sequence(w, n, e);
}

/* The lengths of a column whose documents have several sequences or several writers. */
static int put_documents(struct build *b, size_t k, const struct item *it, struct err *e)
{
    const struct column *col = &it->column[k];
    const char *sentence = col->sentence.len ? col->sentence.data : NULL;
    const int32_t *id = col->ids.id;
    struct walk x = {.of = b, .it = it, .k = k, .record = b->records};
    struct shard_writer *w;
    uint32_t left, n;
    int code = 0;
    while (!code && next_document(&x, &w, &left)) {
        for (; left && !code; left -= n) {
            n = left;
            if (sentence) {
                memcpy(&n, sentence, sizeof(n));
                sentence += sizeof(n);
            }
            code = put_ids_sequence(w, col->refused, &id, n, e);
        }
        if (!code)
            code = shard_writer_end_document(w, e);
    }
    return code;
}

static int put_column(struct build *b, size_t k, const struct item *it, struct err *e)
{
    const struct column *col = &it->column[k];
    size_t n;
    const struct shard_run *run = runs_of(col, &n);
    int code;
    if (b->parts > 1 || col->sentence.len || col->refused)
        code = put_documents(b, k, it, e);
    else
        code =
            shard_writer_documents(&b->writer[k], (const uint32_t *)(const void *)col->length.data,
                                   col->length.len / sizeof(uint32_t), e);
    b->counts.tokens += col->ids.n;
    return code ? code : shard_runs_take(run, n, e);
}

/* n tokens of a long record, and the lengths of its sequences (NULL: one). */
static int put_text_piece(struct shard_writer *w, const char *p, size_t n,
                          const struct spill *lengths, uint64_t *at, uint32_t *left, struct err *e)
{
    int code = lengths ? 0 : shard_writer_part(w, p, n, e);
    while (lengths && n && !code) {
        if (!*left) {
            code = spill_read(lengths, *at, left, sizeof(*left), e);
            *at += sizeof(*left);
        }
        size_t k = n < *left ? n : *left;
        if (!code && k < *left)
            code = shard_writer_part(w, p, k, e);
        else if (!code)
            code = shard_writer_put(w, p, k, e);
        p += k * w->width;
        n -= k;
        *left -= (uint32_t)k;
    }
    return code;
}

/* The tokens of a long record. */
static int put_long(struct build *b, size_t k, const struct item *it, struct err *e)
{
    const struct long_column *col = &it->large->column[k];
    const struct spill *lengths = col->sentence.size ? &col->sentence : NULL;
    struct shard_writer *w = writer_of(b, k, b->records);
    char *p = mem_new(PIECE, 1);
    uint64_t next = 0;
    uint32_t left = 0;
    int code = 0;
    for (uint64_t at = 0; at < col->packed.size && !code; at += PIECE) {
        size_t n = col->packed.size - at < PIECE ? (size_t)(col->packed.size - at) : PIECE;
        code = spill_read(&col->packed, at, p, n, e);
        if (!code)
            code = put_text_piece(w, p, n / w->width, lengths, &next, &left, e);
    }
    if (!code && !lengths)
        code = shard_writer_put(w, p, 0, e);
    if (!code)
        code = shard_writer_end_document(w, e);
    b->counts.tokens += col->tokens;
    free(p);
    return code;
}

static int put_document(struct build *b, size_t k, const struct item *it, struct err *e)
{
    if (it->kind != ITEM_LONG)
        return put_column(b, k, it, e);
    return it->docs ? put_long(b, k, it, e) : 0;
}

/* ---- an item -------------------------------------------------------------------------------- */

/* Advances the position of the build past the item. */
static void pass(struct build *b, struct item *it)
{
    longrec_destroy(it->large); /* close its files now, not when the item is reused */
    it->large = NULL;
    b->end = it->end;
    b->line += it->lines;
    b->records += it->lines;
    b->input[it->input].documents += it->docs;
    b->counts.documents += it->docs;
    b->counts.specials += it->specials;
    b->counts.eods += it->eods - it->added;
    b->counts.read = it->consumed;
    atomic_fetch_sub_explicit(&b->under_way, it->under_way, memory_order_relaxed);
}

void build_tell(struct build *b)
{
    struct build_counts c = b->counts;
    uint64_t most = atomic_load_explicit(&b->filled, memory_order_relaxed);
    c.read += atomic_load_explicit(&b->under_way, memory_order_relaxed);
    if (c.read > most) /* the inputs are compressed */
        c.read = most > b->counts.read ? most : b->counts.read;
    if (b->q->progress)
        b->q->progress(b->q->arg, &c);
}

/* Reserves places for the tokens. */
static void put_place(struct build *b, size_t k, struct item *it)
{
    struct column *col = &it->column[k];
    struct walk x = {.of = b, .it = it, .k = k, .record = b->placed};
    struct shard_writer *w;
    uint32_t n;
    if (b->parts == 1)
        shard_writer_place(&b->writer[k], col->ids.n, &col->run);
    else
        while (next_document(&x, &w, &n))
            shard_writer_place(w, n, &col->run);
}

bool build_follow(void *arg, void *item)
{
    struct build *b = arg;
    struct item *it = item;
    source_follow(&b->source, it);
    for (size_t k = 0; k < b->q->nkeys && !it->code && it->kind != ITEM_LONG; k++)
        put_place(b, k, it);
    b->placed += it->lines;
    return it->kind == ITEM_LONG; /* its tokens come from files and reserve places themselves */
}

void build_store(void *arg, void *item)
{
    const struct build *b = arg;
    struct item *it = item;
    struct shard_watch watch = {.id = b->plan.known_eod};
    for (size_t k = 0; k < it->ncolumns; k++) {
        struct column *col = &it->column[k];
        size_t n;
        const struct shard_run *run = runs_of(col, &n);
        col->refused = !shard_runs_store(run, n, col->ids.id, &watch);
    }
    it->eods += watch.n;
}

int build_drain(void *arg, void *item)
{
    struct build *b = arg;
    struct item *it = item;
    struct err *e = &b->err;
    if (it->input != b->at)
        b->line = 0;
    b->at = it->input;
    int code = take_bad(b, it, e);
    if (!code && it->code) {
        *e = it->err;
        code = it->code;
    }
    for (size_t k = 0; k < b->q->nkeys && !code; k++)
        code = put_document(b, k, it, e);
    if (code)
        return code;
    pass(b, it);
    build_tell(b);
    b->stopped = b->q->stop && *b->q->stop;
    return b->stopped ? err_set(e, ERR_FAIL, "stopped by a signal") : build_mark_in_time(b, e);
}
