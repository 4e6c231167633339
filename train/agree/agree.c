/* SPDX-License-Identifier: Apache-2.0 */
#include "train/agree/agree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "train/engine/all_ranks.h"

/* ---- settings ---------------------------------------------------------------------------- */

void agree_add(struct buf *list, const char *name, const char *value)
{
    const char *text = value ? value : "unset";
    buf_add(list, name, strlen(name) + 1);
    buf_add(list, text, strlen(text) + 1);
}

void agree_addf(struct buf *list, const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    BUG_ON(n < 0, "no text of setting %s", name);
    agree_add(list, name, text);
    free(text);
}

/* A rank's list, or what is left of it. */
struct settings {
    const char *at, *end;
};

/* The next text; NULL behind the last. */
static const char *next_text(struct settings *s)
{
    const char *text = s->at;
    const char *end = text < s->end ? memchr(text, 0, (size_t)(s->end - text)) : NULL;
    s->at = end ? end + 1 : s->end;
    return end ? text : NULL;
}

/* False behind the last setting. */
static bool next_setting(struct settings *s, const char **ret_name, const char **ret_value)
{
    *ret_name = next_text(s);
    *ret_value = next_text(s);
    return *ret_name && *ret_value;
}

/* NULL: the list lacks it. */
static const char *setting_value(struct settings s, const char *name)
{
    const char *other, *value;
    while (next_setting(&s, &other, &value))
        if (!strcmp(name, other))
            return value;
    return NULL;
}

/* One setting as all ranks have it. */
struct setting {
    const char *name;
    const char **value;
};

/* The first rank whose value is not rank 0's; 0: there is none. */
static int first_other(const char *const *value, int ranks)
{
    for (int k = 1; k < ranks; k++)
        if (strcmp(value[k], value[0]) != 0)
            return k;
    return 0;
}

/* ---- sentences --------------------------------------------------------------------------- */

enum { VALUE_MOST = 100, VALUE_BEFORE = 20, RUNS_MOST = 8 };

/* Of a long value what surrounds the first byte in which it differs from `other`; control
 * characters as question marks. */
static void add_shown(struct buf *b, const char *value, const char *other)
{
    size_t n = strlen(value), from = 0;
    while (value[from] && value[from] == other[from])
        from++;
    from = n <= VALUE_MOST || from < VALUE_BEFORE ? 0 : from - VALUE_BEFORE;
    size_t most = n - from < VALUE_MOST ? n - from : VALUE_MOST;
    buf_adds(b, from ? "..." : "");
    for (size_t i = 0; i < most; i++) {
        unsigned char c = (unsigned char)value[from + i];
        buf_addc(b, c < ' ' || c == 0x7f ? '?' : (char)c);
    }
    buf_adds(b, from + most < n ? "..." : n ? "" : "empty");
}

/* Ranks as "rank 3" or "ranks 0-3, 6". */
struct ranks_text {
    struct buf text;
    int runs, ranks;
};

static void add_run(struct ranks_text *t, int from, int to)
{
    t->ranks += to - from + 1;
    if (t->runs++ >= RUNS_MOST) {
        if (t->runs == RUNS_MOST + 1)
            buf_adds(&t->text, ", ...");
        return;
    }
    buf_addf(&t->text, "%s%d", t->runs > 1 ? ", " : "", from);
    if (to > from)
        buf_addf(&t->text, "-%d", to);
}

static void end_ranks(struct ranks_text *t, struct buf *b)
{
    buf_addf(b, "rank%s %s", t->ranks > 1 ? "s" : "", buf_str(&t->text));
    buf_finish(&t->text);
}

/* Those that have the value of rank `like`. */
static void add_ranks(struct buf *b, const struct setting *s, int ranks, int like)
{
    struct ranks_text t = {0};
    for (int k = 0, from; k < ranks; k++) {
        from = k;
        while (k < ranks && !strcmp(s->value[k], s->value[like]))
            k++;
        if (k > from)
            add_run(&t, from, k - 1);
    }
    end_ranks(&t, b);
}

static void tell_setting(struct buf *b, const struct setting *s, int ranks, int other)
{
    buf_addf(b, "%s is ", s->name);
    add_shown(b, s->value[0], s->value[other]);
    buf_adds(b, " on ");
    add_ranks(b, s, ranks, 0);
    buf_adds(b, " and ");
    add_shown(b, s->value[other], s->value[0]);
    buf_adds(b, " on ");
    add_ranks(b, s, ranks, other);
}

/* What is told of all settings: the first that differs, and how many more. */
struct difference {
    struct buf text;
    int more;
};

static void look_at(struct difference *d, const struct settings *list, struct setting *s, int ranks)
{
    for (int k = 0; k < ranks; k++) {
        const char *value = setting_value(list[k], s->name);
        s->value[k] = value ? value : "unset";
    }
    int other = first_other(s->value, ranks);
    if (other && d->text.len)
        d->more++;
    else if (other)
        tell_setting(&d->text, s, ranks, other);
}

static bool same_settings(struct settings a, struct settings b)
{
    return a.end - a.at == b.end - b.at && !memcmp(a.at, b.at, (size_t)(a.end - a.at));
}

/* Those of rank 0 in their order, then those that it lacks and the first other rank has. */
static void compare_lists(struct difference *d, const struct settings *list, int ranks)
{
    struct setting s = {.value = mem_new((size_t)ranks, sizeof(*s.value))};
    struct settings at = list[0];
    const char *ignored;
    int other = 1;
    while (next_setting(&at, &s.name, &ignored))
        look_at(d, list, &s, ranks);
    while (other + 1 < ranks && same_settings(list[other], list[0]))
        other++;
    at = list[other];
    while (next_setting(&at, &s.name, &ignored))
        if (!setting_value(list[0], s.name))
            look_at(d, list, &s, ranks);
    free(s.value);
}

/* `all`: the lists of all ranks, one after the other. */
static int tell_difference(const struct buf *all, const size_t *size, int ranks, struct err *e)
{
    struct settings *list = mem_new((size_t)ranks, sizeof(*list));
    struct difference d = {0};
    const char *from = all->data;
    for (int k = 0; k < ranks; from += size[k], k++)
        list[k] = (struct settings){from, from + size[k]};
    compare_lists(&d, list, ranks);
    if (!d.text.len)
        buf_adds(&d.text, "the ranks have the same settings in another order: they run other "
                          "programs");
    if (d.more)
        buf_addf(&d.text, "; %d other setting%s too", d.more,
                 d.more > 1 ? "s differ," : " differs,");
    err_set(e, ERR_USAGE, "%s", buf_str(&d.text));
    buf_finish(&d.text);
    free(list);
    return err_hint(e, "all processes of a job train with the same settings: give each machine the "
                       "same command");
}

int agree_compare(struct comm *c, const struct buf *list, struct err *e)
{
    size_t ranks = (size_t)c->world, *size = mem_new(ranks, sizeof(*size));
    char own[SHA_TEXT];
    struct buf all = {0};
    bool same = true;
    sha_once(list->data, list->len, own);
    int code = all_ranks_gather(c, own, SHA_TEXT, &all, size, e);
    for (size_t k = 0; !code && k < ranks; k++)
        same = same && size[k] == SHA_TEXT && !memcmp(all.data + k * SHA_TEXT, own, SHA_TEXT);
    buf_reset(&all);
    /* ranks of one half may be alike: whether there is a difference is the same for all */
    int32_t differs = !code && all_ranks_max(c, !same);
    if (!code && differs)
        code = all_ranks_gather(c, list->data, list->len, &all, size, e);
    if (!code && differs)
        code = tell_difference(&all, size, c->world, e);
    buf_finish(&all);
    free(size);
    return code;
}

/* ---- ranks and machines ------------------------------------------------------------------ */

int agree_hosts(struct comm *c, const char *own, struct agree_host *host, struct err *e)
{
    size_t ranks = (size_t)c->world, *size = mem_new(ranks, sizeof(*size));
    struct agree_host mine = {0};
    struct buf all = {0};
    snprintf(mine.name, sizeof(mine.name), "%s", own);
    int code = all_ranks_gather(c, &mine, sizeof(mine), &all, size, e);
    for (size_t k = 0, at = 0; !code && k < ranks; at += size[k++])
        if (size[k] == sizeof(mine))
            snprintf(host[k].name, sizeof(host[k].name), "%.*s", AGREE_HOST - 1, all.data + at);
    for (size_t k = 0; !code && k < ranks; k++)
        for (char *s = host[k].name; *s; s++)
            *s = *s <= ' ' || *s == 0x7f ? '?' : *s;
    buf_finish(&all);
    free(size);
    return code;
}

static int first_of_host(const struct agree_host *host, int rank)
{
    int k = 0;
    while (strcmp(host[k].name, host[rank].name) != 0)
        k++;
    return k;
}

bool agree_is_first_of_host(const struct agree_host *host, int rank)
{
    return first_of_host(host, rank) == rank;
}

/* The axes of a mesh. */
struct axis {
    const char *name, *column;
    int degree;
};

enum { EXPERTS = 4, AXES = 7 }; /* those of experts are the last */

static void mesh_axes(struct mesh m, struct axis ret[AXES])
{
    bool spread = mesh_spreads_experts(m);
    const struct axis all[AXES] = {{"tensor-parallel", "tp", m.tp},
                                   {"context-parallel", "cp", m.cp},
                                   {"data-parallel", "dp", m.dp},
                                   {"pipeline", "pp", m.pp},
                                   {"expert-tensor-parallel", "etp", spread ? m.etp : 1},
                                   {"expert-parallel", "ep", spread ? m.ep : 1},
                                   {"expert-data-parallel", "edp", spread ? mesh_edp(m) : 1}};
    memcpy(ret, all, sizeof(all));
}

static void add_host(struct buf *b, const struct agree_host *host, int ranks, int first)
{
    struct ranks_text t = {0};
    for (int k = first, from; k < ranks; k++) {
        from = k;
        while (k < ranks && !strcmp(host[k].name, host[first].name))
            k++;
        if (k > from)
            add_run(&t, from, k - 1);
    }
    buf_addf(b, "%s: %s", host[first].name, buf_str(&t.text));
    buf_finish(&t.text);
}

void agree_describe(const struct agree_host *host, struct mesh m, struct buf *ret)
{
    enum { HOSTS_MOST = 8 };
    struct axis axis[AXES];
    struct buf list = {0};
    int ranks = mesh_world(m), hosts = 0, axes = 0;
    for (int k = 0; k < ranks; k++) {
        if (!agree_is_first_of_host(host, k))
            continue;
        if (++hosts <= HOSTS_MOST) {
            buf_adds(&list, hosts > 1 ? ", " : "");
            add_host(&list, host, ranks, k);
        }
    }
    buf_addf(ret, "%d processes on %d machine%s (%s%s)", ranks, hosts, hosts > 1 ? "s" : "",
             buf_str(&list), hosts > HOSTS_MOST ? ", ..." : "");
    mesh_axes(m, axis);
    for (int i = 0; i < AXES; i++) {
        if (i == EXPERTS)
            axes = axes ? -1 : 0;
        if (axis[i].degree > 1)
            buf_addf(ret, "%s%d %s",
                     axes < 0    ? "; experts "
                     : axes == 0 ? ": "
                                 : " x ",
                     axis[i].degree, axis[i].name);
        axes = axis[i].degree > 1 ? 1 : axes;
    }
    buf_finish(&list);
}

void agree_table(const struct agree_host *host, struct mesh m, struct buf *ret)
{
    struct axis axis[AXES];
    int ranks = mesh_world(m), width = (int)strlen("machine");
    mesh_axes(m, axis);
    for (int k = 0; k < ranks; k++)
        width = (int)strlen(host[k].name) > width ? (int)strlen(host[k].name) : width;
    buf_addf(ret, "rank  %-*s", width, "machine");
    for (int i = 0; i < AXES; i++)
        if (axis[i].degree > 1)
            buf_addf(ret, "  %4s", axis[i].column);
    buf_addc(ret, '\n');
    for (int k = 0; k < ranks; k++) {
        struct coord at = mesh_coord(m, k);
        const int place[AXES] = {at.tp, at.cp, at.dp, at.pp, at.etp, at.ep, at.edp};
        buf_addf(ret, "%4d  %-*s", k, width, host[k].name);
        for (int i = 0; i < AXES; i++)
            if (axis[i].degree > 1)
                buf_addf(ret, "  %4d", place[i]);
        buf_addc(ret, '\n');
    }
}
