/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_LOW_RANK_H
#define CONVERT_COPY_LOW_RANK_H

/* A matrix as the product of two narrow ones. */

#include <stdint.h>

/*
 * The best b [m, rank] and a [rank, n] with b a near d [m, n], in the sum of squares: the largest
 * singular values of d, of which each factor has the square root. By subspace iteration from fixed
 * random numbers (Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 53,
 * 2011; algorithm 4.4), in double. Exact up to rounding where d has no higher rank; a lower one
 * leaves zeros at the end. Returns the sum of squares of d, and *ret_rest that of d - b a.
 */
double low_rank_factors(const float *d, int64_t m, int64_t n, int64_t rank, float *b, float *a,
                        double *ret_rest);

#endif
