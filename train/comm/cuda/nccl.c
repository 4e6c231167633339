/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/cuda/nccl.h"

#include <stdlib.h>

int nccl_open(struct library *lib, struct nccl_api *ret, const char *library_path, struct err *e)
{
    static const char *const files[] = {"libnccl.so.2", NULL};
    static const char *const names[] = {"ncclGetUniqueId",
                                        "ncclCommInitRank",
                                        "ncclCommDestroy",
                                        "ncclCommAbort",
                                        "ncclCommGetAsyncError",
                                        "ncclGetErrorString",
                                        "ncclGroupStart",
                                        "ncclGroupEnd",
                                        "ncclAllReduce",
                                        "ncclAllGather",
                                        "ncclReduceScatter",
                                        "ncclBroadcast",
                                        "ncclSend",
                                        "ncclRecv"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    _Static_assert(sizeof(*ret) == NAMES * sizeof(void *), "a name for each function");
    /* connections are made when a communicator is, not at its first call of each kind, where ranks
     * that begin with calls of different groups would wait for each other */
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    int code = library_open(lib, library_path, files, e);
    if (!code)
        code = library_functions(lib, names, NAMES, ret, e);
    if (code)
        err_hint(e, "several GPUs need NCCL: name its folder with --library-path");
    return code;
}

int nccl_type(enum dtype d)
{
    static const int number[DTYPE_COUNT] = {
        [DTYPE_F32] = 7, [DTYPE_F64] = 8, [DTYPE_I32] = 2, [DTYPE_BF16] = 9, [DTYPE_F16] = 6};
    return number[d];
}
