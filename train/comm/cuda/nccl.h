/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_CUDA_NCCL_H
#define TRAIN_COMM_CUDA_NCCL_H

/*
 * NCCL, opened at run time. Its binary interface has been the same since 2.7: the functions here,
 * with the numbers below for their enums and a 128-byte id by value (nccl.h of NCCL).
 */

#include "train/tensor/cuda/library.h"
#include "train/tensor/tensor.h"

enum { NCCL_SUM = 0, NCCL_MAX = 2 };
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

struct nccl_id {
    int32_t word[32];
};

/* Results are NCCL_*; `comm` is an ncclComm_t, `stream` a cudaStream_t; counts are elements. */
struct nccl_api {
    int (*get_id)(struct nccl_id *ret);
    int (*init)(void **ret, int ranks, struct nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *ret);
    const char *(*error)(int result);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm,
                      void *stream);
    int (*all_gather)(const void *from, void *to, size_t n, int type, void *comm, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t n, int type, int op, void *comm,
                          void *stream);
    int (*broadcast)(const void *from, void *to, size_t n, int type, int root, void *comm,
                     void *stream);
    int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);
    int (*receive)(void *to, size_t n, int type, int peer, void *comm, void *stream);
};

/* library_path: see library.h. ERR_RESOURCE: NCCL is missing or lacks a function. */
int nccl_open(struct library *lib, struct nccl_api *ret, const char *library_path, struct err *e);

/* NCCL's number of a dtype. */
int nccl_type(enum dtype d);

#endif
