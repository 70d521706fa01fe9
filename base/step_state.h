/* SPDX-License-Identifier: Apache-2.0
 *
 * step_state.h: slots of the step state, float32[NJ_STEP_SLOTS] in device memory. It holds every value that changes
 * from step to step, so that captured graphs need no new parameters. The host writes the first NJ_STEP_HOST_SLOTS
 * before each optimizer step (one copy on the stream); kernels write the others.
 */
#ifndef NOJIT_STEP_STATE_H
#define NOJIT_STEP_STATE_H

enum nj_step_slot {
    NJ_STEP_LR = 0,        /* learning rate of this step */
    NJ_STEP_INV_VALID = 1, /* 1 / valid tokens of the whole optimizer step */
    NJ_STEP_HOST_SLOTS = 4,
    NJ_STEP_UPDATES = 4,     /* optimizer updates so far, including this one (clip_scale) */
    NJ_STEP_BIAS1 = 5,       /* 1 - beta1^updates */
    NJ_STEP_BIAS2 = 6,       /* 1 - beta2^updates */
    NJ_STEP_GRAD_SCALE = 7,  /* factor that adamw applies to gradients: clipping / loss scale */
    NJ_STEP_GRAD_NORM = 8,   /* Euclidean norm of the unscaled gradient, before clipping */
    NJ_STEP_LOSS_SCALE = 9,  /* 1 except on float16 */
    NJ_STEP_SKIP = 10,       /* 1 if the gradient was not finite and the update is skipped */
    NJ_STEP_GOOD_STEPS = 11, /* finite steps since the loss scale last changed */
    NJ_STEP_SKIPPED = 12,    /* updates skipped so far */
    NJ_STEP_SLOTS = 16
};

#endif
