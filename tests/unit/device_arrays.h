/* SPDX-License-Identifier: Apache-2.0
 *
 * device_arrays.h: arrays of float32 or 16 bits on a device, with their values on the host.
 */
#ifndef NOJIT_TESTS_DEVICE_ARRAYS_H
#define NOJIT_TESTS_DEVICE_ARRAYS_H

#include "device_fixture.h"

static uint64_t seed = 12345;

static float draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(seed >> 11) * 0x1p-52 - 1.0);
}

static uint16_t to_lp(float x, int f16)
{
    uint32_t bits;

    if (f16) {
        _Float16 half = (_Float16)x;
        uint16_t out;

        memcpy(&out, &half, 2);
        return out;
    }
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float from_lp(uint16_t x, int f16)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;

    if (f16) {
        _Float16 half;

        memcpy(&half, &x, 2);
        return (float)half;
    }
    memcpy(&out, &bits, 4);
    return out;
}

/* An array on the host, its values as the device stores them, and its copy on the device. */
struct array {
    size_t count, bytes;
    enum nj_dtype dtype;
    float *value;
    void *raw, *device;
};

static void array_upload(struct device *d, struct array *x)
{
    for (size_t i = 0; i < x->count; i++) {
        if (x->dtype == NJ_LP)
            ((uint16_t *)x->raw)[i] = to_lp(x->value[i], d->lp_is_f16);
        else
            ((float *)x->raw)[i] = x->value[i];
        if (x->dtype == NJ_LP)
            x->value[i] = from_lp(((uint16_t *)x->raw)[i], d->lp_is_f16);
    }
    assert_int_equal(nj_copy(d->s, x->device, x->raw, x->bytes), 0);
}

static void array_download(struct device *d, struct array *x)
{
    assert_int_equal(nj_copy(d->s, x->raw, x->device, x->bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    for (size_t i = 0; i < x->count; i++)
        x->value[i] = x->dtype == NJ_LP ? from_lp(((uint16_t *)x->raw)[i], d->lp_is_f16)
                                        : ((float *)x->raw)[i];
}

static struct array array_make(struct device *d, enum nj_dtype dtype, size_t count)
{
    struct array x = {.count = count, .dtype = dtype, .bytes = count * (dtype == NJ_LP ? 2 : 4)};

    x.value = malloc(count * sizeof *x.value);
    x.raw = malloc(x.bytes);
    assert_non_null(x.value);
    assert_non_null(x.raw);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, x.bytes, &x.device), 0);
    for (size_t i = 0; i < count; i++)
        x.value[i] = draw();
    array_upload(d, &x);
    return x;
}

static void array_free(struct device *d, struct array *x)
{
    nj_free(d->ctx, NJ_MEM_DEVICE, x->device);
    free(x->value);
    free(x->raw);
}

#endif
