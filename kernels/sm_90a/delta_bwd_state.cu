// SPDX-License-Identifier: Apache-2.0
//
// delta_bwd_state.cu for sm_90a: a chunk is copied while the one before it is computed. Two blocks of an SM have
// room for that.
#define NJ_DELTA_STAGES 2
#include "../delta_bwd_state.cu"
