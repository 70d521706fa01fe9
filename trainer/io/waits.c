/* SPDX-License-Identifier: Apache-2.0
 *
 * waits.c: see waits.h. The thread begins with the first wait; without one there are no words.
 */
#include "io/waits.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 4, FIRST_SECONDS = 4, NEXT_SECONDS = 60 };

/* `mutex` guards all below but for who hears, which `speaking` does; that is taken first, and held while a word is
 * said. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, speaking = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool started; /* the thread was, or cannot be */
static double first_seconds, spoke;
static int depth; /* beyond DEPTH nothing is named */
static struct wait {
    char what[256], detail[128];
    double began, due; /* due: seconds of silence before the next word */
} waits[DEPTH];
static void (*hears)(void *user, const char *line);
static void *hearer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct wait *innermost(void)
{
    return depth > 0 && depth <= DEPTH ? &waits[depth - 1] : NULL;
}

static double due_at(const struct wait *w)
{
    return (w->began > spoke ? w->began : spoke) + w->due;
}

/* Waits until a word is due, and makes it. */
static void next_word(char *out, size_t bytes)
{
    struct wait *w;
    pthread_mutex_lock(&mutex);
    while ((w = innermost()) == NULL || now() < due_at(w)) {
        if (w == NULL) {
            pthread_cond_wait(&changed, &mutex);
        } else {
            const double at = due_at(w);
            const struct timespec until = {(time_t)at, (long)(1e9 * (at - (double)(time_t)at))};
            pthread_cond_timedwait(&changed, &mutex, &until);
        }
    }
    snprintf(out, bytes, "%s%s%s (%.0f s so far)", w->what, w->detail[0] != '\0' ? ": " : "",
             w->detail, now() - w->began);
    w->due = NEXT_SECONDS;
    spoke = now();
    pthread_mutex_unlock(&mutex);
}

static void *watch(void *unused)
{
    char line[512];
    (void)unused;
    for (;;) {
        next_word(line, sizeof line);
        pthread_mutex_lock(&speaking);
        if (hears != NULL)
            hears(hearer, line);
        pthread_mutex_unlock(&speaking);
    }
    return NULL;
}

/* `mutex` is held. */
static void start(void)
{
    const char *text = getenv("NOJIT_WAIT_SECONDS");
    pthread_condattr_t attr;
    pthread_t thread;
    char *end = NULL;
    started = true;
    first_seconds = text != NULL ? strtod(text, &end) : FIRST_SECONDS;
    if (text != NULL && (end == text || *end != '\0' || !(first_seconds >= 0)))
        first_seconds = FIRST_SECONDS;
    if (first_seconds == 0 || pthread_condattr_init(&attr) != 0)
        return;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
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
        *w = (struct wait){.began = now(), .due = first_seconds};
        va_start(args, format);
        vsnprintf(w->what, sizeof w->what, format, args);
        va_end(args);
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&mutex);
}

void wait_end(void)
{
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
    spoke = now();
    pthread_mutex_unlock(&mutex);
}

void waits_to(void (*say)(void *user, const char *line), void *user)
{
    pthread_mutex_lock(&speaking);
    hears = say;
    hearer = user;
    pthread_mutex_unlock(&speaking);
}
