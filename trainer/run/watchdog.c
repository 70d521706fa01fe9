/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.c: see watchdog.h.
 */
#include "run/watchdog.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char sentence[300];

/* The thread that waits may never come back, so nothing is cleaned up; no checkpoint is open. */
static void on_alarm(int sig)
{
    (void)sig;
    const ssize_t written = write(STDERR_FILENO, sentence, strlen(sentence));
    (void)written; /* there is nobody else to tell */
    _exit(1);
}

void deadline_begin(int64_t step, int64_t seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    if (seconds == 0)
        return;
    snprintf(
        sentence, sizeof sentence,
        "nojit: step %lld has not ended after %lld seconds: the GPU hangs or is not up to this "
        "run; see dmesg for Xid, then continue with --resume auto, or allow more by "
        "--first-step-timeout\n",
        (long long)step, (long long)seconds);
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)seconds);
}

void deadline_end(void)
{
    alarm(0);
}
