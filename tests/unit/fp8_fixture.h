/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8_fixture.h: arrays of E4M3 numbers and their scales, on any device. E4M3 is decoded here independently: 4 bits of
 * exponent (bias 7), 3 of fraction, no infinity, NaN if all of them are set.
 */
#ifndef NOJIT_F8_FIXTURE_H
#define NOJIT_F8_FIXTURE_H

#include "base/float16.h"
#include "device_fixture.h"
#include "formats/safetensors.h"
#include "nojit_ops.h"

#include <math.h>

/* Return the type of rows and results. */
static inline enum nj_dtype dtype_of(const struct device *d)
{
    return d->is_cpu ? NJ_F32 : NJ_LP;
}

static inline double decode(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 127) == 127)
        return (double)NAN;
    const double size =
        exponent ? (1 + fraction / 8.0) * pow(2, exponent - 7) : fraction / 8.0 * pow(2, -6);
    return bits & 128 ? -size : size;
}

static inline size_t bytes_of(enum nj_dtype T)
{
    return T == NJ_F32 ? 4 : T == NJ_LP ? 2 : 1;
}

static inline void *on_device(struct device *d, size_t bytes)
{
    void *p;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &p), 0);
    return p;
}

/* Copy values to the device in its type; x becomes the rounded values. */
static inline void *send(struct device *d, enum nj_dtype T, float *x, size_t count)
{
    void *p = on_device(d, count * bytes_of(T));
    uint16_t *narrow = calloc(count, sizeof *narrow);
    assert_non_null(narrow);
    for (size_t i = 0; i < count && T == NJ_LP; i++) {
        narrow[i] = d->lp_is_f16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]);
        x[i] = d->lp_is_f16 ? f32_from_f16(narrow[i]) : f32_from_bf16(narrow[i]);
    }
    assert_int_equal(nj_copy(d->s, p, T == NJ_LP ? (void *)narrow : x, count * bytes_of(T)), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    free(narrow);
    return p;
}

static inline void receive(struct device *d, void *to, void *p, size_t bytes)
{
    assert_int_equal(nj_copy(d->s, to, p, bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

#endif
