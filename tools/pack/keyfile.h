/* SPDX-License-Identifier: Apache-2.0
 *
 * keyfile.h: the keys that the launchers use (section .nojit.keys, format in index.h), and the archs of a build.
 */
#ifndef NOJIT_TOOLS_KEYFILE_H
#define NOJIT_TOOLS_KEYFILE_H

#include "image/problems.h"
#include "image/span.h"
#include "index.h"

struct key {
    const char *key, *entry;
    uint32_t threads, max_shared_bytes;
    uint16_t min_sm, param_bytes, param_count;
    const char *only; /* the one arch that has it; NULL: all from min_sm on */
    const char
        /* feature of a model that needs it, "qk_norm" or "not qk_norm"; NULL: every model needs it */
        *when;
    bool spare; /* whether this is its spare code, which only some of those archs have */
    const struct nji_param *params;
};

struct key_table {
    struct key *keys; /* sorted by key */
    uint32_t count, param_count;
    struct nji_param *params;
    char *text;
};

/* Parse the keys. Return 0, or -1 with a sentence; free in both cases. */
int keys_parse(struct span text, struct key_table *out, char why[WHY_BYTES]);
/* Return the key of that name, or NULL. */
const struct key *keys_find(const struct key_table *t, const char *name);
void keys_free(struct key_table *t);

/* The key of a kernel's spare code, under its own name in reports. */
struct spare_key {
    struct key key;
    char name[72];
};
void key_of_spare(const struct key *k, struct spare_key *out);

enum { MAX_ARCHS = 32 }; /* maximum number of archs of a build */

/* Parse archs.txt as gen writes it: name, sm, suffix or -, shared bytes, whether lp is float16, whether it has spare
 * code; in ascending order. */
int archs_parse(struct span text, struct nji_arch out[MAX_ARCHS], uint32_t *count,
                char why[WHY_BYTES]);

struct arch_name {
    char text[16];
};
struct arch_name arch_name(uint32_t sm, char suffix); /* Return the name of an arch: "sm_90a". */

#endif
