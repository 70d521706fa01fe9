/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_registers.c: registers get their places.
 */
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

/* Sets every place of a register to where it lies. */
static void replace_places(struct sim_entry *entry, const uint32_t *at)
{
    for (uint32_t i = 0; i < entry->code_count; i++) {
        struct insn *insn = &entry->code[i];
        for (int o = 0; o < OPERANDS_MAX; o++)
            if (!(insn->o[o] & 1))
                insn->o[o] = at[insn->o[o] / 2];
        insn->guard = at[insn->guard / 2];
    }
}

int sim_assign_registers(struct sim_entry *entry, const char *classes, uint32_t count)
{
    uint32_t *at = calloc(count, sizeof *at);
    if (!at)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        at[i] = entry->register_bytes;
        entry->register_bytes += class_bytes(classes[i]);
    }
    replace_places(entry, at);
    free(at);
    return 0;
}
