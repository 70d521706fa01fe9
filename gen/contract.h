/* SPDX-License-Identifier: Apache-2.0
 *
 * contract.h: a kernel contract in memory, the keys that its axes span, and the architectures.
 * docs/contracts.md says what each field means.
 */
#ifndef GEN_CONTRACT_H
#define GEN_CONTRACT_H

#include "expr.h"
#include "falsifier.h"
#include "yaml.h"

enum {
    MAX_AXES = 4,
    MAX_VALUES = 32,
    MAX_ARGS = 32,
    MAX_DIMS = 16,
    MAX_SCALARS = 16,
    MAX_RANK = 8,
    MAX_LINES = 32, /* most equations, requirements, tests, choices, excuses or falsifiers */
    MAX_ARCHS = 32
};

enum dtype { DTYPE_T, DTYPE_LP, DTYPE_F32, DTYPE_I32, DTYPE_F8, DTYPE_BF16, DTYPE_E5M2, DTYPE_I64 };
enum dir { DIR_IN, DIR_OUT, DIR_INOUT };
enum compare { COMPARE_ALL, COMPARE_SUM, COMPARE_NONE, COMPARE_MOST, COMPARE_EXACT };
enum fill_kind {
    FILL_NORMAL,
    FILL_UNIFORM,
    FILL_POSITIVE,
    FILL_ZERO,
    FILL_ID,
    FILL_ID_OR_IGNORED,
    FILL_ROW_OR_NONE,
    FILL_SEQUENCE,
    FILL_POSITION,
    FILL_DOC_START,
    FILL_ORDER,
    FILL_RUNS,
    FILL_STATE,
    FILL_INV_FREQ,
    FILL_HALVES,
    FILL_WHOLE,
    FILL_STARTS,
    FILL_LOW_BYTES,
    FILL_REF
};

/* Axis 0 is T; the values of any other are integers. */
struct axis {
    const char *name;
    int line, count;
    const char *text[MAX_VALUES];
    int number[MAX_VALUES]; /* values as numbers; for T: enum dtype */
};

struct arg {
    const char *name, *doc;
    int line;
    enum dir dir;
    enum dtype dtype;
    int rank;
    const struct expr *shape[MAX_RANK];
    int align;                /* 0: the element's size */
    int tile_line, tile_rows; /* 0: no tensor map */
    bool optional;
    enum fill_kind fill;
    bool fill_given;
    int fill_line;
    const struct expr *fill_value; /* or NULL */
    const char *fill_name;         /* or NULL */
    double scale;
    double tolerance; /* tolerance of the argument; 0: the op's */
    enum compare compare;
};

struct dim {
    const char *name, *doc;
    int line;
    bool wide; /* whether it is int64_t */
};

struct scalar {
    const char *name, *doc;
    int line;
    enum dtype dtype; /* F32 or I32 */
    double test;
};

/* Expressions for one value of one axis, or (axis -1) for all. */
struct choice {
    int axis, value, line, count;
    const struct expr *e[3];
};
struct choices {
    int count, line;
    struct choice of[MAX_VALUES];
};

struct test {
    int line;
    bool bench;
    int64_t dims[MAX_DIMS];
    double scalars[MAX_SCALARS];
    bool scalar_given[MAX_SCALARS];
    bool null[MAX_ARGS];
    int64_t first
        [MAX_ARGS]; /* first position, or first frequency of 0, of each argument; 0: not given */
};

/* Bytes for a variant on an arch. */
struct arch_bytes {
    const char *variant, *arch; /* NULL: any */
    int line;
    int64_t bytes;
};
struct arch_list {
    int count;
    struct arch_bytes of[MAX_LINES];
};

/* A parameter of the block: first pointers, then dims, then scalars, then tensor maps, which the launcher makes. */
enum { MAP_BYTES = 128, MAP_ALIGN = 64 };
struct param {
    const char *name, *doc;
    const struct arg *arg;   /* argument that it passes, or NULL */
    const struct arg *tiled; /* argument of a tensor map; else NULL */
    enum dtype dtype;
    int offset, bytes;
};

struct contract {
    const char *file;
    bool sound; /* whether its own fields have no problems */
    const char *op, *summary, *source, *backward_of;
    int op_line, backward_line, tolerance_line, only_line;
    int equation_count, axis_count, arg_count, dim_count, scalar_count, require_count, test_count;
    int falsifier_count;
    int param_count;              /* number of parameters that a caller gives */
    int block_count, param_bytes; /* number and bytes of all parameters, tensor maps included */
    int cluster, cluster_line;    /* blocks along the grid's first size; 1: none */
    const char *equations[MAX_LINES];
    struct axis axes[MAX_AXES];
    struct arg args[MAX_ARGS];
    struct dim dims[MAX_DIMS];
    struct scalar scalars[MAX_SCALARS];
    const struct expr *require[MAX_LINES];
    struct choices threads, min_blocks, grid, smem;
    double tolerance[MAX_VALUES]; /* tolerances by value of T */
    struct test tests[MAX_LINES];
    const struct expr *flops, *bytes;
    const char *only; /* only architecture that has the op, or NULL */
    const char
        *when; /* feature of a model that needs it, or "not " and one; NULL: all models need it */
    struct arch_list spills, arch_smem;
    struct falsifier falsifiers[MAX_LINES];
    struct param params[2 * MAX_ARGS + MAX_DIMS + MAX_SCALARS];
    struct scope scope;      /* dims, then integer axes */
    struct scope axis_scope; /* integer axes only */
};

/* One instance of a contract: a value for every axis. */
struct key {
    const struct contract *c;
    const char *key, *entry, *variant; /* "op.lp.d64", "nj_op_lp_d64", "lp.d64" */
    const char *unit;                  /* "op.t256": the translation unit, which keys share */
    int value[MAX_AXES];
    int threads, min_blocks; /* min_blocks 0: not given */
    int64_t max_shared;
    int id; /* index of nj_kernels, or -1: left out by --only */
};

/* Lowest SM that nvcc 13 supports: that of an op that every architecture has. */
enum { LOWEST_SM = 75 };
struct arch {
    const char *name;
    int line, sm;
    char suffix; /* 'a', 'f' or 0 */
    int64_t shared;
    bool f16, by_default;
    const char *ptxas; /* oldest release that assembles it, "13.3.73"; NULL: the toolkit's own */
    bool spare;        /* whether a second set of code, assembled at -O1, is embedded */
};

/* All state of gen; contracts and keys are sorted by name. */
struct gen {
    const char *kernels_dir, *header;
    struct contract **contracts;
    int contract_count;
    const struct arch *known; /* all architectures of the list; NULL if it could not be read */
    int known_count;
    bool all_read; /* whether all files were read; if not, missing names may be in the others */
    struct key *keys;
    int key_count, selected_count;
    struct arch archs[MAX_ARCHS]; /* selected architectures, by sm and suffix */
    int arch_count;
};

/* Read one file (contract.c); NULL if not even its op and axes could be read. Problems go to problem(). */
struct contract *contract_read(const char *path);
/* Append the parameters of tensor maps for the arguments that have tiles. base: arch_param_base() of the one arch. */
void contract_add_maps(struct contract *c, int base);
const struct contract *contract_find(const struct gen *g, const char *op);
int arg_find(const struct contract *c, const char *name);
int dim_find(const struct contract *c, const char *name);
int scalar_find(const struct contract *c, const char *name);
int axis_find(const struct contract *c, const char *name);
/* Return the values of dims and axes of one test of one key; test may be NULL (axes only). */
struct values key_values(const struct key *k, const struct test *test);
const struct choice *choice_of(const struct choices *list, const struct key *k);
/* Return the most that an entry of the list gives the key on the arch, 0 if none does. */
int64_t arch_bytes_of(const struct arch_list *list, const struct key *k, const struct arch *a);
enum dtype key_dtype(const struct key *k, enum dtype dtype); /* T resolved */
int dtype_bytes(enum dtype dtype);

/* Readers of the fields of a contract that have parts of their own (fields.c, tests.c). */
void read_args(void *c, const struct node *n);
void read_dims(void *c, const struct node *n);
void read_scalars(void *c, const struct node *n);
void read_launch(void *c, const struct node *n);
void read_tests(void *c, const struct node *n);
void read_bench(void *c, const struct node *n);
void read_spills(void *c, const struct node *n);
void read_arch_smem(void *c, const struct node *n);
void read_falsifiers(void *c, const struct node *n);
bool read_name(const char *file, const struct node *n, const char **out);
bool read_scalar_value(const struct contract *c, const struct scalar *s, const struct node *n,
                       double *out);
const char *read_word(const char *file, const struct node *n, const char *what,
                      const char *const *words, int count, int *out);

/* Make the keys of all contracts, mark those that `only` selects, and number them (keys.c). */
void keys_make(struct gen *g, const char *only);
/* Set threads, min_blocks and max_shared; call this after the checks. */
void keys_limits(struct gen *g);
/* Return whether `k` is the first key of its unit that is built. */
bool key_begins_unit(const struct gen *g, const struct key *k);

/* Check everything that needs more than one field or more than one file (check.c). */
void check_all(struct gen *g);

/* Read the selected architectures ("default", or names separated by spaces) (archs.c). */
void archs_read(struct gen *g, const char *path, const char *wanted);
/* Find an architecture among all known ones, or return NULL. */
const struct arch *arch_find(const struct gen *g, const char *name);
/* Return the offset of the parameters in the constant bank of the arch's kernels; ptxas aligns them there. */
int arch_param_base(const struct arch *a);
bool key_on_arch(const struct key *k, const struct arch *a);
/* Return the path of the kernel of an op: in the folder of its only architecture, if it has just one. */
const char *kernel_source(const struct gen *g, const struct contract *c);

#endif
