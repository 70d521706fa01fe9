/* SPDX-License-Identifier: Apache-2.0
 *
 * crc32.c: the remainder of a polynomial over GF(2), whose bits are reversed: the highest power
 * of x is bit 0. Chunks are divided in parallel; appending bytes multiplies by a power of x, so
 * their remainders add up.
 */
#include "formats/crc32.h"

#include <string.h>

enum { LANES = 8, CHUNK_BYTES = 1 << 20, CHUNKS = 64 };
static const uint32_t divisor = 0xedb88320, one = 0x80000000;

/* table[k][b]: remainder of byte b followed by k zeros. */
struct tables {
    uint32_t table[LANES][256];
};

static void fill(struct tables *t)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t x = b;
        for (int i = 0; i < 8; i++)
            x = x >> 1 ^ (x & 1 ? divisor : 0);
        t->table[0][b] = x;
    }
    for (int k = 1; k < LANES; k++)
        for (int b = 0; b < 256; b++) {
            const uint32_t x = t->table[k - 1][b];
            t->table[k][b] = x >> 8 ^ t->table[0][x & 255];
        }
}

static uint32_t crc_of_chunk(const struct tables *t, const unsigned char *data, size_t bytes)
{
    uint32_t crc = UINT32_MAX;
    for (; bytes >= LANES; bytes -= LANES, data += LANES) {
        uint32_t x = 0;
        for (int i = 0; i < LANES; i++) {
            const uint32_t before = i < 4 ? crc >> 8 * i & 255 : 0;
            x ^= t->table[LANES - 1 - i][data[i] ^ before];
        }
        crc = x;
    }
    for (; bytes > 0; bytes--, data++)
        crc = crc >> 8 ^ t->table[0][(crc ^ *data) & 255];
    return ~crc;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = one; bit != 0; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? divisor : 0);
    }
    return product;
}

/* Return x^(8 * bytes). */
static uint32_t power_of(size_t bytes)
{
    uint32_t power = one, square = one >> 8;
    for (; bytes > 0; bytes >>= 1) {
        if (bytes & 1)
            power = times(power, square);
        square = times(square, square);
    }
    return power;
}

uint32_t crc32_of(const void *data, size_t bytes)
{
    const unsigned char *from = data;
    struct tables t;
    uint32_t crc = 0;
    fill(&t);
    while (bytes > 0) {
        const size_t group =
            bytes < (size_t)CHUNKS * CHUNK_BYTES ? bytes : (size_t)CHUNKS * CHUNK_BYTES;
        const size_t chunks = (group + CHUNK_BYTES - 1) / CHUNK_BYTES;
        const size_t last = group - (chunks - 1) * CHUNK_BYTES;
        uint32_t part[CHUNKS];
#pragma omp parallel for schedule(dynamic)
        for (size_t c = 0; c < chunks; c++)
            part[c] = crc_of_chunk(&t, from + c * CHUNK_BYTES, c + 1 < chunks ? CHUNK_BYTES : last);
        for (size_t c = 0; c < chunks; c++)
            crc = times(crc, power_of(c + 1 < chunks ? CHUNK_BYTES : last)) ^ part[c];
        from += group;
        bytes -= group;
    }
    return crc;
}
