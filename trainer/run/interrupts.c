/* SPDX-License-Identifier: Apache-2.0
 *
 * interrupts.c: see interrupts.h.
 */
#include "run/interrupts.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "io/unfinished.h"

static volatile sig_atomic_t interrupt_count;
static bool waits; /* whether it waits for its checkpoint, regardless of further signals */
static const char *ended = "nojit: ended at once; what was not saved yet is lost\n";

/* Print that the process ended. Only write() is safe in a handler; if the reader is gone, only this line is lost. */
static void say_ended(void)
{
    const ssize_t written = write(STDERR_FILENO, ended, strlen(ended));
    (void)written;
}

/* Handle a signal. A terminal that closes sends SIGHUP twice, by the kernel and by its shell, and a SIGTERM may
 * follow; from the limit of CPU time (ulimit -t) on, the kernel sends SIGXCPU every second. Only a signal after a
 * SIGINT or SIGTERM means that the user does not want to wait for the checkpoint. */
static void on_interrupt(int sig)
{
    static volatile sig_atomic_t asked;
    if (sig != SIGHUP && sig != SIGXCPU && asked++ > 0 && !waits) {
        unfinished_remove();
        say_ended();
        _exit(130);
    }
    interrupt_count = 1;
}

void interrupts_catch(bool supervised)
{
    waits = supervised;
    if (isatty(STDERR_FILENO))
        ended = "\nnojit: ended at once; what was not saved yet is lost\n"; /* printed after ^C */
    /* SA_RESTART lets a write that waits for its reader go on; otherwise the contents of its buffer would be lost. */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGXCPU, &action, NULL);
    /* The command nohup sets it to be ignored. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

void pipes_may_close(void)
{
    signal(SIGPIPE, SIG_IGN);
}

bool interrupted(void)
{
    return interrupt_count > 0;
}
