/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.h: a weight matrix of a model: its sizes, how it is stored, and what multiplies with it. Code that has a
 * matrix asks it, and never the model, how it is stored: that is a row of functions, its format.
 */
#ifndef NOJIT_TRAINER_MATRIX_H
#define NOJIT_TRAINER_MATRIX_H

#include "base/tensor_type.h"
#include "net/carve.h"
#include "net/linear.h"

struct adapter;
struct f8_operands;
struct matrix_format;

/* Consecutive rows of one tensor type; those of a type that is not quantized are T. */
struct quant_part {
    enum nj_tensor_type type;
    int rows;
    char *data; /* device */
};
/* A quantized matrix: q, k and v, or gate and up, may have different types. */
struct quant_matrix {
    struct quant_part part[3];
    int parts;
    int at_once;    /* rows that `expanded` has room for */
    char *expanded; /* device: scratch that all matrices of a model share */
};

struct matrix {
    int rows, cols; /* y = x W^T has `rows` columns, and x has `cols` */
    int count;      /* matrices of these sizes, one after another: 1, or the experts of a layer */
    enum nj_dtype T;
    const struct matrix_format *format;
    int64_t first; /* its first element in the arenas of its model; -1: it has memory of its own */
    char *data;    /* device */
    float *grad;   /* device; NULL: it is not trained */
    const struct adapter *adapter; /* [adapters], of a model that trains adapters */
    int adapters;
    bool x_made;   /* the norm or activation before a GEMM of E4M3 operands writes x as such */
    bool dy_apart; /* the kernel that writes dy as E4M3 still reads that of another matrix */
    int number;    /* among those of its model */
    bool *refused; /* set where the device has no FP8 GEMM for it; NULL: that is an error */
    bool *gradient_refused;      /* the same of the GEMMs of its gradients */
    enum nj_f8_scales f8_scales; /* that the device's GEMMs take */
    union {                      /* what formats need beside `data` */
        struct f8_matrix f8;
        struct quant_matrix quant;
    };
};

/* One product with a matrix. */
struct matmul {
    int rows;                           /* of x, y and their gradients */
    int out;                            /* columns of y: the first rows of the matrix */
    int64_t ldy;                        /* elements from one row of y to the next */
    bool add;                           /* the gradient of the matrix is added to what is there */
    const struct f8_operands *training; /* of FP8 GEMMs, in a pass that trains; else NULL */
    const struct f8_matrix *x8; /* room for x as E4M3; x itself, where the matrix has it made */
};

struct matrix_format {
    const char *name;
    bool e4m3;             /* operands of its GEMMs are E4M3 */
    bool e4m3_in_training; /* in passes that train, and T in others */
    /* Take the memory of a matrix that lies in no arena. */
    void (*carve)(struct matrix *m, struct carve *c);
    /* Return rows as T, until the next call; NULL: no other kernel may take the place of fwd. */
    const void *(*weight)(struct work *r, const struct matrix *m, int first, int rows);
    /* dst = rows by ids */
    void (*gather)(struct work *r, const struct matrix *m, void *dst, const int32_t *ids, int rows);
    /* y = x W^T */
    void (*fwd)(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x);
    /* Prepare dy for dx and dw; NULL: nothing is to be done. */
    void (*gradient)(struct work *r, const struct matrix *m, const struct matmul *p,
                     const void *dy);
    /* dx = dy W; NULL, as dw: there are no gradients */
    void (*dx)(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
               const void *dy);
    /* m->grad = dy^T x */
    void (*dw)(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x);
};

/* Elements of type T, one row after another. */
extern const struct matrix_format matrix_plain;

size_t dtype_bytes(enum nj_dtype T);
/* Return the shape of a product as its GEMM has it. */
struct linear matrix_shape(const struct matrix *m, const struct matmul *p);
void matrix_carve_plain(struct matrix *m, struct carve *c);
const void *matrix_weight_plain(struct work *r, const struct matrix *m, int first, int rows);
void matrix_gather_plain(struct work *r, const struct matrix *m, void *dst, const int32_t *ids,
                         int rows);
void matrix_fwd_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                      const void *x);
void matrix_dx_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
                     const void *dy);
void matrix_dw_plain(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
                     const void *x);

/* Return the elements of all `count` matrices. */
int64_t matrix_elements(const struct matrix *m);
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
/* Nothing is done for a matrix that is not trained. */
void matrix_dw(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x);

#endif
