/* SPDX-License-Identifier: Apache-2.0
 *
 * e5m2_value.h: the value of an E5M2 byte.
 */
#ifndef NOJIT_TESTS_E5M2_VALUE_H
#define NOJIT_TESTS_E5M2_VALUE_H

#include <math.h>
#include <stdint.h>

static inline double decode_e5m2(uint8_t bits)
{
    const int exponent = bits >> 2 & 31, fraction = bits & 3;
    double size =
        exponent ? (1 + fraction / 4.0) * pow(2, exponent - 15) : fraction / 4.0 * pow(2, -14);
    if (exponent == 31)
        size = fraction ? (double)NAN : (double)INFINITY;
    return bits & 128 ? -size : size;
}

#endif
