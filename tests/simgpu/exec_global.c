/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_global.c: loads and stores of global memory, each checked against the allocation it falls
 * into: bounds, alignment and, where the allocation keeps record, whether the bytes were ever
 * written, and whether another block of the launch wrote them: nothing in the table orders blocks.
 * That a block writes what another has read before is not found.
 *
 * A writer is noted as launch (32 bits), block (30) and which halves of the word it wrote (2). What
 * blocks change by atomic instructions has all of them as its writer: such instructions may follow, and
 * nothing else.
 */
#include "exec.h"

#include <string.h>

/* The places on the host that the lanes of one access touch. Lanes that take no part have the place of the first
 * that does. */
struct span {
    uint64_t at[LANES];
    unsigned char *host[LANES];
    unsigned char *marks[LANES];     /* NULL: not kept */
    uint64_t *writers[LANES];        /* NULL: not kept */
    bool marked, noted;              /* no mark, no writer is NULL */
    const struct sim_allocation *in; /* that holds all; NULL: */
    const struct sim_allocation *each[LANES];
    bool row; /* each lane falls right behind the one before it, none is left out */
    bool one; /* all fall on the same bytes */
};

INLINE bool is_written(const unsigned char *marks, uint32_t bytes)
{
    uint64_t part[2] = {0x0101010101010101, 0x0101010101010101};
    memcpy(part, marks, bytes);
    return (part[0] & part[1]) == 0x0101010101010101;
}

static void report_outside(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                           uint32_t bytes)
{
    const struct sim_allocation *near = sim_memory_nearest(warp->block->launch->memory, address);
    if (!near)
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                     "%u bytes at %#llx, and nothing is allocated", bytes,
                     (unsigned long long)address);
    else
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                     "%u bytes at %#llx, which is byte %lld of an allocation of %zu bytes at %#llx",
                     bytes, (unsigned long long)address, (long long)(address - near->address),
                     near->bytes, (unsigned long long)near->address);
}

/* The allocation that holds a lane's access, or NULL after a fault. */
static const struct sim_allocation *allocation_of(struct warp *warp, const struct insn *insn,
                                                  int lane, uint64_t address, uint32_t bytes,
                                                  uint32_t align)
{
    if (address % align) {
        sim_fault_at(warp, insn, lane, SIM_MISALIGNED, "%u bytes at %#llx, no multiple of %u",
                     bytes, (unsigned long long)address, align);
        return NULL;
    }
    const struct sim_allocation *found =
        sim_memory_find(warp->block->launch->memory, address, bytes);
    if (!found)
        report_outside(warp, insn, lane, address, bytes);
    return found;
}

static void report_unwritten(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                             uint32_t bytes)
{
    const struct sim_allocation *in = sim_memory_nearest(warp->block->launch->memory, address);
    sim_fault_at(warp, insn, lane, SIM_UNWRITTEN,
                 "%u bytes at %#llx, byte %lld of an allocation of %zu bytes at %#llx, which "
                 "nothing wrote",
                 bytes, (unsigned long long)address, (long long)(address - in->address), in->bytes,
                 (unsigned long long)in->address);
}

/* All lanes in the allocation that the warp used last. */
INLINE bool locate_together(const struct warp *warp, uint32_t bytes, struct span *span)
{
    const struct sim_allocation *recent = warp->recent;
    uint64_t low = UINT64_MAX, high = 0, any = 0, apart = 0;
    for (int lane = 0; lane < LANES; lane++) {
        low = span->at[lane] < low ? span->at[lane] : low;
        high = span->at[lane] > high ? span->at[lane] : high;
        any |= span->at[lane];
        apart |= span->at[lane] ^ (span->at[0] + (uint64_t)lane * bytes);
    }
    if (!recent || low < recent->address || any % bytes || bytes > recent->bytes ||
        high - recent->address > recent->bytes - bytes)
        return false;
    span->marked = recent->written != NULL;
    span->noted = recent->writers != NULL;
    span->in = recent;
    span->row = apart == 0 && low % 4 == 0; /* none of them can be left out */
    span->one = low == high;
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t into = span->at[lane] - recent->address;
        span->host[lane] = recent->host + into;
        span->marks[lane] = span->marked ? recent->written + into : NULL;
        span->writers[lane] = recent->writers ? recent->writers + into / 4 : NULL;
    }
    return true;
}

static bool locate_each(struct warp *warp, const struct insn *insn, uint32_t bytes,
                        struct span *span)
{
    span->marked = true;
    span->in = NULL;
    span->noted = span->row = span->one = false;
    for (int i = 0; i < LANES; i++) {
        const int lane = warp->lanes[i] ? i : __builtin_ctz(warp->mask);
        const struct sim_allocation *in =
            allocation_of(warp, insn, lane, span->at[lane], bytes, bytes);
        if (!in)
            return false;
        const uint64_t into = span->at[lane] - in->address;
        span->host[i] = in->host + into;
        span->marks[i] = in->written ? in->written + into : NULL;
        span->writers[i] = in->writers ? in->writers + into / 4 : NULL;
        span->each[i] = in;
        span->marked &= in->written != NULL;
        warp->recent = in;
    }
    return true;
}

/* Notes that the launch writes to an allocation. */
INLINE void note_launch(const struct warp *warp, const struct sim_allocation *in)
{
    const uint32_t number = warp->block->launch->number;
    if (__atomic_load_n(in->launch, __ATOMIC_RELAXED) != number)
        __atomic_store_n(in->launch, number, __ATOMIC_RELAXED);
}

INLINE bool locate(struct warp *warp, const struct insn *insn, sim_place address, uint32_t bytes,
                   struct span *span)
{
    const uint64_t *base = sim_slot(warp, address);
    const uint64_t offset = (uint64_t)(int64_t)insn->integer[0];
    const uint64_t first = base[__builtin_ctz(warp->mask)];
    for (int lane = 0; lane < LANES; lane++)
        span->at[lane] = (warp->lanes[lane] ? base[lane] : first) + offset;
    return locate_together(warp, bytes, span) || locate_each(warp, insn, bytes, span);
}

/* All lanes of a row, whose bytes lie one behind the other. */
INLINE bool is_row_written(const unsigned char *marks, uint32_t bytes)
{
    uint64_t all = UINT64_MAX;
    for (uint32_t i = 0; i < LANES * bytes / 8; i++) {
        uint64_t part;
        memcpy(&part, marks + 8 * i, sizeof part);
        all &= part;
    }
    return (all & 0x0101010101010101) == 0x0101010101010101;
}

INLINE bool check_written(struct warp *warp, const struct insn *insn, uint32_t bytes,
                          const struct span *span)
{
    bool all = span->marked;
    if (span->marked && span->row)
        all = is_row_written(span->marks[0], bytes);
    else if (span->marked && span->one)
        all = is_written(span->marks[0], bytes);
    else if (span->marked)
        for (int lane = 0; lane < LANES; lane++)
            all &= is_written(span->marks[lane], bytes);
    for (int i = 0; i < LANES && !all; i++) {
        if (span->marks[i] && !is_written(span->marks[i], bytes)) {
            const int lane = warp->lanes[i] ? i : __builtin_ctz(warp->mask);
            report_unwritten(warp, insn, lane, span->at[lane], bytes);
            return false;
        }
    }
    return true;
}

/* Halves of a word that an access of so many bytes takes. */
INLINE uint64_t halves_of(uint64_t address, uint32_t bytes)
{
    return bytes >= 4 ? 3 : UINT64_C(1) << (address >> 1 & 1);
}

#define EVERY_BLOCK UINT64_C(0xfffffffc) /* in the place of a writer's block */

/* Return whether another than `own` of the same launch wrote to what is accessed. */
INLINE bool is_foreign(uint64_t own, uint64_t writer, uint64_t halves)
{
    const uint64_t differ = writer ^ own;
    return differ >> 32 == 0 && differ >> 2 != 0 && (writer & halves) != 0;
}

static void report_foreign(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                           uint64_t writer)
{
    const struct sim_allocation *in = sim_memory_nearest(warp->block->launch->memory, address);
    const uint32_t *grid = warp->block->launch->grid;
    const uint32_t number = (uint32_t)writer >> 2;
    if ((writer & EVERY_BLOCK) == EVERY_BLOCK)
        sim_fault_at(warp, insn, lane, SIM_SHARED_RACE,
                     "at %#llx, which blocks of the same launch change by atomic instructions",
                     (unsigned long long)address);
    else
        sim_fault_at(
            warp, insn, lane, SIM_SHARED_RACE,
            "at %#llx, byte %lld of an allocation of %zu bytes at %#llx, which block (%u, %u, "
            "%u) of the same launch wrote",
            (unsigned long long)address, (long long)(address - in->address), in->bytes,
            (unsigned long long)in->address, number % grid[0], number / grid[0] % grid[1],
            number / grid[0] / grid[1]);
}

INLINE uint64_t writer_of(const uint64_t *writer)
{
    return __atomic_load_n(writer, __ATOMIC_RELAXED);
}

/* Return whether no other block of the launch wrote any half of so many words, which is nearly always so. */
INLINE bool is_row_own(const uint64_t *writers, uint32_t words, uint64_t own)
{
    uint64_t foreign = 0;
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t differ = writers[i] ^ own;
        foreign |= (differ >> 32 == 0) & (differ >> 2 != 0);
    }
    return !foreign;
}

/* The same for all lanes of an access. False: each must be looked at. */
INLINE bool are_quickly_own(uint32_t bytes, const struct span *span, uint64_t own)
{
    const uint32_t words = (bytes + 3) / 4;
    if (span->in && __atomic_load_n(span->in->launch, __ATOMIC_RELAXED) != own >> 32)
        return true;
    if (!span->noted)
        return false;
    if (span->row)
        return is_row_own(span->writers[0], LANES * bytes / 4, own);
    bool all = true;
    for (int lane = 0; lane < (span->one ? 1 : LANES); lane++)
        all &= is_row_own(span->writers[lane], words, own);
    return all;
}

/* Return false after a fault: another block of the launch wrote some of the bytes. */
INLINE bool check_writers(struct warp *warp, const struct insn *insn, uint32_t bytes,
                          const struct span *span)
{
    const uint32_t words = (bytes + 3) / 4;
    if (are_quickly_own(bytes, span, warp->writer))
        return true;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const uint64_t halves = halves_of(span->at[lane], bytes);
        for (uint32_t i = 0; span->writers[lane] && i < words; i++) {
            const uint64_t writer = writer_of(&span->writers[lane][i]);
            if (is_foreign(warp->writer, writer, halves)) {
                report_foreign(warp, insn, lane, span->at[lane] + 4 * i, writer);
                return false;
            }
        }
    }
    return true;
}

/* Notes the writer of the whole words that an access takes. */
INLINE void note_words(uint32_t bytes, const struct span *span, uint64_t writer)
{
    for (uint32_t i = 0; span->row && i < LANES * bytes / 4; i++)
        span->writers[0][i] = writer;
    for (int lane = 0; lane < LANES && !span->row; lane++)
        for (uint32_t i = 0; i < bytes / 4; i++)
            span->writers[lane][i] = writer;
}

/* The same, and notes that `own` writes them: of two blocks that do so in one instant, one finds the
 * other. */
INLINE bool claim_writers(struct warp *warp, const struct insn *insn, uint32_t bytes,
                          const struct span *span, uint64_t own)
{
    const uint32_t words = (bytes + 3) / 4;
    for (int lane = 0; lane < LANES && !span->in; lane++)
        note_launch(warp, span->each[lane]);
    if (span->in)
        note_launch(warp, span->in);
    if ((span->row || bytes >= 4) && !warp->block->launch->several &&
        are_quickly_own(bytes, span, own)) {
        note_words(bytes, span, own | 3);
        return true;
    }
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const uint64_t halves = halves_of(span->at[lane], bytes);
        const uint64_t mine = own | halves;
        for (uint32_t i = 0; span->writers[lane] && i < words; i++) {
            uint64_t *writer = &span->writers[lane][i], before = writer_of(writer), after;
            do {
                if (is_foreign(own, before, halves)) {
                    report_foreign(warp, insn, lane, span->at[lane] + 4 * i, before);
                    return false;
                }
                after = (before ^ mine) >> 2 ? mine : before | mine;
            } while (after != before &&
                     !__atomic_compare_exchange_n(writer, &before, after, true, __ATOMIC_RELAXED,
                                                  __ATOMIC_RELAXED));
        }
    }
    return true;
}

bool sim_global_read(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                     uint32_t bytes, uint32_t align, void *to)
{
    const struct sim_allocation *in = allocation_of(warp, insn, lane, address, bytes, align);
    if (!in)
        return false;
    const uint64_t into = address - in->address;
    for (uint32_t i = 0; in->written && i < bytes; i++) {
        if (!in->written[into + i]) {
            report_unwritten(warp, insn, lane, address, bytes);
            return false;
        }
    }
    for (uint64_t word = into / 4; in->writers && word < (into + bytes + 3) / 4; word++) {
        const uint64_t writer = writer_of(&in->writers[word]);
        if (is_foreign(warp->writer, writer, 3)) {
            report_foreign(warp, insn, lane, in->address + 4 * word, writer);
            return false;
        }
    }
    memcpy(to, in->host + into, bytes);
    return true;
}

/* R: what a T becomes in its register. */
#define LOAD(name, T, R, count)                                                                    \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        const uint32_t bytes = count * sizeof(T);                                                  \
        struct span span;                                                                          \
        if (!locate(warp, insn, insn->o[count], bytes, &span) ||                                   \
            !check_written(warp, insn, bytes, &span) || !check_writers(warp, insn, bytes, &span))  \
            return;                                                                                \
        for (int i = 0; i < count && span.row; i++) {                                              \
            R *result = sim_slot(warp, insn->o[i]);                                                \
            const T *from = (const T *)span.host[0] + i;                                           \
            EACH_LANE result[lane] = from[count * lane];                                           \
        }                                                                                          \
        for (int i = 0; i < count && !span.row; i++) {                                             \
            R *result = sim_slot(warp, insn->o[i]);                                                \
            EACH_LANE                                                                              \
            {                                                                                      \
                const R value = ((const T *)span.host[lane])[i];                                   \
                result[lane] = warp->lanes[lane] ? value : result[lane];                           \
            }                                                                                      \
        }                                                                                          \
    }

#define STORE(name, R, T, count)                                                                   \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        const uint32_t bytes = count * sizeof(T);                                                  \
        struct span span;                                                                          \
        if (!locate(warp, insn, insn->o[0], bytes, &span) ||                                       \
            !claim_writers(warp, insn, bytes, &span, warp->writer))                                \
            return;                                                                                \
        for (int i = 0; i < count && span.row; i++) {                                              \
            const R *source = sim_slot(warp, insn->o[1 + i]);                                      \
            T *to = (T *)span.host[0] + i;                                                         \
            EACH_LANE to[count * lane] = (T)source[lane];                                          \
        }                                                                                          \
        for (int i = 0; i < count && !span.row; i++) {                                             \
            const R *source = sim_slot(warp, insn->o[1 + i]);                                      \
            for (uint32_t left = warp->mask; left; left &= left - 1) {                             \
                const int lane = __builtin_ctz(left);                                              \
                ((T *)span.host[lane])[i] = (T)source[lane];                                       \
            }                                                                                      \
        }                                                                                          \
        if (span.marked && span.row && is_row_written(span.marks[0], bytes))                       \
            return;                                                                                \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            if (span.marks[lane] && !is_written(span.marks[lane], bytes))                          \
                memset(span.marks[lane], 1, bytes);                                                \
    }

LOAD(load_u8, uint8_t, uint32_t, 1)
LOAD(load_s8, int8_t, int16_t, 1)
LOAD(load_16, uint16_t, uint16_t, 1)
LOAD(load_32, uint32_t, uint32_t, 1)
LOAD(load_32_wide, uint32_t, uint64_t, 1)
LOAD(load_s32, int32_t, int64_t, 1)
LOAD(load_32_2, uint32_t, uint32_t, 2)
LOAD(load_32_4, uint32_t, uint32_t, 4)
STORE(store_8, uint32_t, uint8_t, 1)
STORE(store_16, uint16_t, uint16_t, 1)
STORE(store_16_4, uint16_t, uint16_t, 4)
STORE(store_32, uint32_t, uint32_t, 1)
STORE(store_32_2, uint32_t, uint32_t, 2)
STORE(store_32_4, uint32_t, uint32_t, 4)

static void red_max_u32(struct warp *warp, const struct insn *insn)
{
    const uint32_t *source = sim_slot(warp, insn->o[1]);
    struct span span;
    if (!locate(warp, insn, insn->o[0], 4, &span) || !check_written(warp, insn, 4, &span) ||
        !claim_writers(warp, insn, 4, &span, warp->writer | EVERY_BLOCK))
        return;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t *word = (uint32_t *)span.host[lane];
        uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
        while (before < source[lane] &&
               !__atomic_compare_exchange_n(word, &before, source[lane], true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
            continue;
    }
}

static const struct sim_opcode rows[] = {
    {"ld.global.u8", "r=G", load_u8, GUARD_LANES},
    {"ld.global.s8", "h=G", load_s8, GUARD_LANES},
    {"ld.global.u16", "h=G", load_16, GUARD_LANES},
    {"ld.global.u32", "r=G", load_32, GUARD_LANES},
    {"ld.global.u32", "l=G", load_32_wide, GUARD_LANES},
    {"ld.global.s32", "l=G", load_s32, GUARD_LANES},
    {"ld.global.f32", "r=G", load_32, GUARD_LANES},
    {"ld.global.v2.u32", "{rr}=G", load_32_2, GUARD_LANES},
    {"ld.global.v2.f32", "{rr}=G", load_32_2, GUARD_LANES},
    {"ld.global.v4.u32", "{rrrr}=G", load_32_4, GUARD_LANES},
    {"ld.global.v4.f32", "{rrrr}=G", load_32_4, GUARD_LANES},
    {"ld.global.L1::no_allocate.v4.u32", "{rrrr}=G", load_32_4, GUARD_LANES},
    {"st.global.u8", "=Gr", store_8, GUARD_LANES},
    {"st.global.u16", "=Gh", store_16, GUARD_LANES},
    {"st.global.v4.u16", "=G{hhhh}", store_16_4, GUARD_LANES},
    {"st.global.u32", "=Gr", store_32, GUARD_LANES},
    {"st.global.f32", "=Gr", store_32, GUARD_LANES},
    {"st.global.v2.u32", "=G{rr}", store_32_2, GUARD_LANES},
    {"st.global.v2.f32", "=G{rr}", store_32_2, GUARD_LANES},
    {"st.global.v4.u32", "=G{rrrr}", store_32_4, GUARD_LANES},
    {"st.global.v4.b32", "=G{rrrr}", store_32_4, GUARD_LANES},
    {"st.global.v4.f32", "=G{rrrr}", store_32_4, GUARD_LANES},
    {"st.global.cs.v4.u32", "=G{rrrr}", store_32_4, GUARD_LANES},
    {"red.global.max.u32", "=Gr", red_max_u32, GUARD_LANES},
};
SIM_TABLE(sim_global_opcodes, rows);
