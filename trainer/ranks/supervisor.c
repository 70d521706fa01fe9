/* SPDX-License-Identifier: Apache-2.0
 *
 * supervisor.c: see supervisor.h.
 */
#include "ranks/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/error.h"
#include "ranks/exchange.h"
#include "ranks/wire.h"

/* Time that the other ranks have to end by themselves once one has failed: to notice that it is
 * gone, or, if none of them can have begun without it, to report the same failure. */
enum { GRACE_MS = 5000, UNMET_MS = 500, INTERRUPTED_STATUS = 130 };

/* Message of one write to a pipe, so that those of several ranks do not mix. */
struct verdict {
    int rank, code;
    bool unmet; /* whether the rank had not met the others */
    char sentence[1024];
};

struct child {
    pid_t pid; /* process of the rank; 0: it has ended */
    bool killed;
    struct verdict verdict; /* message of the rank; code 0: none */
};

struct watch {
    const struct place *base;
    struct child *child;
    int count, running;
    int signals, words[2], listener, port;
    unsigned char secret[SECRET_BYTES]; /* secret of the ranks, if all of them are its own */
    sigset_t before;
    int64_t deadline;     /* time at which the ranks are killed after a failure; 0: none */
    struct verdict first; /* first failure; code 0: none */
    int asked, asks; /* last signal that asked all to stop; number of such signals except SIGHUP */
    bool interrupted;
    bool cut;   /* whether a signal asked not to wait: others may say that a rank is gone */
    bool crash; /* whether `first` is the effect of a signal, which is the cause of all else */
};

static int rank_of(const struct watch *w, int i)
{
    return w->base->rank * w->count + i;
}

void supervised_fail(int supervisor, int rank, int code, bool unmet, const char *sentence)
{
    struct verdict v = {.rank = rank, .code = code, .unmet = unmet};
    snprintf(v.sentence, sizeof v.sentence, "%s", sentence);
    const ssize_t written = write(supervisor, &v, sizeof v);
    (void)written; /* if the supervisor is gone, there is nobody to tell */
}

/* ---- failures ---- */

/* Give the remaining ranks a while to end by themselves. */
static void set_deadline(struct watch *w, int ms)
{
    if (w->deadline == 0)
        w->deadline = now_ms() + ms;
}

static void failed(struct watch *w, const struct verdict *v)
{
    if (w->first.code == 0)
        w->first = *v;
    set_deadline(w, v->unmet ? UNMET_MS : GRACE_MS);
}

static void hear(struct watch *w)
{
    struct verdict v;
    while (read(w->words[0], &v, sizeof v) == (ssize_t)sizeof v) {
        const int i = v.rank - rank_of(w, 0);
        if (i < 0 || i >= w->count || v.code == 0)
            continue;
        v.sentence[sizeof v.sentence - 1] = '\0';
        w->child[i].verdict = v;
        failed(w, &v);
    }
}

static void crashed(struct watch *w, int i, pid_t pid, int sig)
{
    struct verdict v = {.rank = rank_of(w, i), .code = NJ_E_DEVICE};
    snprintf(v.sentence, sizeof v.sentence,
             "its process %ld was ended by signal %d (%s)%s; continue with --resume auto",
             (long)pid, sig, strsignal(sig),
             sig == SIGKILL ? ", by another process or because memory ran out (see dmesg)" : "");
    if (!w->crash)
        w->first.code = 0;
    w->crash = true;
    failed(w, &v);
}

static void ended(struct watch *w, pid_t pid, int status)
{
    int i = 0;
    while (i < w->count && w->child[i].pid != pid)
        i++;
    if (i == w->count)
        return;
    struct child *c = &w->child[i];
    c->pid = 0;
    w->running--;
    hear(w); /* read messages that it sent before */
    if (WIFSIGNALED(status) && w->asked == WTERMSIG(status)) {
        w->interrupted = true; /* the rank ended before it could save anything */
        set_deadline(w, GRACE_MS);
    } else if (WIFSIGNALED(status) && !c->killed)
        crashed(w, i, pid, WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
        return;
    if (WEXITSTATUS(status) == INTERRUPTED_STATUS)
        w->interrupted = true;
    else if (w->first.code == 0) {
        struct verdict v = {.rank = rank_of(w, i), .code = NJ_E_DEVICE};
        snprintf(v.sentence, sizeof v.sentence, "ended with status %d", WEXITSTATUS(status));
        failed(w, &v);
    }
}

static void kill_all(struct watch *w, int sig)
{
    for (int i = 0; i < w->count; i++)
        if (w->child[i].pid > 0) {
            w->child[i].killed = w->child[i].killed || sig == SIGKILL;
            kill(w->child[i].pid, sig);
        }
}

/* ---- watching ---- */

/* Ask the ranks to stop. Signals from a terminal reach the ranks as well as this process. A
 * second SIGINT or SIGTERM asks not to wait for the checkpoint; ranks leave that to this
 * process. */
static void ask(struct watch *w, int sig, bool sent_to_all)
{
    const bool again = sig != SIGHUP && w->asks++ > 0;
    w->asked = sig;
    if (again) {
        w->cut = w->first.code == 0;
        w->interrupted = true;
    }
    if (again || !sent_to_all)
        kill_all(w, again ? SIGKILL : sig);
}

static void on_signal(struct watch *w)
{
    struct signalfd_siginfo info;
    int status;
    while (read(w->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            ask(w, (int)info.ssi_signo, info.ssi_code == SI_KERNEL);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        ended(w, pid, status);
}

static void watch_all(struct watch *w)
{
    struct pollfd on[] = {{.fd = w->signals, .events = POLLIN},
                          {.fd = w->words[0], .events = POLLIN}};
    while (w->running > 0) {
        const bool late = w->deadline > 0 && now_ms() >= w->deadline;
        if (late)
            kill_all(w, SIGKILL);
        poll(on, 2, w->deadline == 0 ? -1 : late ? 100 : wait_until(w->deadline, GRACE_MS));
        hear(w);
        on_signal(w);
    }
}

/* Return the code of the run; a sentence that several ranks report does not name one rank. */
static int outcome(const struct watch *w)
{
    int alike = 0;
    if (w->first.code == 0 || w->cut)
        return w->interrupted ? fail(NJ_INTERRUPTED, "interrupted") : 0;
    for (int i = 0; i < w->count; i++)
        alike += w->child[i].verdict.code != 0 &&
                 strcmp(w->child[i].verdict.sentence, w->first.sentence) == 0;
    if (alike > 1 || (w->first.rank == 0 && !w->crash))
        return fail(w->first.code, "%s", w->first.sentence);
    return fail(w->first.code, "rank %d: %s", w->first.rank, w->first.sentence);
}

/* ---- forking ---- */

static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};

static void fill_place(const struct watch *w, int i, struct place *out)
{
    *out = *w->base;
    out->rank = rank_of(w, i);
    out->size = w->base->size * w->count;
    out->local_rank = i;
    out->local_size = w->count;
    if (w->base->size > 1)
        return;
    snprintf(out->host, sizeof out->host, "127.0.0.1");
    out->port = w->port;
    out->launcher = "--gpus";
    memcpy(out->secret, w->secret, sizeof out->secret);
}

static int begin(struct watch *w)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&mask, watched[i]);
    w->child = calloc((size_t)w->count, sizeof *w->child);
    if (w->child == NULL)
        return fail(NJ_E_NOMEM, "no memory for %d ranks", w->count);
    sigprocmask(SIG_BLOCK, &mask, &w->before);
    w->signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (w->signals < 0 || pipe2(w->words, O_NONBLOCK | O_CLOEXEC) != 0)
        return fail(NJ_E_IO, "--gpus: no pipe to the ranks: %s", strerror(errno));
    if (w->base->size > 1)
        return 0;
    if (getrandom(w->secret, sizeof w->secret, 0) != (ssize_t)sizeof w->secret)
        return fail(NJ_E_IO, "--gpus: no random bytes: %s", strerror(errno));
    w->listener = wire_listen(&w->port, "127.0.0.1");
    return w->listener < 0 ? w->listener : 0;
}

/* Become a rank in the child: close the parent's descriptors, and end when the parent ends. */
static void become_rank(struct watch *w, int i, pid_t parent, struct rank *out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    fill_place(w, i, &out->place);
    out->supervisor = w->words[1];
    out->listener = i == 0 ? w->listener : -1;
    if (i > 0 && w->listener >= 0)
        close(w->listener);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
    close(w->words[0]);
    close(w->signals);
    free(w->child);
}

/* Fork all ranks; return true in a rank. */
static bool fork_all(struct watch *w, struct rank *out, int *code)
{
    const pid_t parent = getpid();
    fflush(NULL); /* otherwise each rank would write the buffered output again */
    for (int i = 0; i < w->count; i++, w->running++) {
        const pid_t pid = fork();
        if (pid == 0) {
            become_rank(w, i, parent, out);
            return true;
        }
        if (pid < 0) {
            *code = fail(NJ_E_IO, "rank %d cannot be started: %s", rank_of(w, i), strerror(errno));
            kill_all(w, SIGKILL);
            return false;
        }
        w->child[i].pid = pid;
    }
    return false;
}

static void end(struct watch *w)
{
    const int open[] = {w->listener, w->words[0], w->words[1], w->signals};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (open[i] >= 0)
            close(open[i]);
    if (w->signals >= 0)
        sigprocmask(SIG_SETMASK, &w->before, NULL);
    free(w->child);
}

bool supervise(const struct place *base, int count, struct rank *out, int *code)
{
    struct watch w = {
        .base = base, .count = count, .signals = -1, .words = {-1, -1}, .listener = -1};
    *code = begin(&w);
    if (*code == 0 && fork_all(&w, out, code))
        return true;
    if (w.listener >= 0)
        close(w.listener);
    w.listener = -1;
    watch_all(&w);
    if (*code == 0)
        *code = outcome(&w);
    end(&w);
    return false;
}
