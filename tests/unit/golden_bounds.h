/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_bounds.h: how far golden cases may be off, in each type of numbers.
 */
#ifndef NOJIT_TESTS_GOLDEN_BOUNDS_H
#define NOJIT_TESTS_GOLDEN_BOUNDS_H

#include "nojit.h"

/* Bounds on the distance from results in float64. A figure is relative to itself, an element to the largest element of
 * its tensor (logits: of its row), a whole tensor, in Euclidean norm, to its norm.
 *
 * A result that passes through n roundings of relative size u, each as likely up as down, is off by about u sqrt(n) if
 * operations neither damp nor amplify errors. A layer stores about 10 results in the forward pass (two norms, q k v,
 * rotation, probabilities, attention, output, gate and up, SwiGLU, down); the backward pass reads them and stores about
 * twice as many. With two layers and the head, n is about 25 forward and 75 with backward, so sqrt(n) is 5 and 9.
 *
 * float32: u = 2^-24, and a sum of k products in any order amounts to at most sqrt(k) roundings, k <= 320: u sqrt(n k)
 * is 5e-6 and 9e-6. The bound 1e-5 for both leaves almost no room for amplification; errors stay below because few sums
 * are that long.
 *
 * 16 bits: sums are in float32 and only stored results are rounded, u = 2^-9 (bfloat16): u sqrt(n) is 1.0e-2 and
 * 1.7e-2. Three times that allows for operations that amplify (softmax, the norms of q and k) and for elements with
 * more than their share. Losses are means over more than a hundred rows, but rounded weights push all rows the same
 * way: twice u sqrt(n).
 *
 * An update of AdamW is h(g) = g / (|g| + eps) of a clipped gradient, with eps about a gradient's size, so a relative
 * error of g is scaled by eps / (|g| + eps) < 1. With the errors of earlier steps, the norm of a movement gets twice
 * the bound of a gradient. An element's error is relative to the largest element, so small ones count for more: twice
 * that again in float32. In 16 bits a small element, and its update, may be off by more than itself: single elements
 * show only gross faults there, and the norm of the whole tensor is the real test.
 *
 * The gradient of the total variation distance jumps where a token's p equals its q. Logits that are off by 0.02 on
 * average change the sign of p - q for 0.02 times the density of log p/q at 0, about 0.17: for a share x = 0.003 of
 * tokens. Each changes its g_v by q_v, about twice the size of a g_v: 2 sqrt(x) = 0.12 of the gradient on top of the
 * other errors, so in 16 bits three times their bound. In float32 x is 1e-6.
 *
 * The choice of experts jumps where two logits of a router are equal, about 0.3 apart for the last chosen of seven and
 * the next. Logits that are off by 0.01 exchange the two in 0.03 of the rows: of the pairs of an expert as many come
 * and go as 2 * 0.03 / 3, x = 0.02. Their weights are the least of a row, half of the others': sqrt(x) / 2 = 0.07 of
 * the gradient on top of the other errors, so in 16 bits three times their bound as well.
 *
 * The gradient of a rate of decay (A_log, dt_bias) is one number for each head, a sum over all rows of terms of both
 * signs. In qwen3_5 their magnitudes are 5.0 times the sum (0.181 and 0.036, in norm over the heads), and rounded
 * weights push all rows the same way: 5 u sqrt(n) instead of 3. transformers in bfloat16, with the rule itself in
 * float32, is off by 6.2e-2 there.
 *
 * For comparison, transformers in bfloat16 is off by up to 1.9e-2 (logits), 3.9e-2 (gradients), 4.8e-2 and 0.27
 * (movements, elements of them) and 9e-3 (losses) in the first two steps of these cases. */
static const struct precision {
    const char *name;
    enum nj_dtype dtype;
    double logits, gradient, movement, moved_element, figure, agreement;
} precisions[] = {
    {"float32", NJ_F32, 1e-5, 1e-5, 2e-5, 4e-5, 1e-5, 1e-9},
    {"16-bit", NJ_LP, 3e-2, 5e-2, 1e-1, 5e-1, 2e-2, 2e-2},
};

static const struct precision *limits; /* bounds of the type that is tested */

#endif
