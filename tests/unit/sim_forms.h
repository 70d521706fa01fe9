/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_forms.h: code shared by the tests of single instruction forms: random values, bits of floats, and narrow floats
 * found by search instead of shifts.
 */
#ifndef NOJIT_TESTS_SIM_FORMS_H
#define NOJIT_TESTS_SIM_FORMS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

struct sim_module;

/* Run every form with plain operands against C (sim_forms.c); `seen` is called for every module. */
void run_plain_forms(void (*seen)(const struct sim_module *module));

/* Run the forms that only sm_90 has (sim_forms_sm90.c). */
void run_sm90_forms(void (*seen)(const struct sim_module *module));

uint64_t next_random(void);

static inline float to_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static inline double to_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Return the value of a code of a narrow format; infinity counts as the next power of two. */
static inline double narrow_value(uint32_t code, int mantissa, int bias)
{
    const uint32_t fraction = code & ((1u << mantissa) - 1), exponent = code >> mantissa;
    return exponent ? ldexp(fraction + (double)(1u << mantissa), (int)exponent - bias - mantissa)
                    : ldexp(fraction, 1 - bias - mantissa);
}

/* Return the nearest code, the even one of two equally near ones; never above `most`. */
static inline uint64_t narrow_code(float x, int mantissa, int bias, uint32_t most)
{
    const double size = fabs((double)x);
    uint32_t low = 0, high = most; /* value(low) <= size */
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (narrow_value(middle, mantissa, bias) <= size)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == most)
        return low;
    const double below = size - narrow_value(low, mantissa, bias);
    const double above = narrow_value(low + 1, mantissa, bias) - size;
    return above < below || (above == below && low & 1) ? low + 1 : low;
}

static inline uint64_t bf16_want(float x)
{
    return isnan(x) ? 0x7fff : narrow_code(x, 7, 127, 0x7f80) | (signbit(x) ? 0x8000u : 0);
}
static inline uint64_t f16_want(float x)
{
    return isnan(x) ? 0x7fff : narrow_code(x, 10, 15, 0x7c00) | (signbit(x) ? 0x8000u : 0);
}
static inline uint64_t e4m3_want(float x)
{
    return isnan(x) ? 0x7f : narrow_code(x, 3, 7, 0x7e) | (signbit(x) ? 0x80u : 0);
}

#endif
