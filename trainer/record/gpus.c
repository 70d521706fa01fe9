/* SPDX-License-Identifier: Apache-2.0
 *
 * gpus.c: see gpus.h. docs/planning.md names the source of each row.
 */
#include "record/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The table, more specific names first: the first row whose words are in the driver's name counts. RTX 5090: FP8 with a
 * scale per block of 32. Memory is the amount that nvidia-smi shows; for GB10 the system's amount. */
const struct gpu gpu_table[] = {
    /* name, words of the driver's name, sm, GiB, TFLOP/s in 16 bits, FP8, float32, GB/s, shared, measured */
    {"t4", "T4", 75, 15.0, 65, 0, 8.1, 320, false, false},
    {"rtx2080ti", "RTX 2080 Ti", 75, 11.0, 53.8, 0, 13.4, 616, false, false},
    {"a100-40gb", "A100-SXM4-40GB", 80, 40.0, 312, 0, 19.5, 1555, false, false},
    {"a100", "A100", 80, 80.0, 312, 0, 19.5, 2039, false, false},
    {"a10", "A10", 86, 22.5, 125, 0, 31.2, 600, false, false},
    {"a6000", "RTX A6000", 86, 48.0, 154.8, 0, 38.7, 768, false, false},
    {"rtx3090", "RTX 3090", 86, 24.0, 71, 0, 35.6, 936, false, false},
    {"l4", "L4", 89, 22.5, 121, 242, 30.3, 300, false, false},
    {"l40s", "L40S", 89, 45.0, 362, 733, 91.6, 864, false, false},
    {"rtx4090", "RTX 4090", 89, 24.0, 165, 330, 82.6, 1008, false, false},
    {"h100-nvl", "H100 NVL", 90, 93.1, 835, 1671, 60, 3938, false, false},
    {"h100-pcie", "H100 PCIe", 90, 79.6, 756, 1513, 51, 2039, false, false},
    {"h100", "H100", 90, 79.6, 989, 1979, 67, 3350, false, true},
    {"gh200", "GH200", 90, 94.5, 989, 1979, 67, 4000, false, false},
    {"h200", "H200", 90, 140.4, 989, 1979, 67, 4800, false, true},
    {"b200", "B200", 100, 179.1, 2250, 4500, 80, 8000, false, false},
    {"rtx5090", "RTX 5090", 120, 31.8, 209, 838, 104.8, 1792, false, false},
    {"rtxpro6000", "RTX PRO 6000 Blackwell", 120, 95.6, 503.8, 1007.6, 126, 1792, false, false},
    {"gb10", "GB10", 121, 119.6, 125, 250, 31, 273, true, false},
    {.name = NULL},
};

/* Return whether words are in a name, not as a part of longer ones: "L4" is not in "L40S". */
static bool has_words(const char *name, const char *words)
{
    const size_t n = strlen(words);
    for (const char *at = name; (at = strstr(at, words)) != NULL; at++)
        if ((at == name || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

const struct gpu *gpu_of_device(const char *device)
{
    static const char *const others[] = {"Laptop", "Ti", "D",
                                         "SUPER"}; /* suffixes of other chips with the same names */
    for (const struct gpu *g = gpu_table; g->name != NULL; g++) {
        bool other = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= has_words(device, others[i]) && !has_words(g->device, others[i]);
        if (has_words(device, g->device) && !other)
            return g;
    }
    return NULL;
}

/* Return whether two names are alike, ignoring case and anything but letters and digits. */
static bool alike(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a != '\0' && !isalnum((unsigned char)*a))
            a++;
        while (*b != '\0' && !isalnum((unsigned char)*b))
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

const struct gpu *gpu_named(const char *name)
{
    for (const struct gpu *g = gpu_table; g->name != NULL; g++)
        if (alike(name, g->name))
            return g;
    return NULL;
}

/* Write the architecture. A GPU of compute capability 9.0 runs both; kernels/sm_90a has faster sources. */
const char *gpu_arch(const struct gpu *g, char *out, size_t bytes)
{
    snprintf(out, bytes, "sm_%d%s", g->sm, g->sm == 90 ? "a" : "");
    return out;
}

const char *gpu_names(char *out, size_t bytes)
{
    size_t used = 0;
    *out = '\0';
    for (const struct gpu *g = gpu_table; g->name != NULL && used < bytes; g++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? ", " : "", g->name);
    return out;
}

/* Return the memory for a run. The driver, a context and the code of libraries take about 1 GiB (docs/planning.md). A
 * machine that shares its memory needs some of it, and nj_context_budget() leaves a sixteenth. */
size_t gpu_budget(const struct gpu *g)
{
    const double taken = g->shared ? g->gib / 16 + 7 : 1;
    return (size_t)((g->gib - taken) * (1 << 30));
}
