/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.c: see rope.h.
 */
#include "model/rope.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

int rope_rotary(const struct rope *r, int head_dim)
{
    return r->rule == ROPE_NONE ? 0 : r->rotary > 0 ? r->rotary : head_dim;
}

static double base(const struct rope *r, int rotary)
{
    const bool raised = r->rule == ROPE_NTK && rotary > 2;
    return raised ? r->theta * pow((double)r->alpha, rotary / (rotary - 2.0)) : r->theta;
}

double rope_frequency(const struct rope *r, int head_dim, int i)
{
    const int rotary = rope_rotary(r, head_dim);
    return pow(base(r, rotary), -2.0 * i / rotary);
}

static double clamped(double x)
{
    return fmin(fmax(x, 0.0), 1.0);
}

/* Llama 3: waves longer than the original context are slowed down by `factor`, short ones stay, and those between are
 * blended by where they lie. */
static double slowing_llama3(const struct rope *r, double frequency)
{
    const struct rope_scaling *s = &r->scaling;
    const double turns = s->original_positions * frequency / two_pi;
    const double blend = clamped((turns - (double)s->low_freq_factor) /
                                 (double)(s->high_freq_factor - s->low_freq_factor));
    return (1.0 - blend) / (double)s->factor + blend;
}

/* Return the pair, a real number, that turns so often within the original positions. */
static double pair_of_turns(const struct rope *r, int rotary, double turns)
{
    return rotary * log(r->scaling.original_positions / (turns * two_pi)) / (2 * log(r->theta));
}

/* YaRN (Peng et al. 2023, arXiv:2309.00071, section 3.2): pairs are blended by their number, between those that turn
 * beta_fast and beta_slow times. */
static double slowing_yarn(const struct rope *r, int rotary, int i)
{
    const struct rope_scaling *s = &r->scaling;
    double low = pair_of_turns(r, rotary, (double)r->beta_fast);
    double high = pair_of_turns(r, rotary, (double)r->beta_slow);
    if (r->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, rotary - 1);
    const double slow = clamped((i - low) / fmax(high - low, 0.001));
    return slow / (double)s->factor + (1 - slow);
}

double rope_slowing(const struct rope *r, int head_dim, int i, int positions)
{
    const struct rope_scaling *s = &r->scaling;
    const int rotary = rope_rotary(r, head_dim);
    switch (r->rule) {
    case ROPE_LINEAR:
        return 1 / (double)s->factor;
    case ROPE_LLAMA3:
        return slowing_llama3(r, rope_frequency(r, head_dim, i));
    case ROPE_YARN:
        return slowing_yarn(r, rotary, i);
    case ROPE_LONGROPE:
        return 1 /
               (double)(positions > s->original_positions ? r->long_factor : r->short_factor)[i];
    default:
        return 1;
    }
}

float rope_amplitude(const struct rope *r)
{
    return r->amplitude > 0 ? r->amplitude : 1;
}

/* YaRN's is sqrt(1/t) of section 3.4, 0.1 ln(factor) + 1; LongRoPE's (Ding et al. 2024, arXiv:2402.13753) is that of
 * Phi-3. */
float rope_natural_amplitude(const struct rope *r)
{
    const double factor = (double)r->scaling.factor;
    if (r->rule == ROPE_YARN && factor > 1)
        return (float)(0.1 * log(factor) + 1);
    if (r->rule == ROPE_LONGROPE && factor > 1)
        return (float)sqrt(1 + log(factor) / log(r->scaling.original_positions));
    return 1;
}
