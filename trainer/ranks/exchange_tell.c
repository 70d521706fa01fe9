/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_tell.c: messages of a rank to the other ranks when the run fails, and to its user
 * when it waits.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/error.h"
#include "ranks/exchange_struct.h"

enum { WORD_MS = 4000, MORE_WORDS_MS = 60000 };

void exchange_tell(struct exchange *x, uint32_t kind, int rank, const char *text, int except)
{
    for (int i = 0; i < x->peers; i++)
        if (x->peer[i].fd >= 0 && i != except)
            frame_send(x->peer[i].fd, kind, rank, text, strlen(text) + 1, now_ms() + SEND_MS);
}

int exchange_record(struct exchange *x, int rc, int rank, const char *sentence, int from)
{
    if (x->rc == 0) {
        x->rc = rc;
        snprintf(x->sentence, sizeof x->sentence, "%s", sentence);
        exchange_tell(x, FRAME_FAILED, rank, x->sentence, from);
    }
    return fail(x->rc, "%s", x->sentence);
}

bool word_is_due(int64_t began, int *said)
{
    if (now_ms() < began + WORD_MS + (int64_t)*said * MORE_WORDS_MS)
        return false;
    ++*said;
    return true;
}

void exchange_say(const struct exchange *x, const char *format, ...)
{
    char line[512];
    va_list ap;
    if (!x->say)
        return;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    x->say(x->user, line);
}
