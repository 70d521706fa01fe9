/* SPDX-License-Identifier: Apache-2.0
 *
 * util.c: memory, problems, text and files; see util.h. gen is a short-lived program: memory is only
 * given back at the end, and running out of it ends the program.
 */
#include "util.h"

#include "base/edit_distance.h"
#include "base/grow.h"
#include "base/temp_name.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROBLEMS_SHOWN = 20, LINE_WIDTH = 100 };

union kept {
    union kept *next;
    max_align_t align;
};
static union kept *kept_list;
static int problems;

static void out_of_memory(void)
{
    fputs("gen: out of memory\n", stderr);
    exit(2);
}

void *keep(size_t bytes)
{
    union kept *k = calloc(1, sizeof *k + bytes);
    if (k == NULL)
        out_of_memory();
    k->next = kept_list;
    kept_list = k;
    return k + 1;
}

char *keep_text(const char *s, size_t length)
{
    char *copy = keep(length + 1);
    memcpy(copy, s, length);
    return copy;
}

char *keep_format(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int length = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *s = keep((size_t)length + 1);
    va_start(ap, format);
    vsnprintf(s, (size_t)length + 1, format, ap);
    va_end(ap);
    return s;
}

void release(void)
{
    while (kept_list != NULL) {
        union kept *next = kept_list->next;
        free(kept_list);
        kept_list = next;
    }
}

void problem(const char *file, int line, const char *format, ...)
{
    if (problems++ == PROBLEMS_SHOWN)
        fputs("more problems follow; fix these first\n", stderr);
    if (problems > PROBLEMS_SHOWN)
        return;
    fputs(file, stderr);
    if (line > 0)
        fprintf(stderr, ":%d", line);
    fputs(": ", stderr);
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int problem_count(void)
{
    return problems;
}

const char *near_miss(const char *word, const char *const *names, int count)
{
    const char *best = NULL;
    int limit = strlen(word) > 4 ? 2 : strlen(word) > 2 ? 1 : 0;
    for (int i = 0; i < count; i++) {
        int d = edit_distance(word, names[i]);
        if (d <= limit) {
            best = names[i];
            limit = d - 1;
        }
    }
    return best;
}

static void reserve(struct text *t, size_t more)
{
    if (!GROW(t->s, t->capacity, t->length + more + 1))
        out_of_memory();
}

void put(struct text *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int length = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    reserve(t, (size_t)length);
    va_start(ap, format);
    vsnprintf(t->s + t->length, (size_t)length + 1, format, ap);
    va_end(ap);
    t->length += (size_t)length;
}

static void put_char(struct text *t, char c)
{
    reserve(t, 1);
    t->s[t->length++] = c;
    t->s[t->length] = '\0';
}

static size_t column_of(const struct text *t)
{
    size_t column = 0;
    while (column < t->length && t->s[t->length - 1 - column] != '\n')
        column++;
    return column;
}

void put_word(struct text *t, int indent, const char *word)
{
    size_t column = column_of(t);
    char last = t->length > 0 ? t->s[t->length - 1] : '\n';
    if (column + 1 + strlen(word) > LINE_WIDTH)
        put(t, "\n%*s%s", indent, "", word);
    else
        put(t, "%s%s", strchr("({ \n", last) ? "" : " ", word);
}

void put_quoted(struct text *t, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            put_char(t, '\\');
        if (c < 0x20)
            put(t, "\\%03o", c);
        else
            put_char(t, *s);
    }
}

void put_comment(struct text *t, const char *s)
{
    for (; *s; s++) {
        put_char(t, *s == '\n' ? ' ' : *s);
        if ((*s == '*' && s[1] == '/') || (*s == '/' && s[1] == '*') || (*s == '\\' && !s[1]))
            put_char(t, ' ');
    }
}

void put_paragraph(struct text *t, int margin, int indent, const char *s)
{
    char *save = NULL, *copy = keep_format("%s", s);
    for (char *w = strtok_r(copy, " \n", &save); w != NULL; w = strtok_r(NULL, " \n", &save)) {
        size_t column = column_of(t);
        bool glued = column > 0 && t->s[t->length - 1] == ' ';
        if (column + 1 + strlen(w) > LINE_WIDTH)
            put(t, "\n%*s *%*s", margin, "", indent, "");
        else if (!glued)
            put(t, " ");
        put_comment(t, w);
    }
    put(t, "\n");
}

void put_cell(struct text *t, const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            put_char(t, '\\');
        put_char(t, *s == '\n' ? ' ' : *s);
    }
}

int make_folder(const char *path)
{
    char *copy = keep_text(path, strlen(path));
    for (char *p = copy + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char end = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) {
            fprintf(stderr, "gen: cannot make the folder %s: %s\n", copy, strerror(errno));
            return -1;
        }
        if (end == '\0')
            return 0;
        *p = end;
    }
}

static bool holds(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return false;
    char chunk[4096];
    size_t at = 0, n;
    bool same = true;
    while (same && (n = fread(chunk, 1, sizeof chunk, f)) > 0) {
        same = at + n <= t->length && memcmp(chunk, t->s + at, n) == 0;
        at += n;
    }
    same = same && !ferror(f) && at == t->length;
    fclose(f);
    return same;
}

int put_file(const char *dir, const char *name, struct text *t, bool always)
{
    int rc = -1;
    const char *path = keep_format("%s/%s", dir, name);
    char temporary[4096];

    if (!always && holds(path, t)) {
        rc = 0;
        goto done;
    }
    const int fd = temp_make(path, temporary, sizeof temporary, temp_new_file);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (f == NULL)
        goto done;
    bool written =
        fwrite(t->s, 1, t->length, f) == t->length && fflush(f) == 0 && fsync(fileno(f)) == 0;
    if (fclose(f) != 0 || !written || rename(temporary, path) != 0) {
        int saved = errno;
        remove(temporary);
        errno = saved;
        goto done;
    }
    rc = 0;
done:
    if (rc != 0)
        fprintf(stderr, "gen: cannot write %s: %s\n", path, strerror(errno));
    free(t->s);
    *t = (struct text){0};
    return rc;
}
