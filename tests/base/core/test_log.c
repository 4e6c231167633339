/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/path.h"
#include "tests/t.h"

/* Standard error goes to a file from here to caught(). */
static int catch_stderr(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600), saved = dup(STDERR_FILENO);
    T_CHECK(fd >= 0 && saved >= 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return saved;
}

static void caught(int saved, const char *path, struct buf *ret)
{
    struct err e;
    dup2(saved, STDERR_FILENO);
    close(saved);
    T_OK(file_read(path, 1 << 20, ret, &e), &e);
}

static void levels(void)
{
    static const char *const want[] = {
        "error: e\n",
        "error: e\nwarning: w\n",
        "error: e\nwarning: w\ni\n",
        "error: e\nwarning: w\ni\ndebug: d\n",
    };
    T_EQ(log_get_level(), LOG_INFO);
    for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) {
        struct buf said = {0};
        int saved = catch_stderr(t_path("stderr"));
        log_set_level((enum log_level)level);
        log_line(LOG_ERROR, "%s", "e");
        log_warn("%s", "w");
        log_info("%s", "i");
        log_debug("%s", "d");
        caught(saved, t_path("stderr"), &said);
        T_EQ(log_get_level(), level);
        T_STR(said.data, want[level]);
        buf_finish(&said);
    }
    log_set_level(LOG_INFO);
}

static void errors_and_hints(void)
{
    struct err e;
    struct buf said = {0};
    int saved = catch_stderr(t_path("stderr"));
    err_set(&e, ERR_DATA, "100%% of %s", "it");
    int first = log_err(&e);
    err_hint(&e, "do this");
    log_set_level(LOG_ERROR);
    int second = log_err(&e);
    log_set_level(LOG_INFO);
    caught(saved, t_path("stderr"), &said);
    T_EQ(first, ERR_DATA);
    T_EQ(second, ERR_DATA);
    T_STR(said.data, "error: 100% of it\nerror: 100% of it\nhint: do this\n");
    buf_finish(&said);
}

static void long_lines_are_cut(void)
{
    char big[5000];
    struct buf said = {0};
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    int saved = catch_stderr(t_path("stderr"));
    log_info("%s", big);
    log_info("next");
    caught(saved, t_path("stderr"), &said);
    char *newline = strchr(said.data, '\n');
    T_CHECK(newline && newline - said.data > 2000 && newline - said.data < 2048);
    T_STR(newline + 1, "next\n");
    buf_finish(&said);
}

static void *talk(void *arg)
{
    int rank = (int)(intptr_t)arg;
    log_set_rank(rank);
    for (int i = 0; i < 300; i++)
        log_info("line %d of %d %0200d", i, rank, 0);
    return NULL;
}

/* Lines of four ranks that are threads: each whole, each with its own tag, in order per rank. */
static void ranks_do_not_mix(void)
{
    pthread_t id[4];
    struct buf said = {0};
    int next[4] = {0}, saved = catch_stderr(t_path("stderr")), n = 0;
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&id[i], NULL, talk, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(id[i], NULL);
    log_info("untagged");
    caught(saved, t_path("stderr"), &said);
    for (char *line = strtok(said.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        int rank, i, again, zeros;
        if (n == 1200) {
            T_STR(line, "untagged");
            continue;
        }
        T_EQ(sscanf(line, "[rank %d] line %d of %d %d", &rank, &i, &again, &zeros), 4);
        T_CHECK(rank >= 0 && rank < 4 && rank == again);
        T_EQ(i, next[rank]);
        next[rank]++;
        T_CHECK(strlen(line) >= 200 && strlen(line) < 240);
    }
    T_EQ(n, 1201);
    buf_finish(&said);
}

T_MAIN(T_CASE(levels), T_CASE(errors_and_hints), T_CASE(long_lines_are_cut),
       T_CASE(ranks_do_not_mix))
