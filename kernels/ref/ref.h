/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.h: included by every reference in this folder. A reference is the specification of its op: plain C, with the
 * kernel's arguments in the same order. It is compiled twice: with NJ_REAL_DOUBLE as the oracle of the tests (suffix
 * _f64), and without as the CPU backend (suffix _f32, OpenMP).
 *
 * Threads divide rows, heads, tiles or partial sums, never one sum, so results do not depend on their number. Where a
 * contract allows an output to equal an input, an element is read before it is written.
 */
#ifndef NOJIT_REF_H
#define NOJIT_REF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h> /* exp(real) is expf or exp */

#undef I /* from <complex.h>; a dimension here */

#include "base/step_state.h"

/* Prototypes are generated from the contracts. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#ifdef NJ_REAL_DOUBLE
typedef double real;
#define NJ_REF(op) nj_ref_##op##_f64
#else
typedef float real;
#define NJ_REF(op) nj_ref_##op##_f32
#endif

#endif
