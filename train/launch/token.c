/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/utf8.h"

#define SET_ONE "export WEFT_JOB_TOKEN=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \\n')"

static void derive_key(struct job_token *t, const char *secret, size_t n)
{
    uint8_t job[SHA_BYTES];
    hmac_once(secret, n, "weft key", 8, t->key);
    hmac_once(secret, n, "weft job", 8, job);
    memcpy(t->job, job, sizeof(t->job));
}

void token_of_text(struct job_token *ret, const char *text)
{
    *ret = (struct job_token){.kind = TOKEN_GIVEN};
    derive_key(ret, text, strlen(text));
}

void token_make(char ret[TOKEN_TEXT])
{
    uint8_t random[(TOKEN_TEXT - 1) / 2];
    ssize_t n = getrandom(random, sizeof(random), 0);
    BUG_ON(n != (ssize_t)sizeof(random), "the system gave %zd random bytes", n);
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(ret + 2 * i, 3, "%02x", random[i]);
}

/* ---- given ------------------------------------------------------------------------------------
 */

static int take_given(struct job_token *t, const char *text, size_t n, struct err *e)
{
    if (n < TOKEN_LEAST || n > TOKEN_MOST) {
        err_set(e, ERR_USAGE, "%s has a job token of %zu bytes: expected %d to %d", t->source, n,
                TOKEN_LEAST, TOKEN_MOST);
        return err_hint(e, "make one: " SET_ONE);
    }
    t->kind = TOKEN_GIVEN;
    derive_key(t, text, n);
    return 0;
}

/* Of an open file. */
static int check_token_file(int fd, const char *path, struct err *e)
{
    struct stat s;
    if (fstat(fd, &s))
        return err_sys(e, errno, "%s: cannot read the job token", path);
    if (!S_ISREG(s.st_mode))
        return err_set(e, ERR_USAGE, "--job-token-file %s: expected a regular file", path);
    if (s.st_uid != geteuid() && s.st_uid != 0)
        return err_set(e, ERR_USAGE,
                       "--job-token-file %s belongs to user %u: expected a file of the user who "
                       "starts the job",
                       path, s.st_uid);
    if (s.st_mode & 077) {
        err_set(e, ERR_USAGE, "--job-token-file %s: others may read it (mode %04o), expected 0600",
                path, s.st_mode & 07777);
        return err_hint(e, "chmod 600 %s", path);
    }
    return 0;
}

static int read_token_file(struct job_token *t, const char *path, struct err *e)
{
    char text[TOKEN_MOST + 2];
    size_t n = 0;
    char plain[256];
    utf8_plain(path, strlen(path), plain, sizeof(plain));
    snprintf(t->source, sizeof(t->source), "the file %s", plain);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a fifo nobody may ever write to */
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot read the job token", path);
    int code = check_token_file(fd, path, e);
    while (!code && n < sizeof(text)) {
        ssize_t k = read(fd, text + n, sizeof(text) - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            code = err_sys(e, errno, "%s: cannot read the job token", path);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    close(fd);
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    return code ? code : take_given(t, text, n, e);
}

bool token_is_given(char *const *environment, const struct token_wish *wish)
{
    return wish->file || launch_variable(environment, "WEFT_JOB_TOKEN");
}

/* ---- derived ----------------------------------------------------------------------------------
 */

/* What the launcher calls the job, the same in all of its processes; "": it does not say. */
static void name_of_job(const struct launch_place *p, char *const *environment, char *ret,
                        size_t size)
{
    const char *id = NULL, *step = NULL;
    if (p->by == LAUNCH_OPEN_MPI) {
        id = launch_variable(environment, "PMIX_NAMESPACE");
        id = id ? id : launch_variable(environment, "OMPI_MCA_ess_base_jobid");
    } else if (p->by == LAUNCH_SLURM) {
        id = launch_variable(environment, "SLURM_JOB_ID");
        step = launch_variable(environment, "SLURM_STEP_ID");
    } else if (p->by == LAUNCH_TORCHRUN) {
        /* not the id of a Slurm job around it: processes of several such jobs may be one of ours */
        id = launch_variable(environment, "TORCHELASTIC_RUN_ID");
        id = id && strcmp(id, "none") != 0 ? id : NULL;
    }
    snprintf(ret, size, "%s%s%s", id ? id : "", id && step ? "." : "", id && step ? step : "");
}

static int tell_none(const struct launch_place *p, struct err *e)
{
    char why[64] = "";
    if (p->by != LAUNCH_ALONE)
        snprintf(why, sizeof(why), ", and %s names no job to derive it from",
                 launch_by_name(p->by));
    err_set(e, ERR_USAGE,
            "the processes of this job have no token by which they tell each other from "
            "strangers%s%s",
            why, p->by == LAUNCH_TORCHRUN ? " (its --rdzv-id is not set)" : "");
    return err_hint(e, "set it, on every machine to the same value: " SET_ONE
                       "; --job-token-file names a file instead, --no-job-token does without");
}

int token_find(struct job_token *ret, const struct launch_place *p, char *const *environment,
               const struct token_wish *wish, struct err *e)
{
    const char *given = launch_variable(environment, "WEFT_JOB_TOKEN");
    const char *made = p->spawned ? launch_variable(environment, TOKEN_MADE_VARIABLE) : NULL;
    char name[256];
    *ret = (struct job_token){.kind = TOKEN_NONE};
    if (wish->file)
        return read_token_file(ret, wish->file, e);
    if (given) {
        snprintf(ret->source, sizeof(ret->source), "WEFT_JOB_TOKEN");
        return take_given(ret, given, strlen(given), e);
    }
    if (made) {
        token_of_text(ret, made);
        ret->kind = TOKEN_MADE;
        return 0;
    }
    name_of_job(p, environment, name, sizeof(name));
    if (name[0]) {
        char plain[200], secret[320];
        utf8_plain(name, strlen(name), plain, sizeof(plain));
        snprintf(ret->source, sizeof(ret->source), "%s's %s id %s", launch_by_name(p->by),
                 p->by == LAUNCH_TORCHRUN ? "run" : "job", plain);
        int n = snprintf(secret, sizeof(secret), "derived: %s %s", launch_by_name(p->by), name);
        derive_key(ret, secret, (size_t)n);
        ret->kind = TOKEN_DERIVED;
        return 0;
    }
    derive_key(ret, "", 0);
    return wish->none ? 0 : tell_none(p, e);
}
