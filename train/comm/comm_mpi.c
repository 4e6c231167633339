/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "train/comm/comm_wire.h"

enum { FAULT_TAG = 1 };

struct mpi_wire {
    int rank, world;
    MPI_Comm data, control;
    MPI_Request fault_in;
    struct wire_fault heard, told, own; /* what is received, what is sent, and an error of MPI */
};

struct comm_mpi {
    struct comm_wire *wire;
    struct mpi_wire mpi;
};

_Static_assert(sizeof(MPI_Request) <= sizeof(struct wire_request), "a request of MPI fits");

static MPI_Request load_request(const struct wire_request *r)
{
    MPI_Request q;
    memcpy(&q, r, sizeof(q));
    return q;
}

static void store_request(struct wire_request *r, MPI_Request q)
{
    memcpy(r, &q, sizeof(q));
}

static void mpi_check(struct mpi_wire *m, int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    if (error == MPI_SUCCESS || m->own.code)
        return;
    MPI_Error_string(error, text, &n);
    m->own.code = ERR_FAULT;
    snprintf(m->own.text, sizeof(m->own.text), "rank %d: MPI: %.200s", m->rank, text);
}

static int mpi_begin(void *wire, int *ret_rank, int *ret_world, struct err *e)
{
    struct mpi_wire *m = wire;
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return err_set(e, ERR_FAULT, "MPI could not be initialized");
    MPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->world);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->data);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->control);
    MPI_Comm_set_errhandler(m->data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->control, MPI_ERRORS_RETURN);
    MPI_Irecv(&m->heard, sizeof(m->heard), MPI_BYTE, MPI_ANY_SOURCE, FAULT_TAG, m->control,
              &m->fault_in);
    *ret_rank = m->rank;
    *ret_world = m->world;
    return 0;
}

static void mpi_end(void *wire, bool together)
{
    struct mpi_wire *m = wire;
    for (int i = 0; !together && i < 20; i++) { /* what tells of a fault leaves */
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, FAULT_TAG, m->control, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (!together)
        return;
    MPI_Cancel(&m->fault_in);
    MPI_Wait(&m->fault_in, MPI_STATUS_IGNORE);
    MPI_Comm_free(&m->data);
    MPI_Comm_free(&m->control);
    MPI_Finalize();
}

static void mpi_send(void *wire, int rank, int tag, void *at, int64_t bytes,
                     struct wire_request *ret)
{
    struct mpi_wire *m = wire;
    MPI_Request q = MPI_REQUEST_NULL;
    mpi_check(m, MPI_Isend(at, (int)bytes, MPI_BYTE, rank, tag, m->data, &q));
    store_request(ret, q);
}

static void mpi_receive(void *wire, int rank, int tag, void *at, int64_t bytes,
                        struct wire_request *ret)
{
    struct mpi_wire *m = wire;
    MPI_Request q = MPI_REQUEST_NULL;
    mpi_check(m, MPI_Irecv(at, (int)bytes, MPI_BYTE, rank, tag, m->data, &q));
    store_request(ret, q);
}

static bool mpi_done(void *wire, struct wire_request *r, int n)
{
    int done = 1;
    for (int i = 0; i < n && done; i++) {
        MPI_Request q = load_request(&r[i]);
        mpi_check(wire, MPI_Test(&q, &done, MPI_STATUS_IGNORE));
        store_request(&r[i], q);
    }
    return done;
}

static void mpi_cancel(void *wire, struct wire_request *r, int n)
{
    (void)wire;
    for (int i = 0; i < n; i++) {
        MPI_Request q = load_request(&r[i]);
        if (q == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&q);
        MPI_Request_free(&q);
    }
}

static void mpi_tell(void *wire, const struct wire_fault *f)
{
    struct mpi_wire *m = wire;
    m->told = *f;
    for (int k = 0; k < m->world; k++) {
        MPI_Request q;
        if (k == m->rank)
            continue;
        MPI_Isend(&m->told, sizeof(m->told), MPI_BYTE, k, FAULT_TAG, m->control, &q);
        MPI_Request_free(&q); /* a few hundred bytes leave at once */
    }
}

static bool mpi_heard(void *wire, struct wire_fault *ret)
{
    struct mpi_wire *m = wire;
    int flag = 0;
    if (!m->own.code)
        MPI_Test(&m->fault_in, &flag, MPI_STATUS_IGNORE);
    *ret = flag ? m->heard : m->own;
    ret->heard = flag;
    return flag || m->own.code;
}

int comm_mpi_join(struct comm_mpi **ret, const struct comm_options *o, struct err *e)
{
    static const struct wire_table table = {
        .begin = mpi_begin,
        .end = mpi_end,
        .send = mpi_send,
        .receive = mpi_receive,
        .done = mpi_done,
        .cancel = mpi_cancel,
        .tell = mpi_tell,
        .heard = mpi_heard,
    };
    struct comm_mpi *job = mem_new(1, sizeof(*job));
    int code = comm_wire_join(&job->wire, &table, &job->mpi, o, e);
    if (code)
        free(job);
    else
        *ret = job;
    return code;
}

int comm_mpi_rank(const struct comm_mpi *job)
{
    return job->mpi.rank;
}

int comm_mpi_world(const struct comm_mpi *job)
{
    return job->mpi.world;
}

void comm_mpi_leave(struct comm_mpi *job)
{
    comm_wire_leave(job->wire);
    free(job);
}

int comm_mpi_open(struct comm *ret, struct comm_mpi *job, struct mesh m, struct err *e)
{
    return comm_wire_open(ret, job->wire, m, e);
}
