/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/token.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/file.h"
#include "tests/t.h"

#define FIND(t, wish, ...) token_find(&(t), &p, (char *const[]){__VA_ARGS__, NULL}, &(wish), &e)

static const struct token_wish nothing, without = {.none = true};

static bool same(const struct job_token *a, const struct job_token *b)
{
    return !memcmp(a->key, b->key, sizeof(a->key)) && !memcmp(a->job, b->job, sizeof(a->job));
}

static void given_by_the_environment(void)
{
    struct launch_place p = {.by = LAUNCH_SLURM, .world = 2};
    struct job_token a, b, c;
    struct err e;
    T_OK(FIND(a, nothing, "WEFT_JOB_TOKEN=0123456789abcdef", "SLURM_JOB_ID=7"), &e);
    T_EQ(a.kind, TOKEN_GIVEN);
    T_STR(a.source, "WEFT_JOB_TOKEN");
    T_OK(FIND(b, without, "WEFT_JOB_TOKEN=0123456789abcdef", "SLURM_JOB_ID=8"), &e);
    T_CHECK(same(&a, &b)); /* several Slurm jobs may be one of ours */
    T_OK(FIND(c, nothing, "WEFT_JOB_TOKEN=0123456789abcdeg"), &e);
    T_CHECK(memcmp(a.key, c.key, sizeof(a.key)) && memcmp(a.job, c.job, sizeof(a.job)));
    T_CHECK(memcmp(a.key, a.job, sizeof(a.job)) != 0); /* what is public tells nothing */
    T_ERR(FIND(c, without, "WEFT_JOB_TOKEN=0123456789abcde"), &e, ERR_USAGE,
          "WEFT_JOB_TOKEN has a job token of 15 bytes: expected 16 to 1024");
}

static void given_by_a_file(void)
{
    struct launch_place p = {.by = LAUNCH_TORCHRUN, .world = 2};
    const char *path = t_path("token");
    const struct token_wish wish = {.file = path};
    struct job_token a, b;
    struct err e;
    char text[TOKEN_MOST + 3];
    T_OK(file_replace(path, "0123456789abcdef\r\n", 18, &e), &e);
    chmod(path, 0600);
    T_OK(FIND(a, wish, "WEFT_JOB_TOKEN=another-token-than-that"), &e);
    T_CHECK(strstr(a.source, "the file ") && strstr(a.source, "/token"));
    T_OK(FIND(b, nothing, "WEFT_JOB_TOKEN=0123456789abcdef"), &e);
    T_CHECK(same(&a, &b));
    chmod(path, 0604);
    T_ERR(FIND(a, wish, "A=b"), &e, ERR_USAGE, "others may read it (mode 0604), expected 0600");
    chmod(path, 0400);
    T_OK(FIND(a, wish, "A=b"), &e);
    chmod(path, 0600);
    memset(text, 'x', sizeof(text));
    T_OK(file_replace(path, text, TOKEN_MOST, &e), &e);
    chmod(path, 0600);
    T_OK(FIND(a, wish, "A=b"), &e);
    T_OK(file_replace(path, text, TOKEN_MOST + 3, &e), &e);
    chmod(path, 0600);
    T_ERR(FIND(a, wish, "A=b"), &e, ERR_USAGE, "expected 16 to 1024");
    const struct token_wish folder = {.file = t_dir()}, none = {.file = t_path("missing")};
    T_ERR(FIND(a, folder, "A=b"), &e, ERR_USAGE, "expected a regular file");
    T_ERR(FIND(a, none, "A=b"), &e, ERR_IO, "missing: cannot read the job token");
}

static void made_by_the_launcher(void)
{
    struct launch_place p = {.by = LAUNCH_TORCHRUN, .world = 2, .spawned = true};
    struct job_token t, u;
    struct err e;
    char made[TOKEN_TEXT], other[TOKEN_TEXT], text[128];
    token_make(made);
    token_make(other);
    T_EQ(strlen(made), 64);
    T_EQ(strspn(made, "0123456789abcdef"), 64);
    T_CHECK(strcmp(made, other) != 0);
    snprintf(text, sizeof(text), "WEFT_MADE_TOKEN=%s", made);
    T_OK(FIND(t, nothing, text), &e);
    T_EQ(t.kind, TOKEN_MADE);
    token_of_text(&u, made);
    T_CHECK(same(&t, &u));
    p.spawned = false; /* of somebody else's environment */
    T_ERR(FIND(t, nothing, text), &e, ERR_USAGE, "have no token");
}

static void derived_from_the_job(void)
{
    static const struct {
        enum launch_by by;
        const char *variable[2], *source;
    } row[] = {
        {LAUNCH_OPEN_MPI, {"PMIX_NAMESPACE=29491201", "A=b"}, "Open MPI's job id 29491201"},
        {LAUNCH_OPEN_MPI, {"OMPI_MCA_ess_base_jobid=12", "A=b"}, "Open MPI's job id 12"},
        {LAUNCH_SLURM, {"SLURM_JOB_ID=123", "SLURM_STEP_ID=4"}, "Slurm's job id 123.4"},
        {LAUNCH_SLURM, {"SLURM_JOB_ID=123", "A=b"}, "Slurm's job id 123"},
        {LAUNCH_TORCHRUN, {"TORCHELASTIC_RUN_ID=a\033b", "A=b"}, "torchrun's run id a\\x1bb"},
        {LAUNCH_TORCHRUN, {"TORCHELASTIC_RUN_ID=none", "SLURM_JOB_ID=1"}, NULL},
        {LAUNCH_TORCHRUN, {"SLURM_JOB_ID=1", "PMIX_NAMESPACE=2"}, NULL},
        {LAUNCH_ALONE, {"SLURM_JOB_ID=1", "A=b"}, NULL},
    };
    struct job_token t[sizeof(row) / sizeof(row[0])];
    struct err e;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct launch_place p = {.by = row[i].by, .world = 2};
        char *v[] = {(char *)row[i].variable[0], (char *)row[i].variable[1]};
        if (!row[i].source) {
            T_ERR(FIND(t[i], nothing, v[0], v[1]), &e, ERR_USAGE, "the processes of this job have");
            T_CHECK(strstr(e.hint, "export WEFT_JOB_TOKEN=$("));
            T_OK(FIND(t[i], without, v[0], v[1]), &e);
            T_EQ(t[i].kind, TOKEN_NONE);
            continue;
        }
        T_OK(FIND(t[i], without, v[0], v[1]), &e);
        T_EQ(t[i].kind, TOKEN_DERIVED);
        T_STR(t[i].source, row[i].source);
        for (size_t k = 0; k < i; k++)
            T_CHECK(!same(&t[i], &t[k]));
    }
}

T_MAIN(T_CASE(given_by_the_environment), T_CASE(given_by_a_file), T_CASE(made_by_the_launcher),
       T_CASE(derived_from_the_job))
