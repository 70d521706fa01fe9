/* SPDX-License-Identifier: Apache-2.0
 *
 * error_text.c: texts of codes, the sentence a context keeps, and words on what takes long.
 */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define NJ_ROW(name, code, text) {code, #name, text},
    NJ_ERRORS(NJ_ROW)
#undef NJ_ROW
};

const char *nj_error_text(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unknown error";
}

const char *nj_error_name(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "unknown error";
}

int nj_fail(nj_context *ctx, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ctx->error, sizeof ctx->error, format, args);
    va_end(args);
    return code;
}

void nj_doing(const struct nj_options *options, const char *format, ...)
{
    char what[200];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (options->doing)
        options->doing(options->log_user, what);
}

const char *nj_context_error(const nj_context *ctx)
{
    return ctx ? ctx->error : "";
}
