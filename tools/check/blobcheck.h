/* SPDX-License-Identifier: Apache-2.0
 *
 * blobcheck.h: the findings of blobcheck in a binary, for the parts that print them.
 */
#ifndef NOJIT_TOOLS_BLOBCHECK_H
#define NOJIT_TOOLS_BLOBCHECK_H

#include "check/blobindex.h"
#include "pack/codecheck.h"

struct checked_key {
    const struct key *key;
    const struct nji_entry *entry; /* its entry; NULL: not in the index */
    struct code_fact *facts;       /* [arch_count] */
    struct code_fact *spares;      /* [arch_count] facts of spare code */
    uint32_t *spills;              /* [arch_count], as the index says */
};

struct check {
    const char *path;
    const char *only_arch; /* arch of --arch; NULL: all */
    struct elf_parts {
        struct span index, blobs, keys;
        struct span shader_index, shaders; /* sections of shaders; empty: the binary has none */
        uint64_t blobs_off;                /* offset in the file */
    } parts;
    struct key_table keys;
    struct blob_index index;
    struct checked_key *checked;                /* [keys.count] */
    uint32_t asked, present, excluded, spilled; /* numbers of pairs of key and arch */
    uint64_t code_bytes, spare_bytes; /* bytes of code, of spare code as stored (compressed) */
    struct blob_index shaders;
    uint32_t shader_count;
    uint64_t shader_bytes;
    /* number of bytes that may still be read: overlapping containers are read once */
    uint64_t unread_bytes;
    struct report report;
};

/* Return the name of arch a of the index. */
static inline struct arch_name check_arch_name(const struct check *c, uint32_t a)
{
    return arch_name(c->index.archs[a].sm, (char)c->index.archs[a].suffix);
}

/* Return whether --arch includes this arch. */
static inline bool check_shows(const struct check *c, uint32_t a)
{
    return !c->only_arch || !strcmp(c->only_arch, check_arch_name(c, a).text);
}

/* ---- blobshaders.c ---- */
/* Check the shaders, after c->keys has been read; problems go to the report. */
void check_shaders(struct check *c);

/* ---- blobprint.c ---- */
struct model_keys;
void print_table(const struct check *c);
void print_summary(const struct check *c);
/* Print the findings as JSON; model may be NULL. Return 0, or -1 without memory. */
int print_json(const struct check *c, const struct model_keys *model);

/* ---- modelkeys.c ---- */

/* The fields of a config.json or a GGUF file that decide which kernels a model needs. */
struct model_keys {
    char model_type[32];
    int head_dim;
    int kernel_dim;    /* size of the heads of its kernels, padded; 0: none has so large ones */
    unsigned features; /* FEATURE_BIT() of each feature that its blocks have */
    int activation;    /* enum nj_activation */
    bool *used;        /* [keys.count] */
};

/* Read the config.json of a folder, or a GGUF file, and mark the keys that it uses; an op without a variant for the
 * model goes to the report. Return 0, or -1 with a sentence; free in both cases. */
int model_keys_read(const char *model, const struct key_table *keys, struct model_keys *out,
                    struct report *r, char why[WHY_BYTES]);
void model_keys_free(struct model_keys *m);
void print_model(const struct check *c, const struct model_keys *m);

#endif
