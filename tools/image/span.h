/* SPDX-License-Identifier: Apache-2.0
 *
 * span.h: a range of bytes and little-endian reads from it, each checked against its end. A read outside returns 0;
 * callers check span_has() first if that matters.
 */
#ifndef NOJIT_TOOLS_SPAN_H
#define NOJIT_TOOLS_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const uint8_t *data;
    size_t bytes;
};

static inline bool span_has(struct span s, uint64_t off, uint64_t bytes)
{
    return off <= s.bytes && bytes <= s.bytes - off;
}

/* Return a part of a span; empty if it does not lie inside. */
static inline struct span span_part(struct span s, uint64_t off, uint64_t bytes)
{
    if (!span_has(s, off, bytes))
        return (struct span){0};
    return (struct span){s.data + off, (size_t)bytes};
}

static inline uint64_t span_uint(struct span s, uint64_t off, unsigned bytes)
{
    uint64_t value = 0;
    if (!span_has(s, off, bytes))
        return 0;
    for (unsigned i = bytes; i > 0; i--)
        value = value << 8 | s.data[off + i - 1];
    return value;
}

static inline uint8_t span_u8(struct span s, uint64_t off)
{
    return (uint8_t)span_uint(s, off, 1);
}
static inline uint16_t span_u16(struct span s, uint64_t off)
{
    return (uint16_t)span_uint(s, off, 2);
}
static inline uint32_t span_u32(struct span s, uint64_t off)
{
    return (uint32_t)span_uint(s, off, 4);
}
static inline uint64_t span_u64(struct span s, uint64_t off)
{
    return span_uint(s, off, 8);
}

/* Return the NUL-terminated string at an offset, or NULL if it does not end inside or is longer than any that a
 * compiler writes: many strings that share one long end would take quadratic time. */
enum { SPAN_STRING_BYTES = 4096 };
static inline const char *span_string(struct span s, uint64_t off)
{
    const size_t left = off < s.bytes ? s.bytes - (size_t)off : 0;
    const size_t most = left < SPAN_STRING_BYTES ? left : SPAN_STRING_BYTES;
    if (left == 0 || !memchr(s.data + off, 0, most))
        return NULL;
    return (const char *)s.data + off;
}

/* Return the place where the bytes next occur from `from` on, or s.bytes. */
static inline size_t span_find(struct span s, const void *bytes, size_t count, size_t from)
{
    const uint8_t *at = from < s.bytes ? memmem(s.data + from, s.bytes - from, bytes, count) : NULL;
    return at ? (size_t)(at - s.data) : s.bytes;
}

static inline bool span_all_zero(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (s.data[i])
            return false;
    return true;
}

#endif
