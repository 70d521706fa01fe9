/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h: errors of trainer code: `return fail(NJ_E_FORMAT, "%s: field ...; do ...", path, ...)`.
 * An error is one sentence: what, where, what to do. The command line prints it and maps the code
 * to an exit status.
 */
#ifndef NOJIT_TRAINER_ERROR_H
#define NOJIT_TRAINER_ERROR_H

#include "base/try.h"
#include "nojit.h"

/* Record the sentence (thread-local, 1,023 bytes) and return code. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Record the context's sentence, prefixed with what, and return code. */
int fail_context(int code, const nj_context *ctx, const char *what);
const char *fail_text(void);
/* Return the exit status of a process that fails with this code. */
int fail_status(int code);

/* Code used only in the trainer: the run was interrupted and saved (exit status 130). */
#define NJ_INTERRUPTED (-1000)
/* Code used only in the trainer: the run has ended and has diverged (exit status 5). */
#define NJ_DIVERGED (-1002)
/* Code used only in the trainer: the run has failed, and another of its ranks knows why. */
#define NJ_ELSEWHERE (-1001)

#endif
