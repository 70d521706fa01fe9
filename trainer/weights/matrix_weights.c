/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix_weights.c: see matrix_weights.h.
 */
#include "weights/matrix_weights.h"

#include "net/fp8.h"
#include "net/quant.h"
#include "weights/fp8_weights.h"
#include "weights/quant_weights.h"

static const struct {
    const struct matrix_format *format;
    void (*item)(const struct matrix *m, int row, const struct tensor *t, struct load_item *out);
} ways[] = {
    {&matrix_plain, quant_item},
    {&matrix_quant, quant_item},
    {&matrix_fp8, fp8_item},
    {&matrix_fp8_refused, fp8_refused_item},
};

bool matrix_item(const struct net *n, size_t spec, const struct tensor *t, struct load_item *out)
{
    int row;
    const struct matrix *m = net_matrix_of(n, spec, &row);
    if (!m || m->first >= 0)
        return false;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (ways[i].format == m->format)
            ways[i].item(m, row, t, out);
    return true;
}
