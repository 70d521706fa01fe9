// SPDX-License-Identifier: Apache-2.0
//
// common.glsl: code of every op's shader: arrays behind addresses, sums over a workgroup, and mathematical functions
// that drivers provide with too few digits. `precise` fixes their order of operations, so that one device always gives
// the same result.
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#ifdef NJ_LP
#extension GL_EXT_shader_16bit_storage : require
#endif

// Used before loops over arrays that must stay in registers.
#define NJ_UNROLL [[unroll]]

layout(local_size_x = NJ_THREADS) in;

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer nj_f32
{
    float v[];
};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer nj_i32
{
    int v[];
};

// Return the array from element i on: rows of an array may begin beyond the range of 32-bit offsets.
nj_f32 from(nj_f32 a, int64_t i)
{
    return nj_f32(uint64_t(a) + 4ul * uint64_t(i));
}
nj_i32 from_i32(nj_i32 a, int64_t i)
{
    return nj_i32(uint64_t(a) + 4ul * uint64_t(i));
}

// Round to bfloat16, to nearest even: the upper half of a float.
uint to_bf16(float x)
{
    const uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return bits >> 16 | 0x40u; // the bits of a NaN may all be in the lower half
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

// Arrays of the key's type T: float32, or bfloat16, which exists only in memory. All arithmetic is in float32.
#ifdef NJ_LP
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer nj_t
{
    uint16_t v[];
};
const uint64_t T_BYTES = 2ul;

float get(nj_t a, int i)
{
    return uintBitsToFloat(uint(a.v[i]) << 16);
}
void put(nj_t a, int i, float x)
{
    a.v[i] = uint16_t(to_bf16(x));
}
// Return x as it is read back after a store.
float as_t(float x)
{
    return uintBitsToFloat(to_bf16(x) << 16);
}
#else
#define nj_t nj_f32
const uint64_t T_BYTES = 4ul;

float get(nj_t a, int i)
{
    return a.v[i];
}
void put(nj_t a, int i, float x)
{
    a.v[i] = x;
}
float as_t(float x)
{
    return x;
}
#endif

nj_t from_t(nj_t a, int64_t i)
{
    return nj_t(uint64_t(a) + T_BYTES * uint64_t(i));
}

// Test whether an optional argument is not NULL. This is a macro because functions of references cannot be overloaded.
#define given(a) (uint64_t(a) != 0ul)

#define MINUS_INFINITY uintBitsToFloat(0xff800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

int thread()
{
    return int(gl_LocalInvocationIndex);
}

int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

shared float nj_sums[NJ_THREADS];

// Return the sum over each group of `width` threads, a power of two, in a fixed order, to all of the group. All threads
// of the workgroup call it.
float group_sum(float x, int width)
{
    const int at = thread() % width;
    barrier(); // the last sum may still be read
    nj_sums[thread()] = x;
    for (int half_of = width / 2; half_of > 0; half_of /= 2) {
        barrier();
        if (at < half_of)
            nj_sums[thread()] += nj_sums[thread() + half_of];
    }
    barrier();
    return nj_sums[thread() - at];
}

float block_sum(float x)
{
    return group_sum(x, NJ_THREADS);
}

bool is_nan(float x)
{
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}
bool is_finite(float x)
{
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}

// Return e^x = 2^n e^r with |r| <= ln(2) / 2, for which Taylor's series of degree 7 is exact to float32. The power of
// two is applied in two steps, and results below the smallest normal number may become 0.
float nj_exp(float x)
{
    if (is_nan(x))
        return x;
    const float t = clamp(x, -104.0, 89.0);
    const precise float n = floor(t * 1.44269502 + 0.5);
    precise float r = t - n * 0.693145752; // ln(2) in two parts, the first with 13 bits
    r = r - n * 1.42860677e-6;
    precise float e = 1.0 + r * (1.0 / 7.0);
    e = 1.0 + r * (1.0 / 6.0) * e;
    e = 1.0 + r * (1.0 / 5.0) * e;
    e = 1.0 + r * (1.0 / 4.0) * e;
    e = 1.0 + r * (1.0 / 3.0) * e;
    e = 1.0 + r * (1.0 / 2.0) * e;
    e = 1.0 + r * e;
    const int whole = int(n), first = whole / 2;
    return e * uintBitsToFloat(uint(first + 127) << 23) *
           uintBitsToFloat(uint(whole - first + 127) << 23);
}

// Return e^x - 1 without cancellation near 0.
float nj_expm1(float x)
{
    if (abs(x) > 0.5)
        return nj_exp(x) - 1.0;
    precise float e = 1.0 + x * (1.0 / 9.0);
    e = 1.0 + x * (1.0 / 8.0) * e;
    e = 1.0 + x * (1.0 / 7.0) * e;
    e = 1.0 + x * (1.0 / 6.0) * e;
    e = 1.0 + x * (1.0 / 5.0) * e;
    e = 1.0 + x * (1.0 / 4.0) * e;
    e = 1.0 + x * (1.0 / 3.0) * e;
    e = 1.0 + x * (1.0 / 2.0) * e;
    return x * e;
}

// Return log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], by the series of 2 artanh(f / (2 + f)).
float nj_log1p_small(float f)
{
    const precise float s = f / (2.0 + f), z = s * s;
    precise float sum = 1.0 / 15.0;
    sum = 1.0 / 13.0 + z * sum;
    sum = 1.0 / 11.0 + z * sum;
    sum = 1.0 / 9.0 + z * sum;
    sum = 1.0 / 7.0 + z * sum;
    sum = 1.0 / 5.0 + z * sum;
    sum = 1.0 / 3.0 + z * sum;
    return 2.0 * s + 2.0 * s * z * sum;
}

// Return log(x) for a normal number; minus infinity for 0.
float nj_log(float x)
{
    if (x == 0.0)
        return MINUS_INFINITY;
    if (!(x > 0.0) || !is_finite(x))
        return x > 0.0 ? x : NOT_A_NUMBER;
    const uint shifted = floatBitsToUint(x) - 0x3f3504f3u; // sqrt(1/2)
    const int n = int(shifted) >> 23;
    const float m = uintBitsToFloat(floatBitsToUint(x) - (uint(n) << 23));
    const precise float low = nj_log1p_small(m - 1.0) + float(n) * 1.42860677e-6;
    const precise float whole = float(n) * 0.693145752 + low;
    return whole;
}

float nj_log1p(float f)
{
    if (f > -0.29 && f < 0.41)
        return nj_log1p_small(f);
    return nj_log(1.0 + f);
}

// Compute sine and cosine of angles up to 2^17. Drivers guarantee no digits outside [-pi, pi]. pi / 2 is split so that
// the products with its first two parts, of 8 bits each, are exact.
void nj_sincos(float x, out float sin_x, out float cos_x)
{
    const precise float n = floor(x * 0.636619747 + 0.5);
    precise float r = x - n * 1.5703125;
    r = r - n * 4.825592041015625e-4;
    r = r - n * 1.26759079505673e-6;
    const precise float z = r * r;
    const precise float s =
        r +
        r * z * (-1.66666667e-1 + z * (8.33333333e-3 + z * (-1.98412698e-4 + z * 2.75573192e-6)));
    const precise float c =
        1.0 - 0.5 * z +
        z * z * (4.16666667e-2 + z * (-1.38888889e-3 + z * (2.48015873e-5 + z * -2.75573192e-7)));
    const int quarter = int(n) & 3;
    const bool swapped = (quarter & 1) != 0;
    sin_x = (quarter & 2) != 0 ? -(swapped ? c : s) : (swapped ? c : s);
    cos_x = (quarter == 1 || quarter == 2) ? -(swapped ? s : c) : (swapped ? s : c);
}

float sigmoid(float x)
{
    return 1.0 / (1.0 + nj_exp(-x));
}
