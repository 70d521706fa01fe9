/* SPDX-License-Identifier: Apache-2.0
 *
 * rejection.c: see rejection.h.
 */
#include "decode/rejection.h"

#include <math.h>

bool softmax_row(const float *logits, int n, double *p)
{
    double most = -INFINITY, sum = 0;
    for (int v = 0; v < n; v++)
        most = fmax(most, (double)logits[v]);
    for (int v = 0; v < n; v++)
        sum += p[v] = exp((double)logits[v] - most);
    for (int v = 0; v < n; v++)
        p[v] /= sum;
    return isfinite(sum);
}

int32_t draw_from(const double *weight, int n, double u)
{
    double sum = 0, below = 0;
    int32_t found = 0;
    for (int v = 0; v < n; v++)
        sum += weight[v];
    for (int v = 0; v < n && below <= u * sum; v++) {
        below += weight[v];
        found = weight[v] > 0 ? v : found;
    }
    return found;
}

double acceptance_of(const double *p, const double *q, int n)
{
    double sum = 0;
    for (int v = 0; v < n; v++)
        sum += fmin(p[v], q[v]);
    return fmin(sum, 1);
}

bool accepts(const double *p, const double *q, int32_t x, double u)
{
    return u * q[x] < p[x];
}

void subtract_draft(double *p, const double *q, int n)
{
    for (int v = 0; v < n; v++)
        p[v] = fmax(0, p[v] - q[v]);
}
