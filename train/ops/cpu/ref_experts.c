/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/experts.h"
#include "train/ops/values.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/cpu/ref.h"

static int32_t *int_row(struct tensor t, int64_t i)
{
    return (int32_t *)t.data + i * t.stride;
}

/* ---- the router ------------------------------------------------------------------------------ */

static void softmax_row(const struct route_args *a, int64_t i)
{
    const real *x = row(a->logits, i);
    int64_t E = a->logits.size[1];
    double max = (double)x[0], sum = 0;
    for (int64_t e = 1; e < E; e++)
        max = (double)x[e] > max ? (double)x[e] : max;
    for (int64_t e = 0; e < E; e++)
        sum += exp((double)x[e] - max);
    for (int64_t e = 0; e < E; e++)
        row(a->prob, i)[e] = (real)(exp((double)x[e] - max) / sum);
    row(a->lse, 0)[i] = (real)(max + log(sum));
}

/* The j-th choice: the largest of those that are not chosen yet, by logits, of equals the first. */
static int32_t choose(const struct route_args *a, int64_t i, int64_t j)
{
    const real *x = row(a->logits, i);
    const int32_t *taken = int_row(a->choice, i);
    int32_t best = -1;
    for (int32_t e = 0; e < a->logits.size[1]; e++) {
        bool is_free = true;
        for (int64_t t = 0; t < j; t++)
            is_free = is_free && taken[t] != e;
        if (is_free && (best < 0 || x[e] > x[best]))
            best = e;
    }
    return best;
}

static void choose_row(const struct route_args *a, int64_t i)
{
    int64_t k = a->choice.size[1];
    double sum = 0;
    for (int64_t j = 0; j < k; j++) {
        int_row(a->choice, i)[j] = choose(a, i, j);
        sum += (double)row(a->prob, i)[int_row(a->choice, i)[j]];
    }
    for (int64_t j = 0; j < k; j++) {
        double p = (double)row(a->prob, i)[int_row(a->choice, i)[j]];
        row(a->weight, i)[j] = (real)(a->normalize ? p / sum : p);
    }
}

/* Where the pairs of each expert begin, by count; then each pair the next of its expert. */
static void number_slots(const struct route_args *a)
{
    int64_t n = a->choice.size[0], k = a->choice.size[1], E = a->count.size[0];
    int32_t *count = a->count.data, sum = 0;
    for (int64_t e = 0; e < E; e++)
        count[e] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            count[int_row(a->choice, i)[j]]++;
    for (int64_t e = 0; e < E; e++) {
        int32_t here = count[e];
        count[e] = sum;
        sum += here;
        if (!tensor_none(a->start)) {
            ((int32_t *)a->start.data)[e] = count[e];
            ((int32_t *)a->start.data)[e + 1] = sum;
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            int_row(a->slot, i)[j] = count[int_row(a->choice, i)[j]]++;
    for (int64_t e = E - 1; e > 0; e--) /* what was counted up to is where the next began */
        count[e] -= count[e - 1];
}

void REF(route)(struct ops *o, const void *args, void *scratch)
{
    const struct route_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->logits.size[0]; i++) {
        softmax_row(a, i);
        choose_row(a, i);
    }
    number_slots(a);
}

/*
 * Gradients of the probabilities p: those of the chosen weights, w_j = p_j, or p_j / s with s their
 * sum, where dp_j = (dw_j - sum of dw w) / s; and balance * total. Then those of the logits,
 * p (dp - sum of dp p), and of lse^2, 2 lse p.
 */
static double dprob(const struct route_bwd_args *a, int64_t i, int64_t e)
{
    int64_t k = a->choice.size[1];
    const int32_t *choice = int_row(a->choice, i);
    double scale = a->balance != 0 ? a->balance * value_of(a->scale, 1) : 0;
    double d = scale != 0 ? scale * (double)ints(a->total)[e] : 0, sum = 0, both = 0;
    for (int64_t j = 0; j < k; j++) {
        sum += (double)row(a->prob, i)[choice[j]];
        both += (double)row(a->dweight, i)[j] * (double)row(a->weight, i)[j];
    }
    for (int64_t j = 0; j < k; j++)
        if (choice[j] == e) {
            double dw = (double)row(a->dweight, i)[j];
            d += a->normalize && !FAULT("route_normalize") ? (dw - both) / sum : dw;
        }
    return d;
}

void REF(route_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct route_bwd_args *a = args;
    int64_t E = a->prob.size[1];
    double z = a->z != 0 ? a->z * value_of(a->scale, 1) : 0;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->prob.size[0]; i++) {
        const real *p = row(a->prob, i);
        double mean = 0, lse = (double)row(a->lse, 0)[i];
        for (int64_t e = 0; e < E; e++)
            mean += dprob(a, i, e) * (double)p[e];
        if (FAULT("route_bwd"))
            mean = 0;
        for (int64_t e = 0; e < E; e++)
            row(a->dlogits, i)[e] =
                (real)((double)p[e] * (dprob(a, i, e) - mean + (z != 0 ? 2 * z * lse : 0)));
    }
}

void REF(route_loss)(struct ops *o, const void *args, void *scratch)
{
    const struct route_loss_args *a = args;
    double *sums = a->sums.data, balance = 0, z = 0;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->prob.size[0]; i++) {
        double lse = (double)row(a->lse, 0)[i];
        for (int64_t e = 0; e < a->prob.size[1]; e++)
            balance += (double)row(a->prob, i)[e] * (double)ints(a->total)[e];
        z += lse * lse;
    }
    sums[0] += a->balance * balance;
    sums[1] += a->z * z;
}

/* ---- rows of tokens to rows of slots and back ------------------------------------------------ */

void REF(permute)(struct ops *o, const void *args, void *scratch)
{
    const struct permute_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->x.size[0]; i++)
        for (int64_t j = 0; j < a->slot.size[1]; j++)
            for (int64_t c = 0; c < a->x.size[1]; c++)
                row(a->to, int_row(a->slot, i)[j])[c] = row(a->x, i)[c];
}

void REF(permute_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct permute_bwd_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->dx.size[0]; i++)
        for (int64_t c = 0; c < a->dx.size[1]; c++) {
            double sum = 0;
            for (int64_t j = FAULT("permute_bwd") ? 1 : 0; j < a->slot.size[1]; j++)
                sum += (double)row(a->dto, int_row(a->slot, i)[j])[c];
            row(a->dx, i)[c] = (real)sum;
        }
}

void REF(unpermute)(struct ops *o, const void *args, void *scratch)
{
    const struct unpermute_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->y.size[0]; i++)
        for (int64_t c = 0; c < a->y.size[1]; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->slot.size[1]; j++)
                sum +=
                    (double)row(a->weight, i)[j] * (double)row(a->from, int_row(a->slot, i)[j])[c];
            row(a->y, i)[c] = (real)sum;
        }
}

void REF(unpermute_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct unpermute_bwd_args *a = args;
    int64_t width = a->dy.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->dy.size[0]; i++)
        for (int64_t j = 0; j < a->slot.size[1]; j++) {
            int64_t at = int_row(a->slot, i)[j];
            double sum = 0, w = FAULT("unpermute_bwd") ? 1 : (double)row(a->weight, i)[j];
            for (int64_t c = 0; c < width; c++) {
                double dy = (double)row(a->dy, i)[c];
                sum += dy * (double)row(a->from, at)[c];
                row(a->dfrom, at)[c] = (real)(w * dy);
            }
            row(a->dweight, i)[j] = (real)sum;
        }
}

/* ---- products -------------------------------------------------------------------------------- */

static real *element(struct tensor w, int64_t g, int64_t out, int64_t in)
{
    return (real *)w.data + g % w.size[0] * w.stride + out * w.size[2] + in;
}

void REF(grouped)(struct ops *o, const void *args, void *scratch)
{
    const struct grouped_args *a = args;
    int64_t groups = a->start.size[0] - 1, depth = a->w.size[a->backward ? 1 : 2];
    (void)o;
    (void)scratch;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t i = ints(a->start)[g]; i < ints(a->start)[g + 1]; i++)
            for (int64_t c = 0; c < a->y.size[1]; c++) {
                double sum = 0;
                for (int64_t p = 0; p < depth; p++)
                    sum += (double)row(a->x, i)[p] *
                           (double)*(a->backward ? element(a->w, g, p, c) : element(a->w, g, c, p));
                row(a->y, i)[c] = (real)sum;
            }
}

void REF(grouped_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct grouped_bwd_args *a = args;
    int64_t groups = a->start.size[0] - 1;
    (void)o;
    (void)scratch;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t out = 0; out < a->dw.size[1]; out++)
            for (int64_t in = 0; in < a->dw.size[2]; in++) {
                double sum = 0;
                for (int64_t i = ints(a->start)[g]; i < ints(a->start)[g + 1]; i++)
                    sum += (double)row(a->dy, i)[out] * (double)row(a->x, i)[in];
                real *d = element(a->dw, g, out, in);
                *d = FAULT("grouped_bwd") ? (real)sum : *d + (real)sum;
            }
}

/* ---- the gate of a shared expert ---------------------------------------------------------------
 */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

void REF(gate)(struct ops *o, const void *args, void *scratch)
{
    const struct gate_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->y.size[0]; i++) {
        double s = sigmoid((double)row(a->logit, i)[0]);
        for (int64_t j = 0; j < a->y.size[1]; j++)
            row(a->y, i)[j] = (real)((double)row(a->x, i)[j] * s);
    }
}

void REF(gate_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct gate_bwd_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->dy.size[0]; i++) {
        double s = sigmoid((double)row(a->logit, i)[0]), sum = 0;
        for (int64_t j = 0; j < a->dy.size[1]; j++) {
            double dy = (double)row(a->dy, i)[j];
            sum += dy * (double)row(a->x, i)[j];
            row(a->dx, i)[j] = (real)(dy * s);
        }
        row(a->dlogit, i)[0] = (real)(sum * s * (FAULT("gate_bwd") ? 1 : 1 - s));
    }
}
