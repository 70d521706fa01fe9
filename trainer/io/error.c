/* SPDX-License-Identifier: Apache-2.0
 *
 * error.c: the last error sentence of each thread, and the exit status of each code.
 */
#include "io/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

static _Thread_local char sentence[1024];

int fail(int code, const char *format, ...)
{
    /* Format into a copy first: callers may pass fail_text() itself. */
    char text[sizeof sentence];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text);
    snprintf(sentence, sizeof sentence, "%s", text);
    return code;
}

int fail_context(int code, const nj_context *ctx, const char *what)
{
    return fail(code, "%s: %s", what, nj_context_error(ctx));
}

const char *fail_text(void)
{
    return sentence;
}

struct status {
    int code, status;
};

static const struct status statuses[] = {
    {0, 0},
    {NJ_E_ARG, 2},
    {NJ_E_NOMEM, 3},
    {NJ_E_NO_CODE, 4},
    {NJ_E_NO_KERNEL, 4},
    {NJ_DIVERGED, 5},
    {NJ_INTERRUPTED, 130},
};

int fail_status(int code)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return 1;
}
