// SPDX-License-Identifier: Apache-2.0
//
// step_state.glsl: slots of the step state, with the numbers of base/step_state.h.
const int STEP_LR = 0, STEP_INV_VALID = 1, STEP_UPDATES = 4, STEP_BIAS1 = 5, STEP_BIAS2 = 6,
          STEP_GRAD_SCALE = 7, STEP_GRAD_NORM = 8, STEP_LOSS_SCALE = 9, STEP_SKIP = 10,
          STEP_GOOD_STEPS = 11, STEP_SKIPPED = 12;
