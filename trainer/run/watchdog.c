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

/* End the process. The thread that waits may never come back, so nothing is cleaned up; no checkpoint is open. */
static void on_alarm(int sig)
{
    (void)sig;
    const ssize_t written = write(STDERR_FILENO, sentence, strlen(sentence));
    (void)written; /* there is nobody else to tell */
    _exit(1);
}

static void alarm_after(int64_t step, int64_t seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    if (seconds == 0)
        return;
    snprintf(
        sentence, sizeof sentence,
        "nojit: step %lld has not ended after %lld seconds: the GPU is hung or too slow for this "
        "configuration; see dmesg for lines of its driver, then continue with --resume auto, or "
        "allow more time with --first-step-timeout\n",
        (long long)step, (long long)seconds);
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)seconds);
}

static bool on_gpu(const struct run *r)
{
    return strcmp(nj_context_device(r->ctx)->backend, "cpu") != 0;
}

static void expect(const struct run *r, const char *what)
{
    const int64_t first = on_gpu(r) ? r->s->first_step_timeout : 0;
    group_expect(r->group, what, first == 0 ? 0 : (int)first + (int)(10 * r->step_seconds),
                 "--first-step-timeout");
}

void deadline_load(const struct run *r)
{
    expect(r, "loading the models");
}

void deadline_step(const struct run *r, int64_t step)
{
    char what[32];
    snprintf(what, sizeof what, "step %lld", (long long)step);
    if (r->group->place.size > 1)
        expect(r, what);
    else if (step == r->progress.first_step + 1 && on_gpu(r))
        alarm_after(step, r->s->first_step_timeout);
}

void deadline_evaluation(const struct run *r, int64_t step)
{
    char what[64];
    snprintf(what, sizeof what, "the evaluation at step %lld", (long long)step);
    expect(r, what);
}

void deadline_collection(const struct run *r)
{
    expect(r, "collecting a checkpoint or model");
}

void deadline_end(const struct run *r)
{
    alarm(0);
    group_done(r->group);
}
