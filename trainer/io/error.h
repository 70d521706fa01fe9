/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h: how trainer code fails: `return fail(NJ_E_FORMAT, "%s: field ...; do ...", path, ...)`.
 * One sentence: what, where, what to do. The command line prints it and maps the code to an exit status.
 */
#ifndef NOJIT_TRAINER_ERROR_H
#define NOJIT_TRAINER_ERROR_H

#include "base/try.h"
#include "nojit.h"

/* Records the sentence (thread-local, 1,023 bytes) and returns code. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records the context's sentence, prefixed by what, and returns code. */
int fail_context(int code, const nj_context *ctx, const char *what);
const char *fail_text(void);
/* The exit status of a process that fails with this code. */
int fail_status(int code);

/* A code of the trainer alone: the run was interrupted and saved (exit status 130). */
#define NJ_INTERRUPTED (-1000)
/* A code of the trainer alone: the run has ended and has diverged (exit status 5). */
#define NJ_DIVERGED (-1002)
/* Another: the run has failed, and another of its ranks knows why. */
#define NJ_ELSEWHERE (-1001)

#endif
