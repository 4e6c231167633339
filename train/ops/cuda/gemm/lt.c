/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/gemm/lt.h"

#include <assert.h>
#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/tensor/cuda/library.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { CHOICES = 8, RESTORED = -1, FUNCTIONS = 16 };

/* In the order of `names`. */
struct functions {
    cublasStatus_t (*create)(cublasLtHandle_t *);
    cublasStatus_t (*destroy)(cublasLtHandle_t);
    size_t (*version)(void);
    const char *(*status)(cublasStatus_t);
    cublasStatus_t (*desc_create)(cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t);
    cublasStatus_t (*desc_destroy)(cublasLtMatmulDesc_t);
    cublasStatus_t (*desc_set)(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *,
                               size_t);
    cublasStatus_t (*layout_create)(cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t,
                                    int64_t);
    cublasStatus_t (*layout_destroy)(cublasLtMatrixLayout_t);
    cublasStatus_t (*preference_create)(cublasLtMatmulPreference_t *);
    cublasStatus_t (*preference_destroy)(cublasLtMatmulPreference_t);
    cublasStatus_t (*preference_set)(cublasLtMatmulPreference_t,
                                     cublasLtMatmulPreferenceAttributes_t, const void *, size_t);
    cublasStatus_t (*heuristic)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                cublasLtMatmulHeuristicResult_t[], int *);
    cublasStatus_t (*matmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,
                             cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t,
                             const void *, const void *, cublasLtMatrixLayout_t, void *,
                             cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t,
                             cudaStream_t);
    cublasStatus_t (*layout_set)(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
                                 const void *, size_t);
    cublasStatus_t (*check)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                            cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                            const cublasLtMatmulAlgo_t *, cublasLtMatmulHeuristicResult_t *);
};

static const char *const names[FUNCTIONS] = {
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtGetVersion",
    "cublasLtGetStatusString",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulAlgoCheck",
};

struct lt_plan {
    struct lt_plan *next;
    struct lt_shape shape;
    int choice;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y;
    cublasLtMatmulAlgo_t algo;
};

struct lt {
    struct library library;
    struct functions fn;
    cublasLtHandle_t handle;
    struct dev *dev;
    size_t workspace;
    struct lt_plan *plans;
    char version[32];
};

int lt_alignment(const void *a, const void *b, const void *y)
{
    uintptr_t any = (uintptr_t)a | (uintptr_t)b | (uintptr_t)y | 256;
    return (int)(any & -any);
}

const char *lt_version(const struct lt *l)
{
    return l->version;
}

static int refused(struct lt *l, cublasStatus_t status, const char *what, struct err *e)
{
    return err_set(e, ERR_RESOURCE, "cuBLASLt %s: %s: %s", l->version, what, l->fn.status(status));
}

int lt_open(struct lt **ret, struct dev *d, const char *library_path, size_t workspace,
            struct err *e)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    struct lt *l = mem_new(1, sizeof(*l));
    int code;
    *l = (struct lt){.dev = d, .workspace = workspace};
    *ret = l;
    if ((code = library_open(&l->library, library_path, files, e)) ||
        (code = library_functions(&l->library, names, FUNCTIONS, &l->fn, e))) {
        lt_close(l);
        *ret = NULL;
        return code;
    }
    size_t v = l->fn.version();
    snprintf(l->version, sizeof(l->version), "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    cublasStatus_t status = l->fn.create(&l->handle);
    if (status) {
        code = refused(l, status, "no handle", e);
        lt_close(l);
        *ret = NULL;
    }
    return code;
}

static void plan_free(struct lt *l, struct lt_plan *p)
{
    if (p->desc)
        l->fn.desc_destroy(p->desc);
    if (p->a)
        l->fn.layout_destroy(p->a);
    if (p->b)
        l->fn.layout_destroy(p->b);
    if (p->y)
        l->fn.layout_destroy(p->y);
    free(p);
}

void lt_close(struct lt *l)
{
    if (!l)
        return;
    while (l->plans) {
        struct lt_plan *p = l->plans;
        l->plans = p->next;
        plan_free(l, p);
    }
    if (l->handle)
        l->fn.destroy(l->handle);
    library_close(&l->library);
    free(l);
}

static cudaDataType_t type_of(enum dtype d)
{
    BUG_ON(d != DTYPE_F32 && d != DTYPE_BF16 && d != DTYPE_F16, "a product of %s", dtype_name(d));
    return d == DTYPE_F32 ? CUDA_R_32F : d == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

static cublasStatus_t set(struct lt *l, struct lt_plan *p, cublasLtMatmulDescAttributes_t what,
                          const void *value, size_t size)
{
    return l->fn.desc_set(p->desc, what, value, size);
}

/* Frees p. */
static int no_product(struct lt *l, struct lt_plan *p, cublasStatus_t status, struct err *e)
{
    const struct lt_shape *s = &p->shape;
    char what[160];
    snprintf(what, sizeof(what), "no product of %s %lld x %lld x %lld into %s", dtype_name(s->in),
             (long long)s->m, (long long)s->n, (long long)s->k, dtype_name(s->out));
    plan_free(l, p);
    return refused(l, status, what, e);
}

/* The library's matrices are stored by columns, so its A is our b, its B our a, and its rows n. */
static cublasStatus_t describe(struct lt *l, struct lt_plan *p)
{
    static const cublasLtEpilogue_t epilogues[] = {
        [LT_NONE] = CUBLASLT_EPILOGUE_DEFAULT,       [LT_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [LT_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, [LT_GELU_BWD] = CUBLASLT_EPILOGUE_DGELU,
        [LT_BGRAD] = CUBLASLT_EPILOGUE_BGRADB,
    };
    const struct lt_shape *s = &p->shape;
    cublasOperation_t ta = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t tb = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType_t in = type_of(s->in), out = type_of(s->out);
    cublasLtEpilogue_t epilogue = epilogues[s->epilogue];
    cublasComputeType_t sums = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    cublasStatus_t status;
    (void)((status = l->fn.desc_create(&p->desc, sums, CUDA_R_32F)) ||
           (status = set(l, p, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta))) ||
           (status = set(l, p, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb))) ||
           (status = set(l, p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue))) ||
           (status = l->fn.layout_create(&p->a, in, s->tb ? k : n, s->tb ? n : k, s->ldb)) ||
           (status = l->fn.layout_create(&p->b, in, s->ta ? m : k, s->ta ? k : m, s->lda)) ||
           (status = l->fn.layout_create(&p->y, out, n, m, s->ldy)));
    if (!status && s->epilogue != LT_NONE)
        status = set(l, p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &in, sizeof(in));
    if (!status && s->ld_aux)
        status = set(l, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &s->ld_aux, sizeof(s->ld_aux));
    if (!status && s->ld_aux)
        status = set(l, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &in, sizeof(in));
    return status;
}

/* The library's proposals, at most CHOICES, for addresses of this alignment. */
static cublasStatus_t propose(struct lt *l, struct lt_plan *p, cublasLtMatmulHeuristicResult_t *ret,
                              int *ret_n)
{
    cublasLtMatmulPreference_t preference = NULL;
    uint32_t align = (uint32_t)p->shape.alignment;
    cublasStatus_t status = l->fn.preference_create(&preference);
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    if (!status)
        status = l->fn.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                      &l->workspace, sizeof(l->workspace));
    for (int i = 0; i < 4 && !status; i++)
        status = l->fn.preference_set(preference, alignments[i], &align, sizeof(align));
    *ret_n = 0;
    if (!status)
        status = l->fn.heuristic(l->handle, p->desc, p->a, p->b, p->y, p->y, preference, CHOICES,
                                 ret, ret_n);
    if (preference)
        l->fn.preference_destroy(preference);
    return status;
}

static struct lt_plan *find(const struct lt *l, const struct lt_shape *s, int choice)
{
    struct lt_plan *p = l->plans;
    while (p && (p->choice != choice || memcmp(&p->shape, s, sizeof(*s)) != 0))
        p = p->next;
    return p;
}

/* A plan without an algorithm, which is not among l's yet. */
static int begin_plan(struct lt *l, const struct lt_shape *s, int choice, struct lt_plan **ret,
                      struct err *e)
{
    struct lt_plan *p = mem_new(1, sizeof(*p));
    *p = (struct lt_plan){.choice = choice};
    memcpy(&p->shape, s, sizeof(*s)); /* with what lies between its members, for memcmp */
    *ret = p;
    cublasStatus_t status = describe(l, p);
    return status ? no_product(l, p, status, e) : 0;
}

static const struct lt_plan *keep_plan(struct lt *l, struct lt_plan *p)
{
    p->next = l->plans;
    l->plans = p;
    return p;
}

int lt_prepare(struct lt *l, const struct lt_shape *s, int choice, const struct lt_plan **ret,
               struct err *e)
{
    cublasLtMatmulHeuristicResult_t found[CHOICES];
    struct lt_plan *p;
    int n = 0;
    *ret = find(l, s, choice);
    if (*ret)
        return 0;
    int code = begin_plan(l, s, choice, &p, e);
    if (code)
        return code;
    cublasStatus_t status = propose(l, p, found, &n);
    if (!status && choice >= n)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status)
        return no_product(l, p, status, e);
    p->algo = found[choice].algo;
    *ret = keep_plan(l, p);
    return 0;
}

int lt_restore(struct lt *l, const struct lt_shape *s, const struct lt_algorithm *a,
               const struct lt_plan **ret, struct err *e)
{
    cublasLtMatmulHeuristicResult_t result;
    struct lt_plan *p;
    *ret = NULL;
    int code = begin_plan(l, s, RESTORED, &p, e);
    if (code)
        return code;
    memcpy(p->algo.data, a->word, sizeof(a->word));
    cublasStatus_t status =
        l->fn.check(l->handle, p->desc, p->a, p->b, p->y, p->y, &p->algo, &result);
    if (!status)
        status = result.state;
    if (!status && result.workspaceSize > l->workspace)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status)
        return no_product(l, p, status, e);
    *ret = keep_plan(l, p);
    return 0;
}

struct lt_algorithm lt_algorithm(const struct lt_plan *p)
{
    struct lt_algorithm a;
    static_assert(sizeof(a.word) == sizeof(p->algo.data), "an algorithm of another size");
    memcpy(a.word, p->algo.data, sizeof(a.word));
    return a;
}

void lt_run(struct lt *l, const struct lt_plan *p, void *y, const void *a, const void *b,
            void *bias, void *aux, void *workspace)
{
    static const float one = 1, zero = 0;
    struct lt_plan *q = (struct lt_plan *)p; /* the addresses are part of its description */
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (bias)
        status = set(l, q, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
    if (aux && !status)
        status = set(l, q, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof(aux));
    if (!status)
        status = l->fn.matmul(l->handle, p->desc, &one, b, p->a, a, p->b,
                              p->shape.accumulate ? &one : &zero, y, p->y, y, p->y, &p->algo,
                              workspace, l->workspace, dev_cuda_stream(l->dev, STREAM_COMPUTE));
    if (status)
        dev_cuda_fail(l->dev, "cuBLASLt", l->fn.status(status));
}
