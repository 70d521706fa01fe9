/* SPDX-License-Identifier: Apache-2.0
 *
 * waits.c: see waits.h. The thread starts with the first wait; without one there are no
 * messages. It polls, because waking it for each wait would cost more than most waits. A forked
 * process has no thread until its own first wait.
 */
#include "io/waits.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"

enum { DEPTH = 4, FIRST_SECONDS = 4, NEXT_SECONDS = 60 };

/* `mutex` guards everything below except the callback, which `speaking` guards. Take `speaking` first; it is held
 * during the callback. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, speaking = PTHREAD_MUTEX_INITIALIZER;
static bool started; /* whether the thread was started, or cannot be */
static double first_seconds, spoke;
static int depth; /* number of nested operations; those beyond DEPTH have no name */
static struct wait {
    char what[256], detail[128];
    int behind;        /* rank that has not begun it, or -1 */
    double began, due; /* due: seconds of silence before the next message */
} waits[DEPTH];
static void (*hears)(void *user, const char *line);
static void *hearer;
static const char *(*watched)(void);

static struct wait *innermost(void)
{
    return depth > 0 && depth <= DEPTH ? &waits[depth - 1] : NULL;
}

static void describe(const struct wait *w, char *out, size_t bytes)
{
    const bool detailed = w->detail[0] != '\0', held_up = w->behind >= 0;
    char behind[64] = "";
    if (held_up)
        snprintf(behind, sizeof behind, "rank %d has not begun it", w->behind);
    snprintf(out, bytes, "%s%s%s%s%s (%.0f s so far)", w->what, detailed || held_up ? ": " : "",
             w->detail, detailed && held_up ? "; " : "", behind, clock_seconds() - w->began);
}

static double due_at(const struct wait *w)
{
    return (w->began > spoke ? w->began : spoke) + w->due;
}

/* Format the message that is due; return false if none is. */
static bool make_word(char *out, size_t bytes)
{
    pthread_mutex_lock(&mutex);
    struct wait *w = innermost();
    const bool due = w != NULL && first_seconds > 0 && clock_seconds() >= due_at(w);
    if (due) {
        describe(w, out, bytes);
        make_printable(out);
        w->due = NEXT_SECONDS;
        spoke = clock_seconds();
    }
    pthread_mutex_unlock(&mutex);
    return due;
}

/* Sleep for an eighth of the silence after which a message is due, at most half a second. */
static void doze(void)
{
    const double most = 0.5, part = first_seconds / 8;
    const double seconds = part < most ? part : most;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

static void say_due(void)
{
    char line[512];
    pthread_mutex_lock(&speaking);
    if (make_word(line, sizeof line) && hears != NULL)
        hears(hearer, line);
    pthread_mutex_unlock(&speaking);
}

static void say_news(void)
{
    pthread_mutex_lock(&speaking);
    const char *sentence = watched != NULL && hears != NULL ? watched() : NULL;
    if (sentence != NULL)
        hears(hearer, sentence);
    pthread_mutex_unlock(&speaking);
}

static void *watch(void *unused)
{
    (void)unused;
    for (;; doze()) {
        say_due();
        say_news();
    }
    return NULL;
}

static void lock_all(void)
{
    pthread_mutex_lock(&speaking);
    pthread_mutex_lock(&mutex);
}

static void unlock_all(void)
{
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&speaking);
}

static void begin_anew(void)
{
    started = false;
    depth = 0;
    unlock_all();
}

/* Start the thread; `mutex` must be held. */
static void start(void)
{
    static bool forks;
    const char *text = getenv("NOJIT_WAIT_SECONDS");
    pthread_t thread;
    char *end = NULL;
    started = true;
    first_seconds = text != NULL ? strtod(text, &end) : FIRST_SECONDS;
    if (text != NULL && (end == text || *end != '\0' || !(first_seconds >= 0)))
        first_seconds = FIRST_SECONDS;
    if (first_seconds == 0)
        return;
    if (!forks && pthread_atfork(lock_all, unlock_all, begin_anew) != 0)
        return;
    forks = true;
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
}

void wait_begin(const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&mutex);
    if (!started)
        start();
    depth++;
    struct wait *w = innermost();
    if (w != NULL && first_seconds > 0) {
        *w = (struct wait){.behind = -1, .began = clock_seconds(), .due = first_seconds};
        va_start(args, format);
        vsnprintf(w->what, sizeof w->what, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&mutex);
}

/* End the wait. If the thread is late with a message that is due, print it here, so that it does
 * not depend on the thread's schedule. */
void wait_end(void)
{
    say_due();
    pthread_mutex_lock(&mutex);
    depth -= depth > 0;
    pthread_mutex_unlock(&mutex);
}

void wait_now(const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&mutex);
    struct wait *w = innermost();
    if (w != NULL) {
        va_start(args, format);
        vsnprintf(w->what, sizeof w->what, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&mutex);
}

void wait_detail(const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&mutex);
    struct wait *w = innermost();
    if (w != NULL) {
        va_start(args, format);
        vsnprintf(w->detail, sizeof w->detail, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&mutex);
}

void wait_behind(int rank)
{
    pthread_mutex_lock(&mutex);
    struct wait *w = innermost();
    if (w != NULL)
        w->behind = rank;
    pthread_mutex_unlock(&mutex);
}

void wait_usual(double seconds)
{
    pthread_mutex_lock(&mutex);
    struct wait *w = innermost();
    if (w != NULL)
        w->due += seconds;
    pthread_mutex_unlock(&mutex);
}

void waits_spoke(void)
{
    pthread_mutex_lock(&mutex);
    spoke = clock_seconds();
    pthread_mutex_unlock(&mutex);
}

void waits_to(void (*say)(void *user, const char *line), void *user)
{
    pthread_mutex_lock(&speaking);
    hears = say;
    hearer = user;
    pthread_mutex_unlock(&speaking);
}

void waits_watch(const char *(*news)(void))
{
    pthread_mutex_lock(&speaking);
    watched = news;
    pthread_mutex_unlock(&speaking);
}
