/* SPDX-License-Identifier: Apache-2.0
 *
 * rejection.h: speculative sampling of one token on the host, in double precision (Leviathan et al. 2023,
 * arXiv:2211.17192, algorithm 1, at temperature 1).
 */
#ifndef NOJIT_TRAINER_REJECTION_H
#define NOJIT_TRAINER_REJECTION_H

#include <stdbool.h>
#include <stdint.h>

/* Compute p = softmax(logits), of n logits. Return false if they are not finite. */
bool softmax_row(const float *logits, int n, double *p);
/* Return index v with probability weight[v] / sum of all, for u drawn uniformly from [0, 1). Some weight is
 * positive. */
int32_t draw_from(const double *weight, int n, double u);
/* Return the probability that a token drawn from q is accepted as a token of p: sum of min(p, q). */
double acceptance_of(const double *p, const double *q, int n);
/* Return whether token x, drawn from q, is accepted: with probability min(1, p[x] / q[x]). */
bool accepts(const double *p, const double *q, int32_t x, double u);
/* Replace p by the weights for a token in place of a rejected one: max(0, p - q), which draw_from() normalizes. */
void subtract_draft(double *p, const double *q, int n);

#endif
