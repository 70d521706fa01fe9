/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.h: a weight matrix of a model: its sizes, how it is stored, and how it is multiplied. Code that has a matrix
 * asks it, and never the model, how it is stored: that is a row of functions, its format.
 */
#ifndef NOJIT_TRAINER_MATRIX_H
#define NOJIT_TRAINER_MATRIX_H

#include "base/tensor_type.h"
#include "net/block_matrix.h"
#include "net/carve.h"
#include "net/linear.h"

struct adapter;
struct fp8_operands;
struct matrix_format;

/* Consecutive rows of one tensor type; rows of a type that is not quantized are T. */
struct quant_part {
    enum nj_tensor_type type;
    int rows;
    char *data; /* elements, on the device */
};
/* A quantized matrix: q, k and v, or gate and up, may have different types. */
enum { QUANT_PARTS = 3 };
struct quant_matrix {
    struct quant_part part[QUANT_PARTS];
    int parts;
    int at_once;    /* number of rows that `expanded` has room for */
    char *expanded; /* scratch on the device that all matrices of a model share */
};

struct matrix {
    int rows, cols; /* sizes in y = x W^T: y has `rows` columns, x has `cols` */
    /* Number of experts whose matrices are its rows, and of those that are T at the same time; 0: it is one matrix. */
    int experts, experts_at_once;
    enum nj_dtype T;
    const struct matrix_format *format;
    int64_t first; /* its first element in the arenas of its model; -1: it has memory of its own */
    char *data;    /* elements, on the device */
    float *grad;   /* gradient, on the device; NULL: it is not trained */
    const struct adapter *adapter; /* [adapters] adapters, if the model trains them */
    int adapters;
    bool x_made;        /* the norm or activation before a GEMM of E4M3 operands writes x as E4M3 */
    bool small;         /* its products are always in T */
    bool dy_own;        /* the kernel that writes dy as E4M3 still reads the dy of another matrix */
    int number;         /* number among the matrices of its model */
    float scale;        /* factor of its products; 0 counts as 1 */
    int64_t bias_first; /* first element of its bias in the arenas; -1: it has none */
    char *bias;         /* bias and its gradient, on the device, or NULL */
    float *bias_grad;
    enum x_writer x; /* kernel that writes x */
    bool *refused;   /* flag to set if the device has no FP8 GEMM for it; NULL: that is an error */
    bool *gradient_refused;      /* flag to set if it has none for its gradients */
    enum nj_f8_scales f8_scales; /* form of scales that the device's GEMMs take */
    union {                      /* state of a format beside `data` */
        struct fp8_matrix f8;
        struct quant_matrix quant;
    };
};

/* One product with a matrix. */
struct matmul {
    int rows;                            /* number of rows of x, y and their gradients */
    int out;                             /* number of columns of y: the first rows of the matrix */
    int64_t ldy;                         /* elements from one row of y to the next */
    bool add;                            /* the gradient of the matrix is added to what is there */
    const struct fp8_operands *training; /* operands of FP8 GEMMs in a training pass; else NULL */
    const struct fp8_matrix *x8;         /* room for x as E4M3; x itself if x_made */
};

struct matrix_format {
    const char *name;
    bool e4m3;             /* operands of its GEMMs are E4M3 */
    bool e4m3_in_training; /* they are so in training passes, and T in others */
    /* Take the memory of a matrix that lies in no arena. */
    void (*carve)(struct matrix *m, struct carve *c);
    /* Return rows as T, valid until the next call. Where they are expanded into scratch, they lie `at` rows behind its
     * beginning, and those before them stay valid. NULL: no other kernel may take the place of fwd. */
    const void *(*weight)(struct work *r, const struct matrix *m, int first, int rows, int at);
    /* Set dst to the rows that `ids` select, times a factor. */
    void (*gather)(struct work *r, const struct matrix *m, void *dst, const int32_t *ids, int rows,
                   float scale);
    /* Compute y = x W^T. */
    void (*fwd)(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x);
    /* Prepare dy for dx and dw; NULL: no preparation is needed. */
    void (*gradient)(struct work *r, const struct matrix *m, const struct matmul *p,
                     const void *dy);
    /* Compute dx = dy W; dx and dw are NULL if there are no gradients. */
    void (*dx)(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
               const void *dy);
    /* Compute m->grad = dy^T x. */
    void (*dw)(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x);
};

/* Format of elements of type T, one row after another. */
extern const struct matrix_format matrix_plain;

size_t dtype_bytes(enum nj_dtype T);
/* Return the shape of a product's GEMM. */
struct linear matrix_shape(const struct matrix *m, const struct matmul *p);
void matrix_carve_plain(struct matrix *m, struct carve *c);
const void *matrix_weight_plain(struct work *r, const struct matrix *m, int first, int rows,
                                int at);
void matrix_gather_plain(struct work *r, const struct matrix *m, void *dst, const int32_t *ids,
                         int rows, float scale);
void matrix_fwd_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                      const void *x);
void matrix_dx_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
                     const void *dy);
void matrix_dw_plain(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
                     const void *x);

int64_t matrix_elements(const struct matrix *m);
/* Return the factor of its products. */
float matrix_scale(const struct matrix *m);
static inline bool matrix_has_adapters(const struct matrix *m)
{
    return m->adapters > 0;
}
/* Return whether the operands of a product are E4M3. */
bool matrix_e4m3(const struct matrix *m, const struct matmul *p);
/* Return the product with all rows of the matrix. */
struct matmul matrix_matmul(const struct matrix *m, int rows);
void matrix_fwd(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x);
void matrix_gradient(struct work *r, const struct matrix *m, const struct matmul *p,
                     const void *dy);
void matrix_dx(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
               const void *dy);
/* Compute the gradient of the matrix; do nothing if it is not trained. */
void matrix_dw(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x);

#endif
