/* SPDX-License-Identifier: Apache-2.0
 *
 * hidden_act.h: the names that activations have in config.json, a row each.
 */
#ifndef NOJIT_HIDDEN_ACT_H
#define NOJIT_HIDDEN_ACT_H

#include "base/activation.h"

#include <string.h>

/* Values of hidden_act, and the kernels that compute each. The first is the default of a config.json without it. */
static const struct hidden_act {
    const char *name;
    enum nj_activation kernels;
} hidden_acts[] = {
    {"silu", NJ_SILU},
    {"swish", NJ_SILU},
    {"gelu", NJ_GELU},
    {"gelu_python", NJ_GELU},
    {"gelu_pytorch_tanh", NJ_GELU_TANH},
    {"gelu_python_tanh", NJ_GELU_TANH},
    {"gelu_new", NJ_GELU_TANH},
};

enum { HIDDEN_ACTS = sizeof hidden_acts / sizeof *hidden_acts };

/* Return the row of a name, or -1. */
static inline int hidden_act_find(const char *name)
{
    for (int i = 0; i < HIDDEN_ACTS; i++)
        if (strcmp(hidden_acts[i].name, name) == 0)
            return i;
    return -1;
}

#endif
