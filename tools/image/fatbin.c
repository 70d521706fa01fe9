/* SPDX-License-Identifier: Apache-2.0
 *
 * fatbin.c: decides which fatbin containers are accepted. NVIDIA does not document the format; the layout here holds
 * for every container of CUDA 13.0 and of its libraries, and for those that the tools of CUDA 13.3 and 13.5 write of
 * cubins, which are the same bytes. Anything unknown is refused, since it could be code that nobody checked.
 */
#include "image/fatbin.h"

#include <stdlib.h>
#include <zstd.h>

enum {
    CONTAINER_HEADER_BYTES = 16,
    ENTRY_HEADER_BYTES = 64, /* minimum size */
    ENTRY_HEADER_MAX = 4096,
    CODE_MAX_BYTES = 1 << 28,
};

#define MAGIC UINT32_C(0xba55ed50)

enum {
    FLAG_64BIT = 0x1,
    FLAG_DEBUG = 0x2,
    FLAG_LINUX = 0x10,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_ARCH_SPECIFIC = 0x100000,
    FLAG_FAMILY = 0x200000,
    FLAG_MERCURY = 0x1000000, /* set on every ELF entry from sm_100 */
    FLAGS_KNOWN =
        FLAG_64BIT | FLAG_LINUX | FLAG_ZSTD | FLAG_ARCH_SPECIFIC | FLAG_FAMILY | FLAG_MERCURY,
};

const char *fatbin_compiled(uint16_t kind)
{
    static const struct {
        uint16_t kind;
        const char *holds;
    } kinds[] = {
        {FATBIN_PTX, "PTX"},
        {FATBIN_NVVM, "NVVM IR or LTO-IR"}, /* written by -dlto and code=lto_NN */
        {FATBIN_TILE_IR, "Tile IR"},        /* written by -enable-tile, from CUDA 13.3 on */
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].kind == kind)
            return kinds[i].holds;
    return NULL;
}

int fatbin_open(struct span container, struct fatbin *out, char why[WHY_BYTES])
{
    if (!span_has(container, 0, CONTAINER_HEADER_BYTES))
        return fail(why, "fatbin ends inside its header");
    if (span_u32(container, 0) != MAGIC)
        return fail(why, "fatbin has magic 0x%08x, not 0x%08x", span_u32(container, 0), MAGIC);
    if (span_u16(container, 4) != 1 || span_u16(container, 6) != CONTAINER_HEADER_BYTES)
        return fail(why, "fatbin has an unknown version %u", span_u16(container, 4));
    if (span_u64(container, 8) != container.bytes - CONTAINER_HEADER_BYTES)
        return fail(why, "fatbin says %llu bytes of entries and holds %zu",
                    (unsigned long long)span_u64(container, 8),
                    container.bytes - CONTAINER_HEADER_BYTES);
    *out = (struct fatbin){.container = container, .at = CONTAINER_HEADER_BYTES};
    return 0;
}

static int check_flags(uint64_t flags, char why[WHY_BYTES])
{
    static const struct {
        uint64_t flag;
        const char *text;
    } refused[] = {
        {FLAG_LZ4, "is compressed with LZ4; embed it uncompressed or with zstd"},
        {FLAG_DEBUG, "is a debug build"},
        {~(uint64_t)FLAGS_KNOWN, "has unknown flags"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (flags & refused[i].flag)
            return fail(why, "fatbin entry %s (flags 0x%llx)", refused[i].text,
                        (unsigned long long)flags);
    if ((flags & FLAG_ARCH_SPECIFIC) && (flags & FLAG_FAMILY))
        return fail(why, "fatbin entry is labelled both a and f");
    if (!(flags & FLAG_64BIT))
        return fail(why, "fatbin entry is not 64-bit");
    return 0;
}

int fatbin_next(struct fatbin *f, struct fatbin_entry *out, char why[WHY_BYTES])
{
    struct span rest = span_part(f->container, f->at, f->container.bytes - f->at);
    if (rest.bytes == 0)
        return 0;
    if (rest.bytes < ENTRY_HEADER_BYTES)
        return fail(why, "fatbin ends inside an entry header");
    uint32_t header_bytes = span_u32(rest, 4);
    uint64_t stored_bytes = span_u64(rest, 8);
    if (header_bytes < ENTRY_HEADER_BYTES || header_bytes > ENTRY_HEADER_MAX ||
        header_bytes % 8 != 0)
        return fail(why, "fatbin entry has a header of %u bytes", header_bytes);
    if (!span_has(rest, header_bytes, stored_bytes))
        return fail(why, "fatbin entry for sm_%u is truncated", span_u32(rest, 28));
    *out = (struct fatbin_entry){
        .kind = span_u16(rest, 0),
        .sm = span_u32(rest, 28),
        .flags = span_u64(rest, 40),
        .payload = span_part(rest, header_bytes, stored_bytes),
    };
    f->at += header_bytes + (size_t)stored_bytes;
    if (out->kind != FATBIN_ELF)
        return 1; /* callers refuse the entry by name; its flags do not matter */
    if (check_flags(out->flags, why))
        return -1;
    out->suffix = out->flags & FLAG_ARCH_SPECIFIC ? 'a' : out->flags & FLAG_FAMILY ? 'f' : 0;
    out->zstd = (out->flags & FLAG_ZSTD) != 0;
    out->code_bytes = out->zstd ? span_u64(rest, 56) : stored_bytes;
    if (out->zstd) /* remove the padding of the payload */
        out->payload = span_part(out->payload, 0, span_u32(rest, 16));
    return 1;
}

int fatbin_code(const struct fatbin_entry *e, struct span *code, void **owned, char why[WHY_BYTES])
{
    *owned = NULL;
    *code = e->payload;
    if (!e->zstd)
        return 0;
    if (e->code_bytes == 0 || e->code_bytes > CODE_MAX_BYTES)
        return fail(why, "fatbin entry for sm_%u claims %llu bytes uncompressed", e->sm,
                    (unsigned long long)e->code_bytes);
    void *data = malloc((size_t)e->code_bytes);
    if (!data)
        return fail(why, "no memory for %llu bytes of code", (unsigned long long)e->code_bytes);
    size_t got = ZSTD_decompress(data, (size_t)e->code_bytes, e->payload.data, e->payload.bytes);
    if (ZSTD_isError(got) || got != e->code_bytes) {
        free(data);
        return fail(why, "fatbin entry for sm_%u does not decompress: %s", e->sm,
                    ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size");
    }
    *owned = data;
    *code = (struct span){data, got};
    return 0;
}
