/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: the writers of gen's outputs. Each fills one or more files from the same contracts; all
 * return 0, or -1 with a message on stderr.
 */
#ifndef GEN_EMIT_H
#define GEN_EMIT_H

#include "contract.h"

/* Ways to declare a parameter. */
enum style {
    STYLE_KERNEL,  /* lp *, float *, int32_t *: the entry of an instance; T as the key says */
    STYLE_STRUCT,  /* void * for a type that C lacks: the struct of arguments */
    STYLE_REF_F32, /* references in float */
    STYLE_REF_F64
};
/* Print all declarations as words, separated by commas, up to but without the closing parenthesis. */
void put_declarations(struct text *t, int indent, const struct contract *c, enum style style,
                      const struct key *k);
/* Print "int nj_<op>(nj_stream *stream, enum nj_dtype T, ..., const struct nj_<op> *args)". */
void put_signature(struct text *t, const struct contract *c);
/* Print "struct nj_<op> { ... };", with the contract's text for each field. */
void put_struct(struct text *t, const struct contract *c);
/* Return the type of the block of parameters as the kernel sees it: struct nj_<op>, or, for an op with tensor maps,
 * struct <op>_block, which put_block() prints. */
const char *block_type(const struct contract *c);
bool has_maps(const struct contract *c);
void put_block(struct text *t, const struct contract *c);
/* Print the call of a reference in the given style from a block `params`; axes of a key are numbers, else axes[i]. */
void put_ref_call(struct text *t, const struct contract *c, enum style style, const struct key *k);
/* Return the names of expressions in generated C: args->N, and numbers of the key, else axes[i]. */
struct scope scope_in_code(const struct contract *c, const struct key *k);
/* Print the variables that expressions of an op's block `params` use. */
void put_scope(struct text *t, const struct contract *c, const struct key *k);
/* Print "void nj_ref_<op>_f32(...);". */
void put_ref_prototype(struct text *t, const struct contract *c, enum style style);
const char *shape_text(const struct arg *a); /* "[N, C]" */
const char *dtype_text(enum dtype dtype);    /* "T" */
bool op_selected(const struct gen *g, const struct contract *c);
/* Return whether the fill of a selected op calls the reference of c. */
bool op_fills(const struct gen *g, const struct contract *c);
const char *key_symbol(const struct key *k); /* "attn_fwd_lp_d64" */

/* Return the source of the key's compute shader, or NULL: the Vulkan backend lacks it. */
const char *shader_source(const struct gen *g, const struct key *k);

int emit_instances(const struct gen *g, const char *out); /* inst/<unit>.cu */
int emit_shaders(const struct gen *g, const char *out);   /* inst/<key>.comp, shaders.txt */
int emit_head(const struct gen *g, const char *out);      /* the header of launchers */
int emit_ops(const struct gen *g, const char *out);       /* ops.c */
int emit_cases(const struct gen *g, const char *out);     /* cases.c */
int emit_doc(const struct gen *g, const char *out);       /* KERNELS.md */
int emit_lists(const struct gen *g, const char *out);     /* keys.txt, archs.txt, spills.txt */
int emit_make(const struct gen *g, const char *out);      /* list.mk */

#endif
