/* SPDX-License-Identifier: Apache-2.0
 *
 * stub_cublaslt.c: a libcublasLt.so.13 for the stub of the driver: float32 products in plain loops, and
 * a choice of three algorithms, of which one may not be taken. $STUB_LT_FAIL names a function that
 * answers with status 7; those made and not destroyed are counted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 7, TRANS_A = 3, TRANS_B = 4, SPLIT_K = 2, SCHEME = 3, F32 = 0 };

struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};
struct desc {
    int32_t trans_a, trans_b;
};
struct algo {
    uint64_t number, rest[7];
};
struct result {
    struct algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

extern int stub_lt_live;
int stub_lt_live;

#define ENTRY(name, args, ...)                                                                     \
    int name args;                                                                                 \
    int name args                                                                                  \
    {                                                                                              \
        const char *told = getenv("STUB_LT_FAIL");                                                 \
        if (told != NULL && strcmp(told, #name) == 0)                                              \
            return FAILED;                                                                         \
        __VA_ARGS__ return 0;                                                                      \
    }
#define DESTROY(name) ENTRY(name, (void *what), free(what); stub_lt_live--;)

static void *made(const void *what, size_t bytes)
{
    void *p = malloc(bytes);
    if (p == NULL)
        abort();
    stub_lt_live++;
    return memcpy(p, what, bytes);
}

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return 130100;
}

const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status)
{
    return status == FAILED ? "CUBLAS_STATUS_OF_THE_STUB" : "CUBLAS_STATUS_UNKNOWN";
}

ENTRY(cublasLtCreate, (void **out), *out = made("", 1);)
DESTROY(cublasLtDestroy)
ENTRY(cublasLtMatmulDescCreate, (void **out, int compute, int scale), (void)compute; (void)scale;
      const struct desc d = {0, 0}; *out = made(&d, sizeof d);)
DESTROY(cublasLtMatmulDescDestroy)
ENTRY(cublasLtMatmulDescSetAttribute,
      (struct desc * d, int attribute, const void *value, size_t bytes),
      memcpy(attribute == TRANS_A ? &d->trans_a : &d->trans_b, value, bytes);)
ENTRY(cublasLtMatrixLayoutCreate,
      (void **out, int type, uint64_t rows, uint64_t columns, int64_t ld),
      const struct layout l = {type, rows, columns, ld};
      *out = made(&l, sizeof l);)
DESTROY(cublasLtMatrixLayoutDestroy)
ENTRY(cublasLtMatmulPreferenceCreate, (void **out), *out = made("", 1);)
DESTROY(cublasLtMatmulPreferenceDestroy)
ENTRY(cublasLtMatmulPreferenceSetAttribute,
      (void *preference, int attribute, const void *value, size_t bytes), (void)preference;
      (void)attribute; (void)value; (void)bytes;)

/* Number 1 splits K in an order that is not fixed; $STUB_LT_ONLY is the only one there is. */
ENTRY(cublasLtMatmulAlgoGetHeuristic,
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int wanted,
       struct result *out, int *found),
      (void)handle;
      (void)desc; (void)a; (void)b; (void)c; (void)d; (void)preference; (void)wanted;
      const char *only = getenv("STUB_LT_ONLY"); *found = only != NULL ? 1 : 3;
      memset(out, 0, (size_t)*found * sizeof *out);
      for (int i = 0; i < *found; i++) out[i].algo.number = only != NULL ? strtoull(only, NULL, 10)
                                                                         : 1 + (uint64_t)i;)
ENTRY(cublasLtMatmulAlgoConfigGetAttribute,
      (const struct algo *algo, int attribute, void *out, size_t bytes, size_t *written),
      memset(out, 0, *written = bytes);
      if (algo->number == 1 && attribute == SPLIT_K) * (int32_t *)out = 4;
      if (algo->number == 1 && attribute == SCHEME) * (uint32_t *)out = 1;)
ENTRY(cublasLtMatmulAlgoCheck,
      (void *handle, void *desc, void *a, void *b, void *c, void *d, const struct algo *algo,
       struct result *result),
      (void)handle;
      (void)desc; (void)a; (void)b; (void)c; (void)d; if (algo->number > 3) return FAILED;
      memset(result, 0, sizeof *result); result->algo = *algo;)

static float at(const float *x, const struct layout *l, int transposed, uint64_t row, uint64_t col)
{
    return transposed ? x[col + row * (uint64_t)l->ld] : x[row + col * (uint64_t)l->ld];
}

static void multiply(const struct desc *desc, const float *alpha, const float *a,
                     const struct layout *la, const float *b, const struct layout *lb,
                     const float *beta, float *c, const struct layout *lc)
{
    const uint64_t depth = desc->trans_a ? la->rows : la->columns;
    for (uint64_t j = 0; j < lc->columns; j++)
        for (uint64_t i = 0; i < lc->rows; i++) {
            float sum = 0, *to = &c[i + j * (uint64_t)lc->ld];
            for (uint64_t k = 0; k < depth; k++)
                sum += at(a, la, desc->trans_a, i, k) * at(b, lb, desc->trans_b, k, j);
            *to = *alpha * sum + (*beta != 0 ? *beta * *to : 0);
        }
}

/* Products of 16-bit types give nothing. */
ENTRY(cublasLtMatmul,
      (void *handle, const struct desc *desc, const float *alpha, const void *a,
       const struct layout *la, const void *b, const struct layout *lb, const float *beta,
       const void *c, const struct layout *lc, void *d, const struct layout *ld,
       const struct algo *algo, void *workspace, size_t bytes, void *stream),
      (void)handle;
      (void)ld; (void)algo; (void)workspace; (void)bytes; (void)stream; (void)c;
      if (la->type == F32 && lc->type == F32) multiply(desc, alpha, a, la, b, lb, beta, d, lc);)
