/* SPDX-License-Identifier: Apache-2.0
 *
 * case_compare.c: what a stored type can hold, and whether an output is right.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float8.h"
#include "cases.h"

/* A binary floating-point type narrower than float. */
struct narrow {
    int fraction_bits, min_exponent, max_exponent;
};
static const struct narrow BF16 = {7, -126, 127}, F16 = {10, -14, 15}, E4M3 = {3, -6, 8},
                           E5M2 = {2, -14, 15};
#define E4M3_MOST 448.0 /* largest value; there is no infinity */

size_t nj_case_type_bytes(enum case_type type)
{
    static const size_t bytes[] = {[CASE_F32] = 4, [CASE_LP] = 2,   [CASE_I32] = 4,
                                   [CASE_F8] = 1,  [CASE_BF16] = 2, [CASE_E5M2] = 1};
    return bytes[type];
}

/* Return 2^exponent, which must not be subnormal. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Return the exponent that a finite x has in the type. */
static int exponent_of(double x, const struct narrow *n)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const int e = (int)(bits >> 52 & 0x7ff) - 1023;
    return e < n->min_exponent ? n->min_exponent : e;
}

static double round_narrow(double x, const struct narrow *n)
{
    if (!isfinite(x))
        return x;
    const int e = exponent_of(x, n);
    if (e > n->max_exponent)
        return copysign(INFINITY, x);
    /* `large` is so large that its last bit is a unit of the type: a sum is rounded there, ties to even. */
    const double large = power_of_two(e - n->fraction_bits + 52);
    const double r = fabs(x) + large - large;
    return copysign(r >= power_of_two(n->max_exponent + 1) ? INFINITY : r, x);
}

/* Return the narrow type; NULL: it is neither 16 bits wide nor e5m2. */
static const struct narrow *narrow_of(enum case_type type, int lp_is_f16)
{
    if (type == CASE_E5M2)
        return &E5M2;
    if (type != CASE_LP && type != CASE_BF16)
        return NULL;
    return type == CASE_LP && lp_is_f16 ? &F16 : &BF16;
}

double nj_case_round_to_type(double x, enum case_type type, int lp_is_f16)
{
    if (type == CASE_F8)
        return round_narrow(fmax(-E4M3_MOST, fmin(x, E4M3_MOST)), &E4M3);
    const struct narrow *n = narrow_of(type, lp_is_f16);
    return n ? round_narrow(x, n) : (double)(float)x;
}

/* Return all bits but the sign of x, a finite value of the type. */
static unsigned narrow_digits(double x, const struct narrow *n)
{
    const int e = exponent_of(x, n);
    /* A subnormal has no leading one: the sum then carries into exponent 0. */
    const unsigned digits = (unsigned)(fabs(x) * power_of_two(n->fraction_bits - e));
    const unsigned base = (unsigned)(e - n->min_exponent) << n->fraction_bits;
    return base + digits;
}

void nj_case_encode(unsigned char *bytes, const void *values, int64_t elements, enum case_type type,
                    int lp_is_f16)
{
    if (type == CASE_I32) {
        memcpy(bytes, values, (size_t)elements * sizeof(int32_t));
        return;
    }
    const double *x = values;
    const struct narrow *n = narrow_of(type, lp_is_f16);
    for (int64_t i = 0; i < elements; i++) {
        const unsigned sign = signbit(x[i]) ? 1 : 0;
        if (type == CASE_F8) {
            bytes[i] = (unsigned char)(sign << 7 | narrow_digits(x[i], &E4M3));
        } else if (type == CASE_E5M2) {
            bytes[i] = (unsigned char)(sign << 7 | narrow_digits(x[i], &E5M2));
        } else if (n) {
            const uint16_t b = (uint16_t)(sign << 15 | narrow_digits(x[i], n));
            memcpy(bytes + 2 * i, &b, sizeof(b));
        } else {
            const float f = (float)x[i];
            memcpy(bytes + 4 * i, &f, sizeof(f));
        }
    }
}

double nj_case_decode(const unsigned char *bytes, int64_t index, enum case_type type, int lp_is_f16)
{
    uint16_t b;
    float f;
    int32_t i;
    switch (type) {
    case CASE_LP:
    case CASE_BF16:
        memcpy(&b, bytes + 2 * index, sizeof(b));
        return (double)(type == CASE_LP && lp_is_f16 ? f32_from_f16(b) : f32_from_bf16(b));
    case CASE_F8:
        return (double)f32_from_e4m3(bytes[index]);
    case CASE_E5M2:
        return (double)f32_from_e5m2(bytes[index]);
    case CASE_F32:
        memcpy(&f, bytes + 4 * index, sizeof(f));
        return (double)f;
    default:
        memcpy(&i, bytes + 4 * index, sizeof(i));
        return i;
    }
}

/* Return the wanted value: with compare: exact, the reference's value, rounded once. */
static double want_at(const struct case_arg *a, const void *want, int64_t i, int lp_is_f16)
{
    const double w = a->type == CASE_I32 ? ((const int32_t *)want)[i] : ((const double *)want)[i];
    return a->compare == CASE_COMPARE_EXACT ? nj_case_round_to_type(w, a->type, lp_is_f16) : w;
}

/* Return the class of x: NaN, -inf, +inf or finite. */
static int class_of(double x)
{
    return isnan(x) ? 3 : isinf(x) ? (x > 0 ? 2 : 1) : 0;
}

/* Return the error of one pair beyond what storing may cost, relative to want and to size. */
static double error_of(double got, double want, double size, double rounding)
{
    if (class_of(got) != class_of(want))
        return INFINITY;
    if (class_of(want) || fabs(got - want) <= rounding)
        return 0;
    return (fabs(got - want) - rounding) / (fabs(want) + size);
}

/* Return half a unit of e4m3 at x, since the reference in double does not round to e4m3. Wider types are rounded
 * within the tolerance. */
static double rounding_of(double x, enum case_type type)
{
    if (type != CASE_F8 || !isfinite(x))
        return 0;
    return ldexp(1, (fabs(x) < 0x1p-6 ? -6 : ilogb(x)) - 4);
}

static double rms_of(const struct case_arg *a, const void *want, int lp_is_f16)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < a->elements; i++) {
        const double w = want_at(a, want, i, lp_is_f16);
        if (isfinite(w)) {
            sum += w * w;
            n++;
        }
    }
    return n ? sqrt(sum / (double)n) : 0;
}

static double compare_sum(const struct case_arg *a, const unsigned char *got, const void *want,
                          double tolerance, int lp_is_f16, char *message, size_t message_bytes)
{
    double g = 0, w = 0;
    for (int64_t i = 0; i < a->elements; i++) {
        g += nj_case_decode(got, i, a->type, lp_is_f16);
        w += want_at(a, want, i, lp_is_f16);
    }
    const double error = error_of(g, w, 0, 0);
    if (!(error <= tolerance))
        snprintf(message, message_bytes, "%s, sum: got %.9g, want %.9g, error %.3g, tolerance %.3g",
                 a->name, g, w, error, tolerance);
    return error;
}

/* Compare values of which a random number chooses between two neighbors: the last bit of the sum before it may lead
 * to another choice than the reference's, so one element in a thousand may differ. */
static void compare_most(const struct case_arg *a, const unsigned char *got, const void *want,
                         int lp_is_f16, char *message, size_t message_bytes)
{
    const long long may = 1 + a->elements / 1000;
    long long differ = 0;
    for (int64_t i = 0; i < a->elements; i++)
        differ += !(nj_case_decode(got, i, a->type, lp_is_f16) == want_at(a, want, i, lp_is_f16));
    if (differ > may)
        snprintf(message, message_bytes,
                 "%s: %lld of %lld elements differ from the reference, where %lld may", a->name,
                 differ, (long long)a->elements, may);
}

static double compare(const struct case_arg *a, const unsigned char *got, const void *want,
                      double tolerance, int lp_is_f16, char *message, size_t message_bytes)
{
    if (a->compare == CASE_COMPARE_NONE)
        return 0;
    if (a->compare == CASE_COMPARE_SUM)
        return compare_sum(a, got, want, tolerance, lp_is_f16, message, message_bytes);
    const double size = a->type == CASE_I32 ? 0 : rms_of(a, want, lp_is_f16);
    const int exact = a->type == CASE_I32 || a->compare == CASE_COMPARE_EXACT;
    const double limit = exact ? 0 : tolerance;
    double worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < a->elements; i++) {
        const double w = want_at(a, want, i, lp_is_f16);
        const double e =
            error_of(nj_case_decode(got, i, a->type, lp_is_f16), w, size, rounding_of(w, a->type));
        if (!(e <= worst)) {
            worst = e;
            at = i;
        }
    }
    if (!(worst <= limit))
        snprintf(message, message_bytes,
                 "%s[%lld]: got %.9g, want %.9g, error %.3g, tolerance %.3g", a->name,
                 (long long)at, nj_case_decode(got, at, a->type, lp_is_f16),
                 want_at(a, want, at, lp_is_f16), worst, limit);
    else if (a->compare == CASE_COMPARE_MOST)
        compare_most(a, got, want, lp_is_f16, message, message_bytes);
    return worst;
}

void nj_case_flush(const struct case_arg *a, const unsigned char *got, double *want, int lp_is_f16)
{
    for (int64_t i = 0; a->type != CASE_I32 && i < a->elements; i++)
        if (fabs(want[i]) < (double)FLT_MIN && nj_case_decode(got, i, a->type, lp_is_f16) == 0)
            want[i] = 0;
}

double nj_case_compare_output(const struct case_arg *a, const unsigned char *got, const void *want,
                              double tolerance, int lp_is_f16, char *message, size_t message_bytes)
{
    const double own = a->tolerance > 0 ? a->tolerance : tolerance;
    const double error = compare(a, got, want, own, lp_is_f16, message, message_bytes);
    return own == tolerance ? error : error / own * tolerance;
}
