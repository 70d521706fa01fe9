/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt.c: a libcublasLt.so.13 for simulated GPUs: descriptors, and which products and algorithms
 * there are. Three algorithms, of which number 1 splits K in an order that is not fixed, and number 3 does
 * without a workspace, too; all give the same bits. Set by environment variables:
 *
 *   NOJIT_SIM_LT_FAIL     a function that answers with status 7
 *   NOJIT_SIM_LT_ONLY     the only algorithm that is proposed
 *   NOJIT_SIM_LT_VERSION  such as 120300
 *   NOJIT_SIM_LT_WRONG    N:SIDE: products by algorithm N (0: by any) are wrong in a tile of SIDE rows and columns in
 *                         the middle, or everywhere (-1)
 *   NOJIT_SIM_LT_REFUSES  N:M: algorithm N, which is proposed, is not there for products of M rows (0: of any number)
 *   NOJIT_SIM_LT_NO_F8    M:N:K, each a number or 0 for any: no algorithm is proposed for FP8 products of this shape
 */
#include "cublaslt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 7, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, NOT_SUPPORTED = 15 };
/* All but EITHER need a workspace, of so many bytes. */
enum { ALGORITHMS = 3, UNORDERED = 1, EITHER = 3, WORKSPACE_BYTES = 4 };

extern int sim_lt_live;
LT_EXPORT int sim_lt_live; /* made and not destroyed */

/* A function of the library: told by its name to fail, or its body. */
#define LT_CALL(name, params, args)                                                                \
    LT_EXPORT int name params;                                                                     \
    static int name##_body params;                                                                 \
    int name params                                                                                \
    {                                                                                              \
        const char *told = getenv("NOJIT_SIM_LT_FAIL");                                            \
        if (told != NULL && strcmp(told, #name) == 0)                                              \
            return INVALID_VALUE;                                                                  \
        return name##_body args;                                                                   \
    }                                                                                              \
    static int name##_body params

static int make(void **out, const void *what, size_t bytes)
{
    *out = malloc(bytes);
    if (*out == NULL)
        return ALLOC_FAILED;
    memcpy(*out, what, bytes);
    sim_lt_live++;
    return 0;
}

static int destroy(void *what)
{
    if (what == NULL)
        return INVALID_VALUE;
    free(what);
    sim_lt_live--;
    return 0;
}

LT_EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    const char *told = getenv("NOJIT_SIM_LT_VERSION");
    return told != NULL ? strtoull(told, NULL, 10) : 130100;
}

LT_EXPORT const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status)
{
    static const struct {
        int status;
        const char *name;
    } known[] = {{0, "CUBLAS_STATUS_SUCCESS"},
                 {NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"},
                 {ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED"},
                 {INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
                 {LT_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
                 {NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].name;
    return "CUBLAS_STATUS_UNKNOWN";
}

/* The driver is in the process already, opened by its name. */
LT_CALL(cublasLtCreate, (void **out), (out))
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct sim_hook *hook = driver ? dlsym(driver, SIM_HOOK) : NULL;
    return hook ? make(out, hook, sizeof *hook) : NOT_INITIALIZED;
}

LT_CALL(cublasLtDestroy, (void *handle), (handle))
{
    return destroy(handle);
}

/* ---- descriptors ---- */

LT_CALL(cublasLtMatmulDescCreate, (void **out, int compute, int scale), (out, compute, scale))
{
    const struct lt_desc d = {0};
    return compute == LT_COMPUTE_32F && scale == LT_F32 ? make(out, &d, sizeof d) : NOT_SUPPORTED;
}

LT_CALL(cublasLtMatmulDescDestroy, (void *desc), (desc))
{
    return destroy(desc);
}

LT_CALL(cublasLtMatmulDescSetAttribute,
        (struct lt_desc * d, int attribute, const void *value, size_t bytes),
        (d, attribute, value, bytes))
{
    const struct {
        int attribute;
        void *field;
        size_t bytes;
    } known[] = {
        {3, &d->trans[0], sizeof d->trans[0]},  {4, &d->trans[1], sizeof d->trans[1]},
        {17, &d->scale[0], sizeof d->scale[0]}, {18, &d->scale[1], sizeof d->scale[1]},
        {25, &d->fast, sizeof d->fast},         {31, &d->mode[0], sizeof d->mode[0]},
        {32, &d->mode[1], sizeof d->mode[1]},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute && known[i].bytes == bytes) {
            memcpy(known[i].field, value, bytes);
            return 0;
        }
    return INVALID_VALUE;
}

LT_CALL(cublasLtMatrixLayoutCreate,
        (void **out, int type, uint64_t rows, uint64_t columns, int64_t ld),
        (out, type, rows, columns, ld))
{
    const struct lt_layout l = {type, rows, columns, ld};
    if (lt_type_bytes(type) == 0)
        return NOT_SUPPORTED;
    return rows && columns && ld >= (int64_t)rows ? make(out, &l, sizeof l) : INVALID_VALUE;
}

LT_CALL(cublasLtMatrixLayoutDestroy, (void *layout), (layout))
{
    return destroy(layout);
}

LT_CALL(cublasLtMatmulPreferenceCreate, (void **out), (out))
{
    const uint64_t workspace = 0;
    return make(out, &workspace, sizeof workspace);
}

LT_CALL(cublasLtMatmulPreferenceDestroy, (void *preference), (preference))
{
    return destroy(preference);
}

LT_CALL(cublasLtMatmulPreferenceSetAttribute,
        (uint64_t * preference, int attribute, const void *value, size_t bytes),
        (preference, attribute, value, bytes))
{
    if (!preference || !value || bytes == 0)
        return INVALID_VALUE;
    if (attribute == NJ_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof *preference)
        memcpy(preference, value, bytes);
    return 0;
}

/* ---- which products there are ---- */

static int type_fits(int type, int arch)
{
    return type == LT_BF16 ? arch >= 80 : lt_is_f8(type) ? arch >= 89 : 1;
}

/* Scales of both operands: one; on sm_90 one for each row, of e4m3 alone, which is all that is tried; from sm_100 on
 * one for each 32 columns. */
static int scales_fit(const struct lt_product *p, int both_e4m3, int arch)
{
    const int32_t *mode = p->desc.mode;
    if (mode[0] != mode[1])
        return 0;
    return mode[0] == LT_OUTER_VECTOR ? both_e4m3 && arch == 90
           : mode[0] == LT_BLOCKS     ? p->a.rows % 32 == 0 && arch >= 100
                                      : mode[0] == 0;
}

/* FP8: the first operand transposed, the second not, rows of 16 bytes; not both e5m2. */
static int f8_fits(const struct lt_product *p, int arch)
{
    const struct lt_desc *d = &p->desc;
    const int e4m3 = (p->a.type == LT_E4M3) + (p->b.type == LT_E4M3);
    if (!lt_is_f8(p->a.type) && !lt_is_f8(p->b.type))
        return d->mode[0] == 0 && d->mode[1] == 0;
    return e4m3 > 0 && d->trans[0] == 1 && d->trans[1] == 0 && p->a.ld % 16 == 0 &&
           p->b.ld % 16 == 0 && p->a.rows % 16 == 0 && scales_fit(p, e4m3 == 2, arch);
}

static int check_product(const struct lt_product *p, const struct lt_layout *c, int arch)
{
    const struct lt_layout *d = &p->d;
    const int ta = p->desc.trans[0], tb = p->desc.trans[1];
    const uint64_t m = ta ? p->a.columns : p->a.rows, n = tb ? p->b.rows : p->b.columns;
    const uint64_t k = ta ? p->a.rows : p->a.columns, kb = tb ? p->b.columns : p->b.rows;
    if (m != d->rows || n != d->columns || k != kb || c->rows != m || c->columns != n)
        return INVALID_VALUE;
    if (ta < 0 || ta > 1 || tb < 0 || tb > 1 || c->type != d->type)
        return NOT_SUPPORTED;
    /* Operands of one type, or both FP8; the result is of that type or float32; of FP8, of 16 bits or float32. */
    const int f8 = lt_is_f8(p->a.type) && lt_is_f8(p->b.type);
    if ((p->a.type != p->b.type && !f8) || lt_is_f8(d->type) ||
        (!f8 && d->type != LT_F32 && d->type != p->a.type))
        return NOT_SUPPORTED;
    return type_fits(p->a.type, arch) && type_fits(d->type, arch) && f8_fits(p, arch)
               ? 0
               : NOT_SUPPORTED;
}

/* The numbers of a setting, between colons: whether it is there and each is the one wanted, or 0, or negative. */
static int is_told(const char *name, int count, const uint64_t *wanted)
{
    const char *text = getenv(name);
    int is = text != NULL;
    for (int i = 0; i < count && is; i++) {
        char *end;
        const long number = strtol(text, &end, 10);
        is = number <= 0 || (uint64_t)number == wanted[i];
        text = *end == ':' ? end + 1 : end;
    }
    return is;
}

/* Columns of the result are rows to those who count the other way, as nojit does. */
static int f8_is_missing(const struct lt_product *p)
{
    const uint64_t shape[] = {p->d.columns, p->d.rows, p->a.rows};
    return lt_is_f8(p->a.type) && is_told("NOJIT_SIM_LT_NO_F8", 3, shape);
}

static int refuses(const struct lt_product *p, const struct nj_lt_algo *algo)
{
    const uint64_t told[] = {algo->data[0], p->d.columns};
    return is_told("NOJIT_SIM_LT_REFUSES", 2, told);
}

static int wrong_tile(const struct nj_lt_algo *algo)
{
    const char *text = getenv("NOJIT_SIM_LT_WRONG");
    const char *side = text ? strchr(text, ':') : NULL;
    return side && is_told("NOJIT_SIM_LT_WRONG", 1, algo->data) ? (int)strtol(side + 1, NULL, 10)
                                                                : 0;
}

static struct lt_product product_of(const struct lt_desc *desc, const struct lt_layout *a,
                                    const struct lt_layout *b, const struct lt_layout *d)
{
    return (struct lt_product){.desc = *desc, .a = *a, .b = *b, .d = *d};
}

LT_CALL(cublasLtMatmulAlgoGetHeuristic,
        (const struct sim_hook *hook, struct lt_desc *desc, struct lt_layout *a,
         struct lt_layout *b, struct lt_layout *c, struct lt_layout *d, const uint64_t *preference,
         int wanted, struct nj_lt_result *out, int *found),
        (hook, desc, a, b, c, d, preference, wanted, out, found))
{
    const struct lt_product p = product_of(desc, a, b, d);
    const char *only = getenv("NOJIT_SIM_LT_ONLY");
    const int status = check_product(&p, c, hook->arch());
    *found = 0;
    if (status || !preference)
        return status ? status : INVALID_VALUE;
    if (f8_is_missing(&p))
        return NOT_SUPPORTED;
    for (uint64_t number = 1; number <= ALGORITHMS && *found < wanted; number++) {
        if ((only && strtoull(only, NULL, 10) != number) ||
            (*preference < WORKSPACE_BYTES && number != EITHER))
            continue;
        memset(&out[*found], 0, sizeof out[*found]);
        out[*found].algo.data[0] = number;
        out[*found].workspace_bytes = *preference >= WORKSPACE_BYTES ? WORKSPACE_BYTES : 0;
        ++*found;
    }
    return *found > 0 ? 0 : NOT_SUPPORTED;
}

LT_CALL(cublasLtMatmulAlgoConfigGetAttribute,
        (const struct nj_lt_algo *algo, int attribute, void *out, size_t bytes, size_t *written),
        (algo, attribute, out, bytes, written))
{
    const int32_t number = (int32_t)algo->data[0], unordered = number == UNORDERED;
    const int32_t values[] = {
        [NJ_CUBLASLT_ALGO_CONFIG_ID] = number,
        [NJ_CUBLASLT_ALGO_CONFIG_SPLITK_NUM] = 1 + 3 * unordered,
        [NJ_CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME] = unordered,
    };
    const int is_known = attribute == NJ_CUBLASLT_ALGO_CONFIG_ID ||
                         attribute == NJ_CUBLASLT_ALGO_CONFIG_SPLITK_NUM ||
                         attribute == NJ_CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME;
    if (!is_known || bytes != sizeof *values)
        return INVALID_VALUE;
    memcpy(out, &values[attribute], *written = bytes);
    return 0;
}

static int knows(const struct nj_lt_algo *algo)
{
    for (int i = 1; i < 8; i++)
        if (algo->data[i])
            return 0;
    return algo->data[0] >= 1 && algo->data[0] <= ALGORITHMS;
}

LT_CALL(cublasLtMatmul,
        (const struct sim_hook *hook, const struct lt_desc *desc, const float *alpha, uint64_t a,
         const struct lt_layout *la, uint64_t b, const struct lt_layout *lb, const float *beta,
         uint64_t c, const struct lt_layout *lc, uint64_t d, const struct lt_layout *ld,
         const struct nj_lt_algo *algo, void *workspace, size_t bytes, void *stream),
        (hook, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, workspace, bytes, stream))
{
    struct lt_product p = product_of(desc, la, lb, ld);
    const int status = knows(algo) ? check_product(&p, lc, hook->arch()) : INVALID_VALUE;
    if (status)
        return status;
    if ((bytes < WORKSPACE_BYTES && algo->data[0] != EITHER) || (bytes > 0 && !workspace))
        return INVALID_VALUE;
    if (refuses(&p, algo))
        return NOT_SUPPORTED;
    /* In place only: that is how it is called. */
    if (c != d || memcmp(lc, ld, sizeof *lc) != 0)
        return NOT_SUPPORTED;
    p.hook = hook;
    p.at_a = a;
    p.at_b = b;
    p.at_d = d;
    p.alpha = *alpha;
    p.beta = *beta;
    p.wrong = wrong_tile(algo);
    return hook->enqueue(stream, lt_multiply, &p, sizeof p) ? LT_EXECUTION_FAILED : 0;
}
