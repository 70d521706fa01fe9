/* SPDX-License-Identifier: Apache-2.0
 *
 * problems.c: keeps and prints problems.
 */
#include "image/problems.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/utf8.h"

int fail(char why[WHY_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, WHY_BYTES, format, args);
    va_end(args);
    return -1;
}

void report_add(struct report *r, const char *key, const char *arch, const char *format, ...)
{
    if (!GROW(r->problems, r->capacity, r->count + 1)) {
        r->lost++;
        return;
    }
    struct problem *p = &r->problems[r->count++];
    snprintf(p->key, sizeof(p->key), "%s", key);
    snprintf(p->arch, sizeof(p->arch), "%s", arch);
    va_list args;
    va_start(args, format);
    vsnprintf(p->text, sizeof(p->text), format, args);
    va_end(args);
    make_printable(p->key);
    make_printable(p->text);
}

uint32_t report_count(const struct report *r)
{
    return r->count + r->lost;
}

void report_print(const struct report *r, FILE *to, const char *program)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct problem *p = &r->problems[i];
        fprintf(to, "%s: %s%s%s%s%s\n", program, p->key, p->key[0] && p->arch[0] ? " " : "",
                p->arch, p->key[0] || p->arch[0] ? ": " : "", p->text);
    }
    if (r->lost)
        fprintf(to, "%s: %u more problems; out of memory to keep them\n", program, r->lost);
}

void report_free(struct report *r)
{
    free(r->problems);
    *r = (struct report){0};
}
