/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_opcodes.c: all opcodes that the machine executes, from the tables beside their functions, in
 * order of their texts.
 */
#include "ptx.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct sim_opcode_table *const tables[] = {
    &sim_convert_opcodes, &sim_float_opcodes,  &sim_integer_opcodes, &sim_move_opcodes,
    &sim_global_opcodes,  &sim_shared_opcodes, &sim_async_opcodes,   &sim_flow_opcodes,
    &sim_lane_opcodes,    &sim_matrix_opcodes, &sim_cluster_opcodes, &sim_wgmma_opcodes,
};

enum { ROWS_MAX = 512 };
static const struct sim_opcode *sorted[ROWS_MAX];
static const char *names[ROWS_MAX]; /* each once */
static size_t row_count, name_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Rows of one text stay in the order in which they are tried. */
static int compare_rows(const void *left, const void *right)
{
    const struct sim_opcode *a = *(const struct sim_opcode *const *)left;
    const struct sim_opcode *b = *(const struct sim_opcode *const *)right;
    const int order = strcmp(a->text, b->text);
    return order ? order : strcmp(b->operands, a->operands);
}

static void sort_rows(void)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t i = 0; i < tables[t]->count && row_count < ROWS_MAX; i++)
            sorted[row_count++] = &tables[t]->rows[i];
    qsort(sorted, row_count, sizeof *sorted, compare_rows);
    for (size_t i = 0; i < row_count; i++)
        if (name_count == 0 || strcmp(names[name_count - 1], sorted[i]->text) != 0)
            names[name_count++] = sorted[i]->text;
}

/* Order of a row's text and a text of that length. */
static int compare_text(const struct sim_opcode *row, const char *text, size_t length)
{
    const int order = strncmp(row->text, text, length);
    return order ? order : row->text[length] != 0;
}

const struct sim_opcode *sim_opcode_find(const char *text, size_t length, size_t *from)
{
    pthread_once(&once, sort_rows);
    size_t low = 0, high = row_count;
    while (!*from && low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_text(sorted[middle], text, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const size_t at = *from ? *from : low;
    if (at >= row_count || compare_text(sorted[at], text, length) != 0)
        return NULL;
    *from = at + 1;
    return sorted[at];
}

size_t sim_opcodes(const char *const **out)
{
    pthread_once(&once, sort_rows);
    *out = names;
    return name_count;
}
