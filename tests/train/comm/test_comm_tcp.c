/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "tests/t.h"

/* Rank 0 of two; the other is this test, which writes what it likes. */
struct job {
    struct comm_tcp *tcp;
    struct comm comm;
    int other;
};

enum { DATA, FAULT, LEAVE };

static void open_job(struct job *j, size_t early)
{
    int pair[2];
    struct err e;
    struct comm_options o = {.timeout = 30, .early = early};
    T_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    int fd[2] = {-1, pair[0]};
    j->other = pair[1];
    T_OK(comm_tcp_join(&j->tcp, 0, 2, fd, &o, &e), &e);
    T_OK(comm_tcp_open(&j->comm, j->tcp, mesh_dense(1, 1, 2, 1), &e), &e);
}

static void close_job(struct job *j)
{
    close(j->other);
    comm_close(&j->comm);
    comm_tcp_leave(j->tcp);
}

static void put(const struct job *j, const void *at, size_t n)
{
    T_EQ(send(j->other, at, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void put_frame(const struct job *j, int kind, int tag, int64_t bytes)
{
    uint8_t f[16];
    store_u32(f, (uint32_t)kind);
    store_u32(f + 4, (uint32_t)tag);
    store_u64(f + 8, (uint64_t)bytes);
    put(j, f, sizeof(f));
}

/* What rank 0 makes of it. */
static int hear(struct job *j, struct err *e)
{
    float x = 1;
    comm_wait(&j->comm,
              comm_all_reduce(&j->comm, GROUP_DP, tensor_1d(&x, DTYPE_F32, 1), REDUCE_SUM));
    return comm_fault(&j->comm, e);
}

static void codes_are_not_taken_from_the_wire(void)
{
    static const struct {
        int32_t told;
        int code;
    } row[] = {{51, ERR_FAULT},          {0, ERR_FAULT},       {-1, ERR_FAULT},
               {ERR_IO, ERR_IO},         {256, ERR_FAULT},     {ERR_RESTART, ERR_FAULT},
               {ERR_SIGTERM, ERR_FAULT}, {1 << 30, ERR_FAULT}, {ERR_ANOMALY, ERR_ANOMALY}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct job j;
        struct err e;
        struct wire_fault f = {.code = row[i].told, .text = "rank 1: a disk\033[31m is full\n"};
        open_job(&j, 0);
        put_frame(&j, FAULT, 0, sizeof(f));
        put(&j, &f, sizeof(f));
        T_ERR(hear(&j, &e), &e, row[i].code, "rank 1: a disk\\x1b[31m is full\\x0a");
        close_job(&j);
    }
}

static void a_step_comes_with_the_fault(void)
{
    static const struct {
        int64_t told, step;
    } row[] = {{5, 5}, {0, 0}, {-1, 0}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct job j;
        struct err e;
        struct wire_fault f = {.code = ERR_FAULT, .step = row[i].told, .text = "rank 1, step 5"};
        open_job(&j, 0);
        put_frame(&j, FAULT, 0, sizeof(f));
        put(&j, &f, sizeof(f));
        T_ERR(hear(&j, &e), &e, ERR_FAULT, "rank 1, step 5");
        T_EQ(e.step, row[i].step);
        T_EQ(e.finder, ERR_FOUND_ELSEWHERE);
        close_job(&j);
    }
}

static void a_text_without_an_end(void)
{
    struct job j;
    struct err e;
    struct wire_fault f = {.code = ERR_IO};
    memset(f.text, '\033', sizeof(f.text));
    open_job(&j, 0);
    put_frame(&j, FAULT, 0, sizeof(f));
    put(&j, &f, sizeof(f));
    T_EQ(hear(&j, &e), ERR_IO);
    T_EQ(strlen(e.msg), (WIRE_TEXT - 1) / 4 * 4); /* whole escapes */
    T_CHECK(!strchr(e.msg, '\033'));
    close_job(&j);
}

static void a_text_of_nothing(void)
{
    struct job j;
    struct err e;
    struct wire_fault f = {.code = ERR_IO};
    open_job(&j, 0);
    put_frame(&j, FAULT, 0, sizeof(f));
    put(&j, &f, sizeof(f));
    T_ERR(hear(&j, &e), &e, ERR_IO, "rank 1 failed and did not say why");
    close_job(&j);
}

struct told {
    int fd;
    uint8_t frame[16];
    struct wire_fault fault;
};

/* Closes its side when it has heard of a fault. */
static void *hear_fault(void *arg)
{
    struct told *t = arg;
    bool all = recv(t->fd, t->frame, sizeof(t->frame), MSG_WAITALL) == sizeof(t->frame) &&
               recv(t->fd, &t->fault, sizeof(t->fault), MSG_WAITALL) == sizeof(t->fault);
    shutdown(t->fd, SHUT_WR);
    return all ? t : NULL;
}

/* Of a rank that leaves right after its fault the other hears the sentence all the same. */
static void a_fault_is_told_before_the_end(void)
{
    for (int i = 0; i < 50; i++) {
        struct job j;
        pthread_t thread;
        void *all;
        open_job(&j, 0);
        struct told t = {.fd = j.other};
        T_EQ(pthread_create(&thread, NULL, hear_fault, &t), 0);
        comm_abort(&j.comm, &(struct err){.code = ERR_IO, .step = 7, .msg = "the disk is full"});
        comm_close(&j.comm);
        comm_tcp_leave(j.tcp);
        pthread_join(thread, &all);
        T_CHECK(all);
        T_EQ(load_u32(t.frame), FAULT);
        T_EQ(t.fault.code, ERR_IO);
        T_EQ(t.fault.step, 7);
        T_STR(t.fault.text, "the disk is full");
        close(j.other);
    }
}

static void sizes_that_nobody_has(void)
{
    static const struct {
        int kind, tag;
        int64_t bytes;
    } row[] = {{DATA, 0, 2147483647}, {DATA, 0, -1},      {DATA, 0, INT64_MIN}, {DATA, 0, 0},
               {DATA, -1, 8},         {DATA, 1 << 30, 8}, {FAULT, 0, 1 << 20},  {FAULT, 0, 4},
               {LEAVE, 0, 1},         {7, 0, 0},          {-1, 0, 8},           {DATA, 0, 1 << 29}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct job j;
        struct err e;
        char want[128];
        open_job(&j, 0);
        put_frame(&j, row[i].kind, row[i].tag, row[i].bytes);
        snprintf(want, sizeof(want), "rank 1 sent a message of %lld bytes that rank 0 cannot take",
                 (long long)row[i].bytes);
        T_ERR(hear(&j, &e), &e, ERR_FAULT, want);
        close_job(&j);
    }
}

/* Bytes that are taken of frames nobody asked for, until nothing is taken for a second. */
static size_t pour(const struct job *j, size_t least, size_t most)
{
    enum { BYTES = 65536 };
    static const char nothing[BYTES];
    size_t taken = 0;
    uint8_t f[16] = {0};
    store_u32(f + 4, 12345);
    store_u64(f + 8, BYTES);
    fcntl(j->other, F_SETFL, O_NONBLOCK);
    struct timespec pause = {.tv_nsec = 10000000};
    int idle = 0;
    for (size_t at = 0; taken < most && idle < (taken < least ? 6000 : 100);) {
        const void *from = at < sizeof(f) ? (const void *)(f + at) : nothing;
        size_t n = at < sizeof(f) ? sizeof(f) - at : BYTES + sizeof(f) - at;
        ssize_t k = send(j->other, from, n, MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN)
            break;
        idle = k < 0 ? idle + 1 : 0;
        if (k < 0)
            nanosleep(&pause, NULL);
        else
            at = (at + (size_t)k) % (BYTES + sizeof(f));
        taken += k < 0 ? 0 : (size_t)k;
    }
    return taken;
}

static void unasked_messages_wait(void)
{
    struct job j;
    open_job(&j, 1 << 20);
    size_t taken = pour(&j, 1 << 20, 600 << 20);
    T_CHECK(taken >= 1 << 20); /* and what the socket holds by itself */
    T_CHECK(taken < 4 << 20);
    close_job(&j);
}

static void *pour_on(void *job)
{
    pour(job, 0, 600 << 20);
    return NULL;
}

/* While something else is wanted of the same rank its messages cannot wait. */
static void too_many_are_a_fault(void)
{
    struct job j;
    struct err e;
    pthread_t thread;
    open_job(&j, 1 << 16);
    T_EQ(pthread_create(&thread, NULL, pour_on, &j), 0);
    T_ERR(hear(&j, &e), &e, ERR_FAULT, "too many came that it has not asked for");
    pthread_join(thread, NULL);
    close_job(&j);
}

T_MAIN(T_CASE(codes_are_not_taken_from_the_wire), T_CASE(a_step_comes_with_the_fault),
       T_CASE(a_text_without_an_end), T_CASE(a_text_of_nothing),
       T_CASE(a_fault_is_told_before_the_end), T_CASE(sizes_that_nobody_has),
       T_CASE(unasked_messages_wait), T_CASE(too_many_are_a_fault))
