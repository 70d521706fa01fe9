/* SPDX-License-Identifier: Apache-2.0
 *
 * live.h: a teacher that is a model of this process.
 */
#ifndef NOJIT_TRAINER_TEACHER_LIVE_H
#define NOJIT_TRAINER_TEACHER_LIVE_H

#include "teacher/teacher.h"

/* The model, and the form that its matrices have on the device. */
struct live_setup {
    const struct model_config *config;
    enum nj_dtype T;
    bool f8;                     /* it multiplies E4M3 operands */
    enum nj_f8_scales f8_scales; /* form of scales that the device's GEMMs of E4M3 take */
    struct fp8_refusals *fp8_refused;
    const unsigned char *types; /* types of its tensors, as in struct train_options; or NULL */
    size_t cell_bytes;          /* largest allocation on the device; 0: no limit */
    int rank, ranks;            /* each rank keeps a slice of its layers; ranks 0: all layers */
};
/* Place the parameters of the model. teacher_close() comes in any case. */
int live_open(struct teacher *t, const struct live_setup *s);

#endif
