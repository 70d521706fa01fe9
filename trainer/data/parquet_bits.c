/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_bits.c: see parquet_bits.h.
 */
#include "data/parquet_bits.h"

#include <string.h>

/* Return the little-endian bytes from `at` on, eight at most, the rest zero. */
static uint64_t load(const unsigned char *at, const unsigned char *end)
{
    uint64_t word = 0;
    const size_t left = (size_t)(end - at);
    if (left >= 8)
        memcpy(&word, at, 8);
    else
        memcpy(&word, at, left);
    return word;
}

/* Read the value of `width` bits from a bit on; false if they end beyond the bytes. */
static bool read_bits(const unsigned char *at, const unsigned char *end, uint64_t bit,
                      unsigned width, uint64_t *out)
{
    const unsigned shift = (unsigned)(bit % 8);
    if ((bit + width + 7) / 8 > (uint64_t)(end - at))
        return false;
    at += bit / 8;
    *out = load(at, end) >> shift;
    if (shift + width > 64)
        *out |= (uint64_t)at[8] << (64 - shift);
    if (width < 64)
        *out &= ((uint64_t)1 << width) - 1;
    return true;
}

static bool varint(const unsigned char **at, const unsigned char *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift <= 63 && *at < end; shift += 7) {
        const unsigned byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* ---- runs ---- */

static bool begin_run(struct hybrid *h)
{
    uint64_t head, value;
    const unsigned bytes = (h->width + 7) / 8;
    if (!varint(&h->at, h->end, &head) || head >> 1 > UINT32_MAX / 8)
        return false;
    h->packed = head & 1;
    h->left = (uint32_t)(head >> 1) * (h->packed ? 8 : 1);
    if (h->packed) {
        const uint64_t want = (head >> 1) * h->width, have = (uint64_t)(h->end - h->at);
        h->packed_at = h->at;
        h->bit = 0;
        h->at += want < have ? want : have; /* the last run may be cut where its values end */
        return true;
    }
    if (!read_bits(h->at, h->end, 0, 8 * bytes, &value))
        return false;
    h->value = (uint32_t)value;
    h->at += bytes;
    return true;
}

bool hybrid_next(struct hybrid *h, uint32_t *out)
{
    uint64_t value = h->value;
    while (h->left == 0)
        if (!begin_run(h))
            return false;
    h->left--;
    if (h->packed) {
        if (!read_bits(h->packed_at, h->end, h->bit, h->width, &value))
            return false;
        h->bit += h->width;
    } else {
        value = h->value;
    }
    *out = (uint32_t)value;
    return true;
}

/* ---- differences ---- */

static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (~(value & 1) + 1);
}

bool delta_begin(struct delta *d, const unsigned char *at, const unsigned char *end)
{
    uint64_t block, first;
    *d = (struct delta){.at = at, .end = end};
    if (!varint(&d->at, end, &block) || !varint(&d->at, end, &d->minis) ||
        !varint(&d->at, end, &d->left) || !varint(&d->at, end, &first))
        return false;
    d->value = unzigzag(first);
    d->known = true;
    d->mini = d->minis; /* a block comes next */
    if (d->minis == 0 || d->minis > 1024 || block > 1 << 20 || block % d->minis != 0)
        return false;
    d->per_mini = block / d->minis;
    d->used = d->per_mini;
    return d->per_mini > 0 && d->per_mini % 8 == 0;
}

static uint64_t mini_bytes(const struct delta *d)
{
    return d->per_mini * d->widths[d->mini] / 8;
}

/* Go to the next miniblock. */
static bool next_mini(struct delta *d)
{
    uint64_t least;
    if (d->widths && d->mini < d->minis) {
        if (mini_bytes(d) > (uint64_t)(d->end - d->at))
            return false;
        d->at += mini_bytes(d);
        d->mini++;
    }
    d->used = 0;
    if (d->mini < d->minis)
        return d->widths[d->mini] <= 64;
    if (!varint(&d->at, d->end, &least) || d->minis > (uint64_t)(d->end - d->at))
        return false;
    d->least = unzigzag(least);
    d->widths = d->at;
    d->at += d->minis;
    d->mini = 0;
    return d->widths[0] <= 64;
}

bool delta_next(struct delta *d, int64_t *out)
{
    uint64_t difference = 0;
    if (d->left == 0)
        return false;
    if (!d->known) {
        if (d->used == d->per_mini && !next_mini(d))
            return false;
        const unsigned width = d->widths[d->mini];
        if (!read_bits(d->at, d->end, d->used++ * width, width, &difference))
            return false;
        d->value += d->least + difference;
    }
    d->known = false;
    d->left--;
    *out = (int64_t)d->value;
    return true;
}

const unsigned char *delta_end(const struct delta *from)
{
    struct delta d = *from;
    uint64_t left = d.left > 0 && d.known ? d.left - 1 : d.left; /* number of differences */
    while (left > d.per_mini - d.used) {
        left -= d.per_mini - d.used;
        if (!next_mini(&d))
            return NULL;
    }
    if (!d.widths)
        return d.at;
    if (d.mini < d.minis && mini_bytes(&d) > (uint64_t)(d.end - d.at))
        return NULL;
    return d.mini < d.minis ? d.at + mini_bytes(&d) : d.at;
}
