/* SPDX-License-Identifier: Apache-2.0
 *
 * notes.c: see notes.h. Each note is given once because a model's files are opened many times in
 * a run.
 */
#include "io/notes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/utf8.h"

enum { SAID_MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*hears)(const char *sentence);
static uint64_t said[SAID_MOST]; /* hashes of the notes that were given */
static int count;

/* Return whether the sentence is new; once there is no room for hashes, every sentence is. */
static bool is_new(const char *sentence)
{
    const uint64_t hash = XXH3_64bits(sentence, strlen(sentence));
    for (int i = 0; i < count; i++)
        if (said[i] == hash)
            return false;
    if (count < SAID_MOST)
        said[count++] = hash;
    return true;
}

void note(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text);
    pthread_mutex_lock(&lock);
    if (hears && is_new(text))
        hears(text);
    pthread_mutex_unlock(&lock);
}

void notes_to(void (*say)(const char *sentence))
{
    pthread_mutex_lock(&lock);
    hears = say;
    count = 0;
    pthread_mutex_unlock(&lock);
}
