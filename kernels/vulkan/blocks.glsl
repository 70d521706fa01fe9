// SPDX-License-Identifier: Apache-2.0
//
// blocks.glsl: one element of a block of quantized type TYPE, by the numbers of base/tensor_type.h. Values are bitwise
// identical to those of kernels/ref/blocks.h.
const int Q8_0 = 3, Q4_0 = 4, Q4_1 = 5, Q5_0 = 6, Q5_1 = 7, Q2_K = 8, Q3_K = 9, Q4_K = 10,
          Q5_K = 11, Q6_K = 12, IQ4_NL = 13, IQ4_XS = 14, NF4 = 15, I4_32 = 16, I4_128 = 18,
          F8_32 = 19, MXFP4 = 21;

const int elements_of[22] = int[](1, 1, 1, 32, 32, 32, 32, 32, 256, 256, 256, 256, 256, 32, 256, 64,
                                  32, 64, 128, 32, 128, 32);
const int bytes_of[22] = int[](4, 2, 2, 34, 18, 20, 22, 24, 84, 110, 144, 176, 210, 18, 136, 36, 20,
                               36, 68, 36, 132, 17);
const float iq4_values[16] = float[](-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0,
                                     13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0);
const float nf4_values[16] = float[](
    -1.0, -0.69619280, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.091050036, 0.0,
    0.079580300, 0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1.0);

// First byte of the block in `data`. byte_at() returns byte i of the block, and avoids remainders of 64-bit integers:
// they gave wrong bytes on an H100 with driver 580.159.
int64_t nj_block_at;

int byte_at(int i)
{
    const int64_t at = nj_block_at + i;
    return from_i32(data, at >> 2).v[0] >> (int(at) & 3) * 8 & 255;
}

int signed_byte(int i)
{
    return byte_at(i) << 24 >> 24;
}

// Return 2^n, which must be a normal float.
float power_of_two(int n)
{
    return uintBitsToFloat(uint(n + 127) << 23);
}

float half_at(int i)
{
    const int bits = byte_at(i) | byte_at(i + 1) << 8, exponent = bits >> 10 & 31,
              digits = bits & 1023;
    const float sign_of = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31)
        return digits != 0 ? NOT_A_NUMBER : -sign_of * MINUS_INFINITY;
    return sign_of * float(exponent != 0 ? 1024 + digits : digits) *
           power_of_two(max(exponent, 1) - 25);
}

int bits_at(int i)
{
    return byte_at(i) | byte_at(i + 1) << 8 | byte_at(i + 2) << 16 | byte_at(i + 3) << 24;
}

// Return n times the float with these bits. A driver may take a subnormal float for zero even if the product is normal;
// in that case the float is computed as its digits times 2^-149.
float times(float n, int bits)
{
    precise float x = n * intBitsToFloat(bits);
    if (x != 0.0 || (bits >> 23 & 255) != 0)
        return x;
    x = n * float(bits & 0x7fffff) * power_of_two(-75);
    x *= power_of_two(-74);
    return bits < 0 ? -x : x;
}

// Return nibble e of 16 bytes: the low nibbles first, then the high ones.
int nibble(int i, int e)
{
    return byte_at(i + e % 16) >> e / 16 * 4 & 15;
}

int fifth_bit(int i, int e)
{
    return (byte_at(i + e / 8) >> e % 8 & 1) << 4;
}

// Return the two bits of element e; each 32 bytes hold 128 elements.
int quarter(int i, int e)
{
    return byte_at(i + 32 * (e / 128) + e % 32) >> 2 * (e % 128 / 32) & 3;
}

// Return the 4-bit number of element e: two per byte, the first in the low bits.
int half_byte(int i, int e)
{
    return byte_at(i + e / 2) >> e % 2 * 4 & 15;
}

float element_of_32(int e)
{
    const float d = half_at(0);
    if (TYPE == Q8_0)
        return d * float(signed_byte(2 + e));
    if (TYPE == Q4_0)
        return d * float(nibble(2, e) - 8);
    if (TYPE == Q4_1)
        return d * float(nibble(4, e)) + half_at(2);
    if (TYPE == Q5_0)
        return d * float((nibble(6, e) | fifth_bit(2, e)) - 16);
    if (TYPE == Q5_1)
        return d * float(nibble(8, e) | fifth_bit(4, e)) + half_at(2);
    return d * iq4_values[nibble(2, e)];
}

float element_q2_k(int e)
{
    const int s = byte_at(e / 16);
    return half_at(80) * float(s & 15) * float(quarter(16, e)) - half_at(82) * float(s >> 4);
}

// Return an element of Q3_K. Its scales have six bits: four from the first eight bytes, two from the last four.
float element_q3_k(int e)
{
    const int j = e / 16, high = byte_at(e % 32) >> e / 32 & 1;
    const int low = j < 8 ? byte_at(96 + j) & 15 : byte_at(96 + j - 8) >> 4;
    const int scale = low | (byte_at(96 + 8 + j % 4) >> 2 * (j / 4) & 3) << 4;
    return half_at(108) * float(scale - 32) * float(quarter(32, e) - (high != 0 ? 0 : 4));
}

// Return an element of Q4_K or Q5_K. Group g has a 6-bit scale and a 6-bit minimum, packed in 12 bytes.
float element_q45_k(int e)
{
    const int g = e / 32, l = e % 32, s = 4, low = TYPE == Q5_K ? 48 : 16;
    const int scale =
        g < 4 ? byte_at(s + g) & 63 : (byte_at(s + g + 4) & 15) | byte_at(s + g - 4) >> 6 << 4;
    const int least =
        g < 4 ? byte_at(s + g + 4) & 63 : byte_at(s + g + 4) >> 4 | byte_at(s + g) >> 6 << 4;
    int q = byte_at(low + 32 * (g / 2) + l) >> 4 * (g & 1) & 15;
    if (TYPE == Q5_K)
        q |= (byte_at(16 + l) >> g & 1) << 4;
    return half_at(0) * float(scale) * float(q) - half_at(2) * float(least);
}

float element_q6_k(int e)
{
    const int r = e % 128 / 32;
    const int low = byte_at(64 * (e / 128) + 32 * (r & 1) + e % 32) >> 4 * (r >> 1) & 15;
    const int q = (low | quarter(128, e) << 4) - 32;
    return half_at(208) * float(signed_byte(192 + e / 16)) * float(q);
}

float element_iq4_xs(int e)
{
    const int g = e / 32, high = byte_at(2) | byte_at(3) << 8;
    const int low = byte_at(g / 2 + 4) >> 4 * (g & 1) & 15;
    const float scale = half_at(0) * float((low | (high >> 2 * g & 3) << 4) - 32);
    return scale * iq4_values[nibble(8 + 16 * g, e % 32)];
}

float element_i4(int e)
{
    const float n = float(half_byte(4, e) - byte_at(2));
    return byte_at(3) != 0 ? times(n, byte_at(0) << 16 | byte_at(1) << 24) : n * half_at(0);
}

// Return an element of E4M3: four bits of exponent, biased by 7, and three of mantissa.
float element_f8(int e)
{
    const int bits = byte_at(4 + e), exponent = bits >> 3 & 15, digits = bits & 7;
    const float x =
        float(exponent != 0 ? 8 + digits : digits) * power_of_two(max(exponent, 1) - 10);
    return times((bits & 0x80) != 0 ? -x : x, bits_at(0));
}

// Return an element of MXFP4: a power of two, whose exponent is a byte, times half of a number of the table.
float element_mxfp4(int e)
{
    const float twice[8] = float[](0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0);
    const int n = nibble(1, e), exponent = byte_at(0);
    const float x = twice[n & 7];
    return x == 0.0
               ? 0.0
               : times(n > 7 ? -x : x, exponent < 2 ? 0x200000 << exponent : exponent - 1 << 23);
}

float block_element(int e)
{
    if (TYPE == MXFP4)
        return element_mxfp4(e);
    if (TYPE == Q2_K)
        return element_q2_k(e);
    if (TYPE == Q3_K)
        return element_q3_k(e);
    if (TYPE == Q4_K || TYPE == Q5_K)
        return element_q45_k(e);
    if (TYPE == Q6_K)
        return element_q6_k(e);
    if (TYPE == IQ4_XS)
        return element_iq4_xs(e);
    if (TYPE == NF4)
        return times(nf4_values[half_byte(4, e ^ 1)], bits_at(0));
    if (TYPE >= I4_32 && TYPE <= I4_128)
        return element_i4(e);
    return TYPE >= F8_32 ? element_f8(e) : element_of_32(e);
}
