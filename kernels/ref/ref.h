/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.h: what every reference in this folder includes. A reference is the specification of its op: plain C, same
 * arguments in the same order as the kernel. It is compiled twice: NJ_REAL_DOUBLE gives the oracle of the tests
 * (suffix _f64), otherwise the CPU backend (suffix _f32, OpenMP).
 */
#ifndef NOJIT_REF_H
#define NOJIT_REF_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "step_state.h"

#ifdef NJ_REAL_DOUBLE
typedef double real;
#define NJ_REF(op) nj_ref_##op##_f64
#else
typedef float real;
#define NJ_REF(op) nj_ref_##op##_f32
#endif

#endif
