/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "tok/chat/chat.h"
#include "train/engine/generate.h"
#include "train/job/checkpoint.h"
#include "train/verbs.h"

/* `train generate`: each prompt with its continuation on stdout, as it is drawn; with --chat the
 * answer alone. */

/* ---- --chat: conversations as ids ---------------------------------------------------------- */

/* A zeroed one is closed. */
struct chat_session {
    struct tokenizer *bare, *framed;
    struct chat *chat;
    struct chat_work *work;
    struct buf mask; /* of no use here */
    struct chat_stop stop;
};

/* The job's tokenizer is open. ERR_USAGE: no such template, or it lacks special tokens. */
static int chat_session_open(struct chat_session *t, const struct job *j, const char *template,
                             struct err *e)
{
    int code = job_tokenizer_again(j, true, TOK_SPECIALS_TEXT, &t->bare, e);
    if (!code)
        code = job_tokenizer_again(j, false, TOK_SPECIALS_PARSE, &t->framed, e);
    if (!code)
        code = chat_open(template, t->bare, t->framed, &t->chat, e);
    if (code)
        return code;
    t->work = chat_work_create(t->chat);
    t->stop = chat_stop(t->chat);
    return 0;
}

static void chat_session_close(struct chat_session *t)
{
    chat_work_destroy(t->work);
    chat_close(t->chat);
    tok_close(t->bare);
    tok_close(t->framed);
    buf_finish(&t->mask);
}

/* Appends the ids of a conversation, in which the assistant speaks next: a JSON record if the
 * prompt begins with a brace, else a user message. ERR_DATA for an invalid record. */
static int chat_session_encode(struct chat_session *t, const char *prompt, struct tok_ids *ids,
                               struct err *e)
{
    size_t n = strlen(prompt);
    const struct chat_message said = {.role = CHAT_USER, .text = prompt, .n = n};
    buf_reset(&t->mask);
    if (prompt[0] == '{')
        return chat_encode_record(t->work, prompt, n, true, ids, &t->mask, e);
    return chat_encode(t->chat, t->work, &said, 1, true, ids, &t->mask, e);
}

/* ---- what is written -------------------------------------------------------------------- */

struct writer {
    struct job *job;
    FILE *out;
    struct decoder decoder;
    struct tok_work *work;
    struct tok_ids ids;       /* prompt and continuation */
    struct buf text;          /* all of it, decoded */
    size_t shown;             /* bytes printed, or of a conversation */
    struct chat_session talk; /* --chat */
    size_t asked;             /* bytes of the conversation */
    size_t asked_ids;         /* of the prompt */
    bool ended;               /* the answer, by a string of the template */
};

/* Bytes at the end that are the beginning of a character: they wait for the rest. */
static size_t unfinished(const char *p, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        unsigned char c = (unsigned char)p[n - k];
        if (c >= 0xc0)
            return k < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? k : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

/* A piece's text may depend on its neighbours, so the whole is decoded each time and the new part
 * shown. */
static int generate_show(struct writer *w, bool last, struct err *e)
{
    buf_reset(&w->text);
    int code = tok_decode(w->job->tokenizer, w->work, w->ids.id, w->ids.n, &w->text, e);
    if (code)
        return code;
    size_t upto = w->text.len - (last ? 0 : unfinished(w->text.data, w->text.len));
    if (w->talk.chat && w->text.len > w->asked) {
        size_t kept = w->asked + chat_answer(&w->talk.stop, w->text.data + w->asked,
                                             w->text.len - w->asked, &w->ended);
        upto = kept < upto && (w->ended || !last) ? kept : upto;
    }
    if (upto > w->shown) {
        fwrite(w->text.data + w->shown, 1, upto - w->shown, w->out);
        w->shown = upto;
    }
    return fflush(w->out) ? err_sys(e, errno, "standard output: cannot write") : 0;
}

/* The ids of a prompt, and of a conversation how long it is as text. */
static int read_prompt(struct writer *w, const char *prompt, struct err *e)
{
    int64_t eod = tok_info(w->job->tokenizer)->eod;
    w->ids.n = w->shown = w->asked = 0;
    w->ended = false;
    if (w->talk.chat) {
        int code = chat_session_encode(&w->talk, prompt, &w->ids, e);
        buf_reset(&w->text);
        if (!code)
            code = tok_decode(w->job->tokenizer, w->work, w->ids.id, w->ids.n, &w->text, e);
        w->shown = w->asked = w->text.len;
        return code;
    }
    int code = tok_encode(w->job->tokenizer, w->work, prompt, strlen(prompt), &w->ids, e);
    if (!code && w->ids.n == 0 && eod >= 0) { /* nothing to go on from: a document begins */
        *tok_ids_reserve(&w->ids, 1) = (int32_t)eod;
        w->ids.n = 1;
    }
    return code;
}

/* What ends a text: the end of a document, or of the assistant's turn. */
static bool is_end(const struct writer *w, int32_t id)
{
    int64_t eod = tok_info(w->job->tokenizer)->eod;
    return (id == eod && !w->job->o->ignore_eod) || (w->talk.chat && id == w->talk.stop.id);
}

static int continue_text(struct writer *w, const char *prompt, uint64_t number, struct err *e)
{
    const struct train_options *o = w->job->o;
    struct sampling s = {.temperature = o->temperature,
                         .top_k = o->top_k,
                         .top_p = o->top_p > 0 ? o->top_p : 1,
                         .seed = (uint64_t)o->seed + (number << 32)};
    bool full = false;
    w->decoder.past = 0;
    int code = read_prompt(w, prompt, e);
    w->asked_ids = w->ids.n;
    if (!code)
        code = decoder_feed(&w->decoder, w->ids.id, (int64_t)w->ids.n, e);
    for (int64_t i = 0; !code && i < o->max_new; i++) {
        int32_t id = decoder_sample(&w->decoder, &s, w->ids.n);
        if (is_end(w, id))
            break;
        *tok_ids_reserve(&w->ids, 1) = id;
        w->ids.n++;
        code = generate_show(w, false, e);
        if (w->ended)
            break;
        if (!code && decoder_room(&w->decoder) == 0) {
            full = true;
            break;
        }
        if (!code && i + 1 < o->max_new)
            code = decoder_feed(&w->decoder, &id, 1, e);
    }
    if (!code)
        code = generate_show(w, true, e);
    fputc('\n', w->out);
    if (full)
        log_info("stopped: the model has %lld positions", (long long)w->job->seq_length);
    return code;
}

/* All continuations of the prompt of this number. */
static int continue_prompt(struct writer *w, const char *prompt, uint64_t number, struct err *e)
{
    uint64_t samples = (uint64_t)w->job->o->samples;
    int code = 0;
    for (uint64_t i = 0; !code && i < samples; i++)
        code = continue_text(w, prompt, number * samples + i, e);
    return code;
}

static int each_line(struct writer *w, struct err *e)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int code = 0;
    if (isatty(STDIN_FILENO))
        log_info("reading prompts from standard input, one in each line; Ctrl-D ends");
    for (uint64_t k = 0; !code && (n = getline(&line, &cap, stdin)) >= 0; k++) {
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        code = continue_prompt(w, line, k, e);
    }
    free(line);
    return code;
}

static void writer_finish(struct writer *w)
{
    decoder_finish(&w->decoder);
    chat_session_close(&w->talk);
    tok_work_destroy(w->work);
    tok_ids_finish(&w->ids);
    buf_finish(&w->text);
}

static int generate_write_all(struct job *j, FILE *out, struct err *e)
{
    struct writer w = {.job = j, .out = out, .work = tok_work_create(j->tokenizer)};
    decoder_init(&w.decoder, &j->rank);
    int code = j->o->chat ? chat_session_open(&w.talk, j, j->o->chat, e) : 0;
    if (!code)
        code = j->o->prompt ? continue_prompt(&w, j->o->prompt, 0, e) : each_line(&w, e);
    writer_finish(&w);
    return code;
}

/* The model with its tokenizer, ready to answer. */
static int open_job(struct job *j, struct err *e)
{
    int code = job_open_world(j, e);
    if (!code)
        code = checkpoint_find(j, true, e);
    if (!code)
        code = job_open_tokenizer(j, e);
    if (!code && !j->tokenizer) {
        err_set(e, ERR_USAGE, "%s holds no tokenizer", j->o->load);
        code = err_hint(e, "name the one that the data was made with by --tokenizer");
    }
    if (!code)
        code = job_spec(j, true, e);
    return code ? code : job_open_rank(j, MODEL_DECODE, e);
}

static int generate_to(struct opts *opts, FILE *out, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    int code = open_job(&j, e);
    if (!code)
        code = generate_write_all(&j, out, e);
    job_close(&j);
    return code;
}

int verb_generate(struct opts *opts, struct err *e)
{
    return generate_to(opts, stdout, e);
}

static const struct job_world alone = {.ranks = 1};

/* The command line that does the same as this process alone. */
static int sample_command(const struct job *j, const char *model, const char *text, int64_t length,
                          struct train_options *values, struct opts *ret, struct err *e)
{
    char tokens[64], threads[64];
    snprintf(tokens, sizeof(tokens), "--max-new-tokens=%lld", (long long)length);
    snprintf(threads, sizeof(threads), "--threads=%d", job_threads(j));
    char *prompt = mem_printf("--prompt=%s", text);
    char *load = mem_printf("--load=%s", model);
    char *argv[] = {"train", "generate", load, prompt, tokens, threads, "--device=cpu", NULL};
    *values = (struct train_options){
        .backends = j->o->backends, .nbackends = j->o->nbackends, .world = &alone};
    int code = opts_init(ret, &train_table, values, 7, argv, e);
    free(prompt);
    free(load);
    return code;
}

/* Quietly: what is told of a checkpoint was told. */
static int sample_of(const struct job *j, const char *checkpoint, FILE *out, struct err *e)
{
    const struct report_flags *f = &j->o->report;
    struct train_options values;
    struct opts o;
    enum log_level level = log_get_level();
    int code = sample_command(j, checkpoint, f->sample_prompt ? f->sample_prompt : "",
                              f->sample_tokens, &values, &o, e);
    if (code)
        return code;
    if (tok_flags_given(&j->o->tokenizer))
        values.tokenizer = j->o->tokenizer;
    log_set_level(LOG_ERROR);
    code = generate_to(&o, out, e);
    log_set_level(level);
    opts_finish(&o);
    return code;
}

void generate_sample(const struct job *j)
{
    struct err e = {0};
    char *text = NULL, *path = ckpt_folder(j->o->save, j->rank.at.iteration);
    long long at = (long long)j->rank.at.iteration;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_ON(!out, "no memory stream");
    int code = sample_of(j, path, out, &e);
    fclose(out);
    if (n && text[n - 1] == '\n')
        text[n - 1] = 0;
    if (code)
        log_warn("step %lld: no sample: %s", at, e.msg);
    else
        log_info("step %lld, a sample: %s", at, text);
    free(text);
    free(path);
}

/* ---- --test-prompt-text -------------------------------------------------------------------- */

static void put_ids(struct buf *b, const int32_t *id, size_t n)
{
    buf_addc(b, '[');
    for (size_t i = 0; i < n; i++)
        buf_addf(b, "%s%d", i ? "," : "", (int)id[i]);
    buf_addc(b, ']');
}

/* The SHA-256 of each file of weights and of the configuration, by name. */
static int put_digests(struct buf *b, const char *folder, struct err *e)
{
    struct dirent **entry = NULL;
    char digest[SHA_TEXT];
    bool some = false;
    int code = 0, n = scandir(folder, &entry, NULL, alphasort);
    if (n < 0)
        return err_sys(e, errno, "%s: cannot read the folder", folder);
    buf_addc(b, '{');
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name, *dot = strrchr(name, '.');
        bool taken = dot && (!strcmp(dot, ".safetensors") || !strcmp(name, "config.json"));
        char *path = path_join(folder, name);
        if (!code && taken)
            code = sha_file(path, digest, e);
        if (!code && taken) {
            buf_adds(b, some ? ", " : "");
            jsonw_key(b, name);
            buf_addf(b, " \"%s\"", digest);
            some = true;
        }
        free(path);
        free(entry[i]);
    }
    free(entry);
    buf_addc(b, '}');
    return code;
}

/* What was asked and answered, for whoever publishes the folder. */
static int write_record(const struct writer *w, const char *folder, const char *answer, size_t n,
                        struct err *e)
{
    const struct train_options *o = w->job->o;
    size_t prompt = w->asked_ids;
    struct buf b = {0};
    time_t now = time(NULL);
    struct tm utc;
    char date[32];
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    buf_adds(&b, "{\n  \"prompt\": ");
    jsonw_string(&b, o->prompt, strlen(o->prompt));
    buf_adds(&b, ",\n  \"template\": ");
    if (o->chat)
        jsonw_string(&b, o->chat, strlen(o->chat));
    else
        buf_adds(&b, "null");
    buf_adds(&b, ",\n  \"answer\": ");
    jsonw_string(&b, answer, n);
    buf_adds(&b, ",\n  \"prompt_ids\": ");
    put_ids(&b, w->ids.id, prompt);
    buf_adds(&b, ",\n  \"answer_ids\": ");
    put_ids(&b, w->ids.id + prompt, w->ids.n - prompt);
    buf_addf(&b, ",\n  \"decoding\": \"greedy\",\n  \"date\": \"%s\",\n  \"sha256\": ", date);
    int code = put_digests(&b, folder, e);
    buf_adds(&b, "\n}\n");
    char *path = path_join(folder, "test_prompt.json");
    if (!code)
        code = file_replace(path, b.data, b.len, e);
    free(path);
    buf_finish(&b);
    return code;
}

/* At least one token of text: special ones are none. */
static bool has_text(const struct writer *w, size_t length)
{
    bool some = false;
    for (size_t i = w->asked_ids; i < w->ids.n; i++)
        some |= !tok_is_special(w->job->tokenizer, w->ids.id[i]);
    return some && length;
}

/* The template that the prompt goes through; NULL: it is text to continue. */
static const char *trial_template(const struct train_options *o)
{
    return o->chat;
}

/* Of what was written, the answer begins here: without a template the prompt is before it. */
static int find_answer(struct writer *w, size_t *ret, struct err *e)
{
    *ret = 0;
    if (w->talk.chat)
        return 0;
    buf_reset(&w->text);
    int code = tok_decode(w->job->tokenizer, w->work, w->ids.id, w->asked_ids, &w->text, e);
    *ret = w->text.len;
    return code;
}

/* Notes and prints what was written: n bytes of text. */
static int judge_answer(struct writer *w, const char *folder, const char *text, size_t n,
                        struct err *e)
{
    const char *prompt = w->job->o->prompt;
    size_t from;
    int code = find_answer(w, &from, e);
    if (code)
        return code;
    from = from < n ? from : n;
    code = write_record(w, folder, text + from, n - from, e);
    if (code)
        return code;
    printf("test prompt: %s\nanswer: %.*s\n", prompt, (int)(n - from), text + from);
    if (fflush(stdout))
        return err_sys(e, errno, "standard output: cannot write");
    return has_text(w, n - from)
               ? 0
               : err_set(e, ERR_FAIL, "the exported model has no text in answer to \"%s\"", prompt);
}

static int try_model(struct job *j, const char *folder, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    struct writer w = {
        .job = j, .out = open_memstream(&text, &n), .work = tok_work_create(j->tokenizer)};
    BUG_ON(!w.out, "no memory stream");
    decoder_init(&w.decoder, &j->rank);
    int code = j->o->chat ? chat_session_open(&w.talk, j, j->o->chat, e) : 0;
    if (!code)
        code = continue_text(&w, j->o->prompt, 0, e);
    fclose(w.out);
    if (!code)
        code = judge_answer(&w, folder, text, n ? n - 1 : 0, e); /* without the line's end */
    writer_finish(&w);
    free(text);
    return code;
}

int generate_trial(const struct job *j, const char *folder, struct err *e)
{
    struct train_options values;
    struct opts o;
    enum log_level level = log_get_level();
    int code = sample_command(j, folder, j->o->test_prompt, j->o->max_new, &values, &o, e);
    if (code)
        return code;
    struct job own = {.opts = &o, .o = &values};
    values.temperature = 0;
    values.chat = trial_template(j->o);
    values.model.ignored_keys = j->o->model.ignored_keys;
    values.tokenizer.eod_token = j->o->tokenizer.eod_token;
    values.tokenizer.path = values.tokenizer.eod_token ? folder : NULL;
    log_set_level(LOG_ERROR);
    code = open_job(&own, e);
    log_set_level(level);
    if (code)
        err_wrap(e, "--test-prompt-text");
    else
        code = try_model(&own, folder, e);
    job_close(&own);
    opts_finish(&o);
    return code;
}
