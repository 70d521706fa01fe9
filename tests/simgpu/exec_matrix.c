/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_matrix.c: ldmatrix, movmatrix and mma. Lane l of a fragment stands in row l / 4 at columns 2 (l % 4)
 * and the next (of B: in column l / 4, at those rows); further registers are 8 rows or 8 of k on.
 */
#include "exec.h"
#include "narrow.h"

#include <string.h>

/* Four matrices of 8 rows of 16 bytes; lane 8 i + r says where row r of matrix i lies. */
static bool read_matrices(struct warp *warp, const struct insn *insn, uint16_t (*rows)[8])
{
    const uint32_t *base = sim_slot(warp, insn->o[4]);
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t at = base[lane] + (uint32_t)insn->integer[0];
        if (!sim_shared_at(warp, insn, lane, at, 16, &at) ||
            !sim_shared_read_together(warp, insn, lane, at, 16))
            return false;
        memcpy(rows[lane], warp->block->shared + at, 16);
    }
    return true;
}

static void ldmatrix(struct warp *warp, const struct insn *insn)
{
    uint16_t rows[LANES][8];
    if (!sim_is_whole(warp, insn) || !read_matrices(warp, insn, rows))
        return;
    for (int i = 0; i < 4; i++) {
        uint32_t *result = sim_slot(warp, insn->o[i]);
        for (int lane = 0; lane < LANES; lane++)
            memcpy(&result[lane], &rows[8 * i + lane / 4][2 * (lane % 4)], sizeof *result);
    }
}

static void ldmatrix_transposed(struct warp *warp, const struct insn *insn)
{
    uint16_t rows[LANES][8];
    if (!sim_is_whole(warp, insn) || !read_matrices(warp, insn, rows))
        return;
    for (int i = 0; i < 4; i++) {
        uint32_t *result = sim_slot(warp, insn->o[i]);
        for (int lane = 0; lane < LANES; lane++) {
            const int row = 8 * i + 2 * (lane % 4), column = lane / 4;
            result[lane] = rows[row][column] | (uint32_t)rows[row + 1][column] << 16;
        }
    }
}

static void movmatrix(struct warp *warp, const struct insn *insn)
{
    uint16_t rows[8][8];
    if (!sim_is_whole(warp, insn))
        return;
    memcpy(rows, sim_slot(warp, insn->o[1]), sizeof rows);
    uint32_t *result = sim_slot(warp, insn->o[0]);
    for (int lane = 0; lane < LANES; lane++) {
        const int row = 2 * (lane % 4), column = lane / 4;
        result[lane] = rows[row][column] | (uint32_t)rows[row + 1][column] << 16;
    }
}

/* A row of C. */
typedef float eight __attribute__((vector_size(8 * sizeof(float))));

/* The halves of a register, in the order of lanes: 8 rows of 8. */
INLINE void read_halves(const struct warp *warp, sim_place place, float (*decode)(uint32_t),
                        float *to)
{
    const uint16_t *halves = sim_slot(warp, place);
    for (int i = 0; i < 64; i++)
        to[i] = decode(halves[i]);
}

/* C (16 x 8) += A (16 x k) B (k x 8). Columns of C and B stand in the order 0, 2, 4, 6, 1, 3, 5, 7
 * here: four lanes then hold four neighbours. Products of these formats are exact in a float. */
INLINE void multiply(struct warp *warp, const struct insn *insn, int depth,
                     float (*decode)(uint32_t))
{
    float a[4][64], columns[64], b[16][8], c[16][8];
    if (!sim_is_whole(warp, insn))
        return;
    const sim_place *at_a = insn->o + 4, *at_b = at_a + depth / 4, *at_c = at_b + depth / 8;
    for (int i = 0; i < depth / 4; i++) /* rows from 8 (i % 2), k from 8 (i / 2) */
        read_halves(warp, at_a[i], decode, a[i]);
    for (int i = 0; i < depth / 8; i++) {
        read_halves(warp, at_b[i], decode, columns);
        for (int k = 0; k < 8; k++)
            for (int column = 0; column < 8; column++)
                b[8 * i + k][4 * (column % 2) + column / 2] = columns[8 * column + k];
    }
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 8; row++)
            memcpy(&c[8 * (i / 2) + row][4 * (i % 2)],
                   (const float *)sim_slot(warp, at_c[i]) + 4 * row, 4 * sizeof(float));
    for (int row = 0; row < 16; row++) {
        eight sum, factor;
        memcpy(&sum, c[row], sizeof sum);
        for (int k = 0; k < depth; k++) {
            memcpy(&factor, b[k], sizeof factor);
            sum += a[2 * (k / 8) + row / 8][8 * (row % 8) + k % 8] * factor;
        }
        memcpy(c[row], &sum, sizeof sum);
    }
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 8; row++)
            memcpy((float *)sim_slot(warp, insn->o[i]) + 4 * row,
                   &c[8 * (i / 2) + row][4 * (i % 2)], 4 * sizeof(float));
}

static void mma_k16_bf16(struct warp *warp, const struct insn *insn)
{
    multiply(warp, insn, 16, float_of_bf16);
}

static void mma_k8_f16(struct warp *warp, const struct insn *insn)
{
    multiply(warp, insn, 8, float_of_f16);
}

static void mma_k16_f16(struct warp *warp, const struct insn *insn)
{
    multiply(warp, insn, 16, float_of_f16);
}

static const struct sim_opcode rows[] = {
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "{rrrr}=S", ldmatrix, GUARD_REFUSED},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "{rrrr}=S", ldmatrix_transposed,
     GUARD_REFUSED},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "r=r", movmatrix, GUARD_REFUSED},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "{rrrr}={rrrr}{rr}{rrrr}", mma_k16_bf16,
     GUARD_REFUSED},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "{rrrr}={rrrr}{rr}{rrrr}", mma_k16_f16,
     GUARD_REFUSED},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "{rrrr}={rr}{r}{rrrr}", mma_k8_f16,
     GUARD_REFUSED},
};
SIM_TABLE(sim_matrix_opcodes, rows);
