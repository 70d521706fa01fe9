/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_wgmma.c: products of a warpgroup, D (64 x n) += A (64 x 16) B (16 x n). A warp works out its own
 * 16 rows as soon as it comes to the product; that they may not be looked at before wgmma.wait_group
 * is the compiler's concern, which copies registers as it likes. What is read counts as being read
 * until then: a group of products is done once all four warps have begun it and one of them waits.
 *
 * Matrices in shared memory are swizzled by 128 bytes: of eight rows of 128 bytes, which begin at a
 * multiple of 1024, row r has its 16-byte chunk c at place c ^ r.
 */
#include "exec.h"
#include "narrow.h"

#include <string.h>

enum { DEPTH = 16, ROWS = 16, COLUMNS_MAX = 256, ROW_BYTES = 128, PANEL = 64, CHUNK_BYTES = 16 };

/* A descriptor's fields, in bytes. */
struct matrix {
    uint32_t start, leading, stride;
};

static bool read_descriptor(struct warp *warp, const struct insn *insn, sim_place place,
                            struct matrix *out)
{
    enum { SWIZZLE_128B = 1 };
    const uint64_t *all = sim_slot(warp, place), bits = all[0];
    *out = (struct matrix){(uint32_t)(bits & 0x3fff) << 4, (uint32_t)(bits >> 16 & 0x3fff) << 4,
                           (uint32_t)(bits >> 32 & 0x3fff) << 4};
    for (int lane = 1; lane < LANES; lane++) {
        if (all[lane] != bits) {
            sim_fault_at(warp, insn, lane, SIM_BAD_PTX,
                         "has descriptor %#llx, the first lane %#llx",
                         (unsigned long long)all[lane], (unsigned long long)bits);
            return false;
        }
    }
    if (bits >> 62 == SWIZZLE_128B && (bits >> 49 & 7) == 0 && out->start % 1024 < ROW_BYTES)
        return true;
    sim_fault_at(warp, insn, 0, SIM_BAD_PTX,
                 "descriptor %#llx: only a swizzle of 128 bytes, from a row that begins at a "
                 "multiple of 1024 on, is known to the machine",
                 (unsigned long long)bits);
    return false;
}

/* Read a row of the matrix from `at` on, in the order that it would have without a swizzle. */
static bool read_row(struct warp *warp, const struct insn *insn, uint32_t at, uint32_t bytes,
                     uint16_t *to)
{
    const uint32_t row = at / ROW_BYTES % 8;
    for (uint32_t i = 0; i < bytes; i += CHUNK_BYTES) {
        uint32_t from = (at + i) ^ row * CHUNK_BYTES;
        if (!sim_shared_at(warp, insn, 0, from, CHUNK_BYTES, &from) ||
            !sim_shared_product(warp, insn, from, CHUNK_BYTES))
            return false;
        memcpy((unsigned char *)to + i, warp->block->shared + from, CHUNK_BYTES);
    }
    return true;
}

/* Columns of B and D stand in the order 0, 2, 4, 6, 1, 3, 5, 7 of each eight: four lanes then hold four
 * neighbours. */
static inline uint32_t place_of(uint32_t column)
{
    return column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
}

/* The 16 rows of A that are the warp's, from shared memory: a row is a row. */
static bool fetch_a(struct warp *warp, const struct insn *insn, sim_place place, float (*a)[DEPTH])
{
    struct matrix m;
    if (!read_descriptor(warp, insn, place, &m))
        return false;
    for (uint32_t row = 0; row < ROWS; row++) {
        const uint32_t of64 = warp->index % WARPGROUP * ROWS + row;
        uint16_t values[DEPTH];
        if (!read_row(warp, insn, m.start + of64 / 8 * m.stride + of64 % 8 * ROW_BYTES,
                      sizeof values, values))
            return false;
        for (int k = 0; k < DEPTH; k++)
            a[row][k] = float_of_bf16(values[k]);
    }
    return true;
}

/* The same from four registers: as in mma, rows from 8 (i % 2), columns from 8 (i / 2). */
static void unpack_a(const struct warp *warp, const sim_place *places, float (*a)[DEPTH])
{
    for (int i = 0; i < 4; i++) {
        const uint16_t *halves = sim_slot(warp, places[i]);
        for (int n = 0; n < 64; n++)
            a[n / 8 + 8 * (i % 2)][n % 8 + 8 * (i / 2)] = float_of_bf16(halves[n]);
    }
}

/* B whose columns are rows of shared memory. */
static bool fetch_columns(struct warp *warp, const struct insn *insn, const struct matrix *m,
                          uint32_t n, float (*b)[COLUMNS_MAX])
{
    for (uint32_t column = 0; column < n; column++) {
        uint16_t values[DEPTH];
        if (!read_row(warp, insn, m->start + column / 8 * m->stride + column % 8 * ROW_BYTES,
                      sizeof values, values))
            return false;
        for (int k = 0; k < DEPTH; k++)
            b[k][place_of(column)] = float_of_bf16(values[k]);
    }
    return true;
}

/* B whose rows are rows of shared memory, in panels of 64 columns. */
static bool fetch_rows(struct warp *warp, const struct insn *insn, const struct matrix *m,
                       uint32_t n, float (*b)[COLUMNS_MAX])
{
    for (uint32_t k = 0; k < DEPTH; k++) {
        for (uint32_t first = 0; first < n; first += PANEL) {
            const uint32_t at =
                m->start + first / PANEL * m->leading + k / 8 * m->stride + k % 8 * ROW_BYTES;
            const uint32_t count = n - first < PANEL ? n - first : PANEL;
            uint16_t values[PANEL];
            if (!read_row(warp, insn, at, count * 2, values))
                return false;
            for (uint32_t i = 0; i < count; i++)
                b[k][place_of(first + i)] = float_of_bf16(values[i]);
        }
    }
    return true;
}

/* Set *add to whether the sums are added to D; all lanes must agree. */
static bool read_predicate(struct warp *warp, const struct insn *insn, sim_place place, bool *add)
{
    const uint32_t *all = sim_slot(warp, place);
    *add = all[0] != 0;
    for (int lane = 1; lane < LANES; lane++) {
        if (all[lane] != all[0]) {
            sim_fault_at(warp, insn, lane, SIM_BAD_PTX,
                         "has another predicate than the first lane");
            return false;
        }
    }
    return true;
}

static bool fetch_b(struct warp *warp, const struct insn *insn, sim_place place, bool rows,
                    uint32_t n, float (*b)[COLUMNS_MAX])
{
    struct matrix m;
    if (!read_descriptor(warp, insn, place, &m))
        return false;
    return rows ? fetch_rows(warp, insn, &m, n, b) : fetch_columns(warp, insn, &m, n, b);
}

/* Four neighbours of a row of D, which four lanes hold, are a part of a register. */
static void move_sums(const struct warp *warp, const sim_place *places, uint32_t n, bool store,
                      float (*d)[COLUMNS_MAX])
{
    for (uint32_t i = 0; i < n / 2; i++) {
        float *lanes = sim_slot(warp, places[i]);
        for (int row = 0; row < 8; row++) {
            float *part = &d[row + 8 * (i / 2 % 2)][i / 4 * 8 + i % 2 * 4];
            memcpy(store ? lanes + 4 * row : part, store ? part : lanes + 4 * row,
                   4 * sizeof(float));
        }
    }
}

/* Columns that are added up together. */
typedef float some __attribute__((vector_size(32 * sizeof(float))));

/* Sums in the order of k, each rounded. */
static void add_products(uint32_t n, const float (*a)[DEPTH], const float (*b)[COLUMNS_MAX],
                         float (*d)[COLUMNS_MAX])
{
    for (uint32_t first = 0; first < n; first += sizeof(some) / sizeof(float)) {
        some factors[DEPTH];
        for (int k = 0; k < DEPTH; k++)
            memcpy(&factors[k], &b[k][first], sizeof(some));
        for (int row = 0; row < ROWS; row++) {
            some sum;
            memcpy(&sum, &d[row][first], sizeof sum);
            for (int k = 0; k < DEPTH; k++)
                sum += a[row][k] * factors[k];
            memcpy(&d[row][first], &sum, sizeof sum);
        }
    }
}

/* b: the place of B's descriptor in the operands; the predicate that tells whether D is added to stands
 * behind it. */
static void multiply(struct warp *warp, const struct insn *insn, uint32_t n, uint32_t at_b,
                     const float (*a)[DEPTH])
{
    const sim_place *sums = warp->block->launch->entry->wide + insn->target;
    bool add;
    _Alignas(64) float b[DEPTH][COLUMNS_MAX], d[ROWS][COLUMNS_MAX];
    if (!read_predicate(warp, insn, insn->o[at_b + 1], &add) ||
        !fetch_b(warp, insn, insn->o[at_b], insn->integer[0] != 0, n, b))
        return;
    if (add)
        move_sums(warp, sums, n, false, d);
    else
        memset(d, 0, sizeof d);
    add_products(n, a, (const float(*)[COLUMNS_MAX])b, d);
    move_sums(warp, sums, n, true, d);
}

INLINE void multiply_shared(struct warp *warp, const struct insn *insn, uint32_t n)
{
    float a[ROWS][DEPTH];
    if (sim_is_whole(warp, insn) && fetch_a(warp, insn, insn->o[0], a))
        multiply(warp, insn, n, 1, (const float(*)[DEPTH])a);
}

INLINE void multiply_registers(struct warp *warp, const struct insn *insn, uint32_t n)
{
    float a[ROWS][DEPTH];
    if (!sim_is_whole(warp, insn))
        return;
    unpack_a(warp, insn->o, a);
    multiply(warp, insn, n, 4, (const float(*)[DEPTH])a);
}

#define SHAPE(from, n)                                                                             \
    static void from##_##n(struct warp *warp, const struct insn *insn)                             \
    {                                                                                              \
        multiply_##from(warp, insn, n);                                                            \
    }

SHAPE(shared, 32)
SHAPE(shared, 64)
SHAPE(shared, 256)
SHAPE(registers, 64)
SHAPE(registers, 128)
SHAPE(registers, 256)

/* wgmma.fence orders registers, of which nothing is deferred here. */
static void fence(struct warp *warp, const struct insn *insn)
{
    sim_is_whole(warp, insn);
}

static void fence_proxy(struct warp *warp, const struct insn *insn)
{
    (void)insn;
    sim_shared_fence(warp);
}

static void commit_group(struct warp *warp, const struct insn *insn)
{
    if (!sim_is_whole(warp, insn))
        return;
    warp->product_groups++;
    warp->block->events++;
}

static void stuck(struct warp *warp, const struct insn *insn, int lane)
{
    const struct warp *of = sim_warpgroup(warp);
    uint32_t behind = 0;
    for (uint32_t i = 1; i < WARPGROUP; i++)
        behind = of[i].product_groups < of[behind].product_groups ? i : behind;
    sim_fault_at(warp, insn, lane, SIM_DIVERGENT_BARRIER,
                 "waits for products of its warpgroup, of which warp %u has begun %u groups fewer",
                 behind, warp->product_groups - of[behind].product_groups);
}

static void wait_group(struct warp *warp, const struct insn *insn)
{
    const struct warp *of = sim_warpgroup(warp);
    const uint32_t groups = warp->product_groups - (uint32_t)insn->integer[0];
    uint32_t *done = &warp->order.before[ACTOR_PRODUCTS + warp->index / WARPGROUP];
    if (!sim_is_whole(warp, insn))
        return;
    if ((int32_t)(groups - *done) <= 0)
        return;
    for (uint32_t i = 0; i < WARPGROUP; i++) {
        if ((int32_t)(of[i].product_groups - groups) < 0) {
            sim_wait(warp, insn, stuck);
            return;
        }
    }
    *done = groups;
}

static void resize(struct warp *warp, const struct insn *insn)
{
    if (sim_is_whole(warp, insn))
        warp->resized++;
}

void sim_products_end(struct block *block)
{
    const struct sim_entry *entry = block->launch->entry;
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++) {
        struct warp *warp = &block->warps[i];
        const struct warp *first = sim_warpgroup(warp);
        if (warp->product_groups == first->product_groups && warp->resized == first->resized)
            continue;
        sim_fault_at(warp, &entry->code[entry->code_count - 1], 0, SIM_DIVERGENT_BARRIER,
                     "ends a warp that has not done what the first of its warpgroup has: %d groups "
                     "of wgmma and %d setmaxnreg fewer",
                     (int)(first->product_groups - warp->product_groups),
                     (int)(first->resized - warp->resized));
        return;
    }
}

#define WGMMA(n) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16"

static const struct sim_opcode rows[] = {
    {WGMMA(32), "+{r*16}=llp110i", shared_32, GUARD_REFUSED | NEEDS_PRODUCTS},
    {WGMMA(64), "+{r*32}=llp110i", shared_64, GUARD_REFUSED | NEEDS_PRODUCTS},
    {WGMMA(64), "+{r*32}={rrrr}lp11i", registers_64, GUARD_REFUSED | NEEDS_PRODUCTS},
    {WGMMA(128), "+{r*64}={rrrr}lp11i", registers_128, GUARD_REFUSED | NEEDS_PRODUCTS},
    {WGMMA(256), "+{r*128}=llp110i", shared_256, GUARD_REFUSED | NEEDS_PRODUCTS},
    {WGMMA(256), "+{r*128}={rrrr}lp11i", registers_256, GUARD_REFUSED | NEEDS_PRODUCTS},
    {"wgmma.fence.sync.aligned", "=", fence, GUARD_REFUSED},
    {"wgmma.commit_group.sync.aligned", "=", commit_group, GUARD_REFUSED | NEEDS_PRODUCTS},
    {"wgmma.wait_group.sync.aligned", "=i", wait_group, GUARD_REFUSED | NEEDS_PRODUCTS},
    {"fence.proxy.async.shared::cta", "=", fence_proxy, GUARD_LANES},
    {"setmaxnreg.inc.sync.aligned.u32", "=i", resize, GUARD_REFUSED | NEEDS_PRODUCTS},
    {"setmaxnreg.dec.sync.aligned.u32", "=i", resize, GUARD_REFUSED | NEEDS_PRODUCTS},
};
SIM_TABLE(sim_wgmma_opcodes, rows);
