/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/library_trainer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/sp/sp_cxx.h"

static const struct opt rows[] = {SP_TRAIN_ROWS(struct sp_train_options, , 0), {.name = NULL}};

enum { PAIRS_MAX = 80 };

/* The library's options as key and value. */
struct pairs {
    struct arena arena;
    const char *key[PAIRS_MAX], *value[PAIRS_MAX];
    size_t n;
};

static void trainer_add_pair(struct pairs *p, const char *key, const char *value)
{
    BUG_ON(p->n == PAIRS_MAX, "more than %d options", PAIRS_MAX);
    p->key[p->n] = key;
    p->value[p->n++] = value;
}

/* ---- options ----------------------------------------------------------------------------- */

static const char *choice_text(struct arena *a, const char *choices, int i)
{
    for (; i > 0; i--)
        choices = strchr(choices, '|') + 1;
    return arena_strndup(a, choices, strcspn(choices, "|"));
}

static const char *value_text(struct arena *a, const struct opt *row, const void *at)
{
    switch (row->type) {
    case OPT_SWITCH:
        return *(const bool *)at ? "true" : "false";
    case OPT_INT:
        return arena_printf(a, "%lld", (long long)*(const int64_t *)at);
    case OPT_REAL:
        return arena_printf(a, "%.17g", *(const double *)at);
    case OPT_CHOICE:
        return choice_text(a, row->meta, *(const int *)at);
    default:
        return *(const char *const *)at ? *(const char *const *)at : "";
    }
}

/* Not options of the library: spm_train itself reads the files and sets the seed. */
static bool is_ours(const char *name)
{
    size_t n = strlen(name);
    return strcmp(name, "random_seed") == 0 || (n > 5 && strcmp(name + n - 5, "_file") == 0);
}

/* Quotes a text so that the library, which splits lists at commas and honours double quotes, reads
 * it back unchanged. */
static void add_quoted(struct buf *b, const char *s, size_t n)
{
    if (b->len)
        buf_addc(b, ',');
    buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"')
            buf_addc(b, '"');
        buf_addc(b, s[i]);
    }
    buf_addc(b, '"');
}

/* Joins the symbols of an option and those of the lines of a file. */
static int join_symbols(struct arena *a, const char **value, const char *path, struct err *e)
{
    struct buf file, all = {0};
    int code = file_read(path, 1 << 24, &file, e);
    if (code)
        return code;
    if (*value)
        buf_adds(&all, *value);
    for (char *p = file.data, *end = p + file.len; p < end && !code;) {
        size_t n = strcspn(p, "\n");
        if (!n || (size_t)(end - p) < n)
            code =
                err_set(e, ERR_USAGE, "%s: has an empty line; each line must have a symbol", path);
        add_quoted(&all, p, n);
        p += n + 1;
    }
    if (!code)
        *value = arena_strndup(a, all.data ? all.data : "", all.len);
    buf_finish(&file);
    buf_finish(&all);
    return code;
}

static int join_chars(struct arena *a, const char **value, const char *path, struct err *e)
{
    struct buf file;
    int code = file_read(path, 1 << 24, &file, e);
    if (code)
        return code;
    size_t n = 0;
    for (size_t i = 0; i < file.len; i++)
        if (file.data[i] != '\n')
            file.data[n++] = file.data[i];
    *value = arena_strndup(a, file.data, n);
    buf_finish(&file);
    return 0;
}

int sp_train_check(const struct sp_train_options *o, struct err *e)
{
    if (o->input_sentence_size > 0 && o->input_sentence_size <= 100)
        return err_set(e, ERR_USAGE,
                       "--input_sentence_size must be 0 (all) or more than 100, not "
                       "%lld",
                       (long long)o->input_sentence_size);
    enum sp_kind kind = (enum sp_kind)(o->model_type + 1);
    if (o->use_all_vocab && (kind == SP_UNIGRAM || kind == SP_BPE))
        return err_set(e, ERR_USAGE, "--use_all_vocab is for --model_type word and char");
    return 0;
}

static int make_pairs(const struct sp_train_options *given, const struct sp_train_input *in,
                      struct pairs *p, struct err *e)
{
    struct sp_train_options o = *given;
    int code = 0;
    if (o.user_defined_symbols_file)
        code = join_symbols(&p->arena, &o.user_defined_symbols, o.user_defined_symbols_file, e);
    if (!code && o.control_symbols_file)
        code = join_symbols(&p->arena, &o.control_symbols, o.control_symbols_file, e);
    if (!code && o.required_chars_file)
        code = join_chars(&p->arena, &o.required_chars, o.required_chars_file, e);
    if (!code)
        code = sp_train_check(&o, e);
    if (code)
        return code;
    for (const struct opt *row = rows; row->name; row++) {
        const char *value = value_text(&p->arena, row, (const char *)&o + row->offset);
        /* even an empty one would make the library write a denormalizer */
        bool absent = strcmp(row->name, "denormalization_rule_tsv") == 0 && !*value;
        if (!is_ours(row->name) && !absent)
            trainer_add_pair(p, row->name, value);
    }
    trainer_add_pair(p, "input_format", in->input_format);
    trainer_add_pair(p, "minloglevel", "0");
    return 0;
}

/* ---- the child --------------------------------------------------------------------------- */

/* The child sends this before the model's bytes. */
struct verdict {
    int code;
    bool from_input; /* the error came from `next`, not from the library */
    struct err err;
    struct sp_train_report report;
};

struct feed {
    const struct sp_train_options *o;
    const struct sp_train_input *in;
    struct verdict v;
};

/*
 * Counts sentences as the library does: empty ones are skipped, too long ones and those with U+2585
 * left out. False for one that is too long, which need not be passed on.
 */
static bool trainer_count(struct feed *f, const char *text, size_t n)
{
    const char *tab = f->in->tsv ? memchr(text, '\t', n) : NULL;
    n = tab ? (size_t)(tab - text) : n;
    if (!n)
        return true;
    if (n > (size_t)f->o->max_sentence_length) {
        f->v.report.too_long++;
        return false;
    }
    if (memmem(text, n, "\xe2\x96\x85", 3)) {
        f->v.report.reserved++;
    } else {
        f->v.report.sentences++;
        f->v.report.bytes += n;
    }
    return true;
}

static int next_sentence(void *arg, const char **ret_text, size_t *ret_n)
{
    struct feed *f = arg;
    bool more;
    do {
        f->v.code = f->in->next(f->in->arg, ret_text, ret_n, &more, &f->v.err);
        f->v.from_input = f->v.code != 0;
        if (f->v.code)
            return -1;
    } while (more && !trainer_count(f, *ret_text, *ret_n));
    return more;
}

static _Noreturn void run_child(const struct sp_train_options *o, const struct sp_train_input *in,
                                const struct pairs *p, int out)
{
    struct feed f = {.o = o, .in = in};
    struct buf model = {0};
    struct err e = {0};
    int code = sp_lib_train(p->key, p->value, p->n, o->random_seed, next_sentence, &f, &model, &e);
    if (!f.v.code && code) {
        f.v.code = code;
        f.v.err = e;
    }
    if (!fd_write_all(out, "trainer", &f.v, sizeof(f.v), NULL) && !f.v.code)
        fd_write_all(out, "trainer", model.data, model.len, NULL);
    _exit(0);
}

/* ---- the parent -------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int model, words;  /* descriptors to read from */
    struct buf answer; /* verdict and model */
    struct buf line;
    char last[256]; /* the last line that is not empty */
};

static int start_child(const struct sp_train_options *o, const struct sp_train_input *in,
                       const struct pairs *p, struct child *c, struct err *e)
{
    int a[2], b[2];
    if (pipe(a))
        return err_sys(e, errno, "no pipe for the trainer");
    if (pipe(b)) {
        int saved = errno;
        close(a[0]);
        close(a[1]);
        return err_sys(e, saved, "no pipe for the trainer");
    }
    pid_t parent = getpid();
    fflush(NULL); /* the library may end the child by exit(), which would write buffers a second
                     time */
    c->pid = fork();
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(b[1], STDERR_FILENO) < 0)
            _exit(1);
        close(a[0]);
        close(b[0]);
        close(b[1]);
        run_child(o, in, p, a[1]);
    }
    int saved = errno;
    close(a[1]);
    close(b[1]);
    c->model = a[0];
    c->words = b[0];
    return c->pid > 0 ? 0 : err_sys(e, saved, "cannot start the trainer's process");
}

/* Passes on each complete line. */
static void take_lines(struct child *c, const struct sp_train_input *in, bool at_end)
{
    size_t start = 0;
    for (size_t i = 0; i < c->line.len; i++) {
        if (c->line.data[i] != '\n')
            continue;
        c->line.data[i] = '\0';
        const char *line = c->line.data + start;
        /* printed after every failed check, whatever failed */
        if (*line && strncmp(line, "Program terminated", 18) != 0)
            snprintf(c->last, sizeof(c->last), "%s", line);
        if (*line && in->words)
            in->words(in->arg, line);
        start = i + 1;
    }
    if (at_end && start < c->line.len)
        snprintf(c->last, sizeof(c->last), "%.*s", (int)(c->line.len - start),
                 c->line.data + start);
    memmove(c->line.data, c->line.data + start, c->line.len - start);
    c->line.len -= start;
}

/* One read of what is available; false at the end. */
static bool pull(int fd, struct buf *b)
{
    char *p = buf_reserve(b, 65536);
    ssize_t k = read(fd, p, 65536);
    if (k > 0)
        b->len += (size_t)k;
    return k > 0 || (k < 0 && errno == EINTR);
}

static int wait_child(struct child *c, const struct sp_train_input *in)
{
    struct pollfd f[2] = {{.fd = c->model, .events = POLLIN}, {.fd = c->words, .events = POLLIN}};
    while (f[0].fd >= 0 || f[1].fd >= 0) {
        if (poll(f, 2, -1) < 0 && errno != EINTR)
            break;
        if (f[0].fd >= 0 && f[0].revents && !pull(c->model, &c->answer))
            f[0].fd = -1;
        if (f[1].fd >= 0 && f[1].revents) {
            if (!pull(c->words, &c->line))
                f[1].fd = -1;
            take_lines(c, in, f[1].fd < 0);
        }
    }
    close(c->model);
    close(c->words);
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* ---- errors in our words ----------------------------------------------------------------- */

/* The library's message for conflicting options; common ones are replaced by our own. */
static int reword(const struct sp_train_options *o, const char *said, struct err *e)
{
    long long most, need;
    const char *p;
    if ((p = strstr(said, "Please set it to a value <= ")) && sscanf(p + 28, "%lld", &most) == 1) {
        err_set(e, ERR_USAGE, "the input yields only %lld pieces, but --vocab_size is %lld", most,
                (long long)o->vocab_size);
        return err_hint(e, "give --vocab_size %lld, or --hard_vocab_limit=false, or more text",
                        most);
    }
    if ((p = strstr(said, " vs ")) && strstr(said, "smaller than required_chars") &&
        sscanf(p + 4, "%lld", &need) == 1) {
        err_set(e, ERR_USAGE,
                "--vocab_size is %lld, but the characters and symbols that must be "
                "in the vocabulary are %lld",
                (long long)o->vocab_size, need);
        return err_hint(e, "give a larger --vocab_size or a smaller --character_coverage");
    }
    if (strstr(said, "piece().empty()"))
        return err_set(e, ERR_USAGE,
                       "there is an empty symbol among --user_defined_symbols or "
                       "--control_symbols");
    if (strstr(said, "insert_id") || strstr(said, "insert_meta_symbol"))
        return err_set(e, ERR_USAGE,
                       "a special piece or symbol occurs twice, has an id that is "
                       "not below --vocab_size, or equals --unk_piece");
    if (strstr(said, "sentences_.empty()") || strstr(said, "required_chars_.empty()") ||
        strstr(said, "nothing is left"))
        return err_set(e, ERR_DATA, "the input has no sentence to learn from");
    if (strstr(said, "train_extremely_large_corpus"))
        return err_set(e, ERR_USAGE,
                       "the input is too large for 32-bit positions: give "
                       "--train_extremely_large_corpus=true, or sample by --input_sentence_size");
    return err_set(e, ERR_USAGE, "SentencePiece's trainer: %s", said);
}

static int trainer_judge(const struct sp_train_options *o, struct child *c, int status,
                         struct buf *ret, struct sp_train_report *report, struct err *e)
{
    struct verdict v;
    if (c->answer.len < sizeof(v)) {
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (killed || strstr(c->last, "bad_alloc") || strstr(c->last, "out of memory")) {
            err_set(e, ERR_RESOURCE,
                    killed ? "SentencePiece's trainer was killed, most likely "
                             "for lack of memory"
                           : "SentencePiece's trainer ran out of memory");
            return err_hint(e, "--input_sentence_size N learns from a sample of the lines");
        }
        if (WIFSIGNALED(status))
            return err_set(e, ERR_FAIL,
                           "SentencePiece's trainer was killed by signal %d; its last "
                           "message: %s",
                           WTERMSIG(status), c->last);
        return reword(o, c->last, e);
    }
    memcpy(&v, c->answer.data, sizeof(v));
    *report = v.report;
    if (v.code == ERR_USAGE && !v.from_input)
        return reword(o, v.err.msg, e);
    if (v.code) {
        if (e)
            *e = v.err;
        return v.code;
    }
    buf_add(ret, c->answer.data + sizeof(v), c->answer.len - sizeof(v));
    return ret->len ? 0 : err_set(e, ERR_FAIL, "SentencePiece's trainer returned no model");
}

int sp_train(const struct sp_train_options *o, const struct sp_train_input *in, struct buf *ret,
             struct sp_train_report *report, struct err *e)
{
    struct pairs p = {0};
    struct child c = {0};
    *report = (struct sp_train_report){0};
    int code = make_pairs(o, in, &p, e);
    if (!code)
        code = start_child(o, in, &p, &c, e);
    if (!code) {
        int status = wait_child(&c, in);
        code = trainer_judge(o, &c, status, ret, report, e);
    }
    buf_finish(&c.answer);
    buf_finish(&c.line);
    arena_finish(&p.arena);
    return code;
}

/* ---- files ------------------------------------------------------------------------------- */

/* Formats a score as spm_train does: six digits, the shorter of fixed and scientific. */
static void put_vocab(struct buf *b, const struct sp_model *m)
{
    for (size_t i = 0; i < m->npieces; i++) {
        buf_add(b, m->piece[i].text, m->piece[i].length);
        if (m->with_scores)
            buf_addf(b, "\t%g", (double)m->piece[i].score);
        buf_addc(b, '\n');
    }
}

int sp_train_write(const char *prefix, const struct buf *model, const struct sp_model *m,
                   struct err *e)
{
    struct buf vocab = {0};
    put_vocab(&vocab, m);
    char *names[2] = {mem_printf("%s.vocab", prefix), mem_printf("%s.model", prefix)};
    const struct buf *content[2] = {&vocab, model};
    struct outfile f[2] = {{.fd = -1}, {.fd = -1}};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        code = outfile_open(&f[i], names[i], e);
        if (!code)
            code = outfile_write(&f[i], content[i]->data, content[i]->len, e);
        if (!code)
            code = outfile_sync(&f[i], e);
    }
    for (int i = 0; i < 2 && !code; i++)
        code = outfile_commit(&f[i], e);
    for (int i = 0; i < 2; i++) {
        outfile_abort(&f[i]);
        free(names[i]);
    }
    buf_finish(&vocab);
    return code;
}
