/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: see rows.h.
 */
#include "record/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "io/error.h"
#include "io/line.h"
#include "record/run_files.h"

static int failed(const char *path)
{
    return fail(NJ_E_IO, "%s: %s", path, strerror(errno));
}

/* Read up to the first row that goes; *keep: the place where it begins. A row starts with {"step": N, so no JSON reader
 * is needed. A row that could not be read, for lack of memory, for example, is not cut off. */
static int find_end(FILE *f, const char *path, int64_t resumed,
                    void (*kept)(void *user, const char *row), void *user, struct rows_done *done,
                    off_t *keep)
{
    struct line row = {0};
    int64_t last = 0;
    long long step;
    int rc;
    *keep = 0;
    while (!(rc = line_read(f, path, &row)) && row.bytes > 0) {
        if (row.text[row.bytes - 1] != '\n' || sscanf(row.text, "{\"step\": %lld", &step) != 1 ||
            step > resumed)
            break;
        if (kept != NULL)
            kept(user, row.text);
        done->missing += *keep > 0 && step > last + 1 ? step - last - 1 : 0;
        *keep += (off_t)row.bytes;
        last = step;
    }
    done->missing += last < resumed ? resumed - last : 0;
    free(row.text);
    return rc;
}

static bool ends_with_line(int fd)
{
    char last;
    const off_t end = lseek(fd, 0, SEEK_END);
    return end == 0 || (pread(fd, &last, 1, end - 1) == 1 && last == '\n');
}

/* Append the content of f from `from` on to the old rows; an incomplete line there gets its end first. */
static int copy_tail(FILE *f, off_t from, FILE *old, struct rows_done *done)
{
    char block[65536], last = '\n';
    size_t n;
    if (fseeko(f, from, SEEK_SET) != 0 || (!ends_with_line(fileno(old)) && fputc('\n', old) == EOF))
        return -1;
    while ((n = fread(block, 1, sizeof block, f)) > 0) {
        for (size_t i = 0; i < n; i++)
            done->cut += block[i] == '\n';
        last = block[n - 1];
        if (fwrite(block, 1, n, old) != n)
            return -1;
    }
    done->cut += last != '\n';
    return ferror(f) || fflush(old) != 0 || fsync(fileno(old)) != 0 ? -1 : 0;
}

static int set_aside(FILE *f, off_t from, const char *path, struct rows_done *done)
{
    char name[4300];
    int fd;
    snprintf(name, sizeof name, "%s.old", path);
    int rc = own_open(name, O_RDWR | O_APPEND | O_CREAT, &fd);
    if (rc != 0)
        return rc;
    FILE *old = fdopen(fd, "a");
    if (old == NULL) {
        close(fd);
        return fail(NJ_E_NOMEM, "out of memory for %s", name);
    }
    if (copy_tail(f, from, old, done) != 0)
        rc = failed(name);
    if (fclose(old) != 0 && rc == 0)
        rc = failed(name);
    return rc;
}

static int cut(FILE *f, const char *path, int64_t resumed,
               void (*kept)(void *user, const char *row), void *user, struct rows_done *done)
{
    off_t keep;
    TRY(find_end(f, path, resumed, kept, user, done, &keep));
    if (fseeko(f, 0, SEEK_END) != 0)
        return failed(path);
    if (ftello(f) == keep)
        return 0;
    TRY(set_aside(f, keep, path, done));
    return ftruncate(fileno(f), keep) == 0 && fseeko(f, 0, SEEK_END) == 0 ? 0 : failed(path);
}

int rows_open(const char *path, int64_t resumed, void (*kept)(void *user, const char *row),
              void *user, struct rows_done *done, FILE **file)
{
    const int make = file == NULL ? 0 : O_CREAT | (resumed == ROWS_NEW ? O_EXCL : 0);
    int fd;
    *done = (struct rows_done){0};
    if (file != NULL)
        *file = NULL;
    if (file == NULL && resumed == ROWS_NEW)
        return 0;
    int rc = own_open(path, O_RDWR | O_APPEND | make, &fd);
    if (rc != 0)
        return file == NULL && errno == ENOENT ? 0 : rc;
    FILE *f = fdopen(fd, "r+");
    if (f == NULL) {
        close(fd);
        return fail(NJ_E_NOMEM, "out of memory for %s", path);
    }
    rc = resumed == ROWS_NEW ? 0 : cut(f, path, resumed, kept, user, done);
    if (rc == 0 && file != NULL)
        *file = f;
    else
        fclose(f);
    return rc;
}

const char *rows_text(const char *path, const struct rows_done *done, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    if (done->cut > 0)
        used = (size_t)snprintf(out, bytes, "%s: %lld line%s after the checkpoint moved to %s.old",
                                path, (long long)done->cut, plural(done->cut), path);
    if (done->missing > 0 && used < bytes)
        snprintf(out + used, bytes - used, "%s%s lacks the rows of %lld step%s",
                 used > 0 ? "; " : "", path, (long long)done->missing, plural(done->missing));
    return out;
}
