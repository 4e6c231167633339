/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Templates rendered, for tests/interop/jinja.py. A line of standard input is
 *
 *     {"template": "...", "variables": {...}, "literals": {"bos_token": "..."}}
 *
 * where "template" is left out if it is the one before, and a line of standard output
 * {"text": "...", "runs": [[bytes, message, data, generated], ...]}, or {"error": "..."}. The
 * variable "messages" is the list of messages.
 *
 *     jinja_dump FILE SECONDS    renders the last line of FILE for so long and tells bytes a second
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "tok/jinja/jinja.h"

struct state {
    struct jinja *t;
    struct jinja_context *c;
    struct json_doc *doc;
    int broken; /* the code of the template that did not parse */
    struct err error;
};

static void set_variables(struct jinja_context *c, const struct json *root)
{
    const struct json *v = json_get(root, "variables"), *l = json_get(root, "literals");
    jinja_forget(c);
    for (size_t i = 0; v && i < v->length; i++) {
        if (!strcmp(v->child[i].key, "messages"))
            jinja_set_messages(c, v->child[i].key, &v->child[i]);
        else
            jinja_set_json(c, v->child[i].key, &v->child[i]);
    }
    for (size_t i = 0; l && i < l->length; i++)
        jinja_set_literal(c, l->child[i].key, l->child[i].string, l->child[i].length);
}

static int prepare(struct state *s, const char *line, size_t n, struct err *e)
{
    int code = json_again("a line", line, n, &s->doc, e);
    if (code)
        return code;
    const struct json *root = json_root(s->doc), *t = json_get(root, "template");
    if (t) {
        jinja_close(s->t);
        s->t = NULL;
        s->broken = jinja_parse("template", t->string, t->length, &s->t, &s->error);
    }
    *e = s->error;
    set_variables(s->c, root);
    return s->broken;
}

static void answer(struct state *s, const char *line, size_t n, struct buf *b)
{
    struct jinja_output o;
    struct err e;
    int code = prepare(s, line, n, &e);
    if (!code)
        code = jinja_render(s->t, s->c, &o, &e);
    buf_addc(b, '{');
    if (code) {
        jsonw_key(b, "error");
        jsonw_string(b, e.msg, strlen(e.msg));
    } else {
        jsonw_key(b, "text");
        jsonw_string(b, o.text, o.n);
        buf_adds(b, ",\"runs\":[");
        for (size_t i = 0; i < o.nruns; i++)
            buf_addf(b, "%s[%zu,%d,%d,%d]", i ? "," : "", o.run[i].n, o.run[i].message,
                     o.run[i].is_data, o.run[i].is_generated);
        buf_addc(b, ']');
    }
    buf_adds(b, "}\n");
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int measure(struct state *s, const char *path, double seconds)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, bytes = 0, texts = 0;
    struct jinja_output o = {0};
    struct err e = {0};
    ssize_t n = f ? getline(&line, &cap, f) : -1;
    if (n <= 0 || prepare(s, line, (size_t)n, &e)) {
        fprintf(stderr, "%s: %s\n", path, e.msg);
        return 1;
    }
    double from = now();
    while (now() - from < seconds)
        for (int i = 0; i < 100; i++, texts++) {
            if (jinja_render(s->t, s->c, &o, &e)) {
                fprintf(stderr, "%s\n", e.msg);
                return 1;
            }
            bytes += o.n;
        }
    double took = now() - from;
    printf("%zu bytes a text, %.2f us, %.1f MB/s\n", o.n, took / (double)texts * 1e6,
           (double)bytes / took / 1e6);
    free(line);
    return fclose(f);
}

int main(int argc, char **argv)
{
    struct state s = {.c = jinja_context_create()};
    struct buf b = {0};
    char *line = NULL;
    size_t cap = 0;
    int code = 0;
    jinja_set_date(s.c, (struct jinja_date){2026, 2, 3, 4, 5, 6});
    if (argc == 3)
        code = measure(&s, argv[1], atof(argv[2]));
    for (ssize_t n; argc == 1 && (n = getline(&line, &cap, stdin)) > 0;) {
        buf_reset(&b);
        answer(&s, line, (size_t)(n - (line[n - 1] == '\n')), &b);
        fwrite(b.data, 1, b.len, stdout);
        fflush(stdout);
    }
    free(line);
    buf_finish(&b);
    jinja_close(s.t);
    jinja_context_destroy(s.c);
    json_close(s.doc);
    return code;
}
