/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_table.c: which algorithm each GEMM takes, kept in a file. Timing chooses, and may
 * choose another one the next time; with the same file the same algorithms are taken, and so the
 * same bits come out. Three lines say for what the file holds, then a line a product: the shape,
 * as gemm.c describes it, and the bytes of the backend's choice.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#include "base/grow.h"
#include "base/temp_name.h"

enum {
    LINE_BYTES = NJ_GEMM_TEXT_BYTES + 2 * NJ_GEMM_CHOICE_BYTES + 8,
    TABLE_BYTES = 16 << 20, /* a run has some hundred shapes of 200 bytes each */
    LOCK_TRIES = 250,
    LOCK_WAIT_MS = 20,
};

/* Write the heading: choices hold for one kind of GPU and one version of the library. */
static void write_heading(const nj_context *ctx, char *out, size_t bytes)
{
    snprintf(out, bytes, "nojit-gemm 1\ndevice %s sm_%d %s\nlibrary %zu\n", ctx->info.name,
             ctx->info.sm, ctx->info.lp_is_f16 ? "float16" : "bfloat16", ctx->info.gemm_version);
}

/* Compare rows by the shapes that they begin with. */
static int compare_shapes(const void *a, const void *b)
{
    return strcmp(a, b);
}

static struct nj_gemm_choice_row *find_row(const nj_context *ctx, const char *shape)
{
    struct nj_gemm_choice_row *const *found = tfind(shape, &ctx->choices.by_shape, compare_shapes);

    return found ? *found : NULL;
}

const unsigned char *nj_gemm_choice(const nj_context *ctx, const char *shape)
{
    const struct nj_gemm_choice_row *row = find_row(ctx, shape);

    return row ? row->choice : NULL;
}

static struct nj_gemm_choice_row *add_row(struct nj_gemm_choices *c, const char *shape)
{
    struct nj_gemm_choice_row *row =
        GROW(c->row, c->capacity, c->count + 1) ? calloc(1, sizeof *row) : NULL;

    if (!row)
        return NULL;
    snprintf(row->shape, sizeof row->shape, "%s", shape);
    if (!tsearch(row, &c->by_shape, compare_shapes)) {
        free(row);
        return NULL;
    }
    return c->row[c->count++] = row;
}

int nj_gemm_choose(nj_context *ctx, const char *shape, const unsigned char *choice)
{
    struct nj_gemm_choice_row *row = find_row(ctx, shape);

    if (!row)
        row = add_row(&ctx->choices, shape);
    if (!row)
        return nj_fail(ctx, NJ_E_NOMEM, "GEMM %s: out of host memory", shape);
    memcpy(row->choice, choice, sizeof row->choice);
    return 0;
}

void nj_gemm_choices_free(nj_context *ctx)
{
    struct nj_gemm_choices *c = &ctx->choices;

    for (size_t i = 0; i < c->count; i++) {
        tdelete(c->row[i], &c->by_shape, compare_shapes);
        free(c->row[i]);
    }
    free(c->row);
    memset(c, 0, sizeof *c);
}

/* Read both digits of each byte, and nothing after them but the end of the line. */
static int read_hex(const char *text, unsigned char *out)
{
    for (int i = 0; i < NJ_GEMM_CHOICE_BYTES; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

        if (strspn(digits, "0123456789abcdef") != 2)
            return 0;
        out[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return text[2 * NJ_GEMM_CHOICE_BYTES] == '\n';
}

static int read_rows(nj_context *ctx, FILE *f)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    char line[LINE_BYTES];
    int count = 0;

    while (fgets(line, sizeof line, f)) {
        char *colon = strstr(line, ": ");

        if (!colon || colon - line >= NJ_GEMM_TEXT_BYTES || strlen(colon) < 2 + sizeof choice * 2 ||
            !read_hex(colon + 2, choice))
            break; /* torn, or of another length: the rows before it count */
        *colon = '\0';
        if (nj_gemm_choice(ctx, line))
            continue;
        TRY(nj_gemm_choose(ctx, line, choice));
        count++;
    }
    return count;
}

/* Read the heading, and return whether it is this context's. */
static int is_ours(const nj_context *ctx, FILE *f)
{
    char wanted[512], have[512];

    write_heading(ctx, wanted, sizeof wanted);
    have[fread(have, 1, strlen(wanted), f)] = '\0';
    return strcmp(have, wanted) == 0;
}

/* Open the table; *out stays NULL if there is no such file. */
static int open_table(nj_context *ctx, const char *path, FILE **out)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;

    *out = NULL;
    if (fd < 0)
        return errno == ENOENT ? 0 : nj_fail(ctx, NJ_E_IO, "%.600s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > TABLE_BYTES) {
        close(fd);
        return nj_fail(
            ctx, NJ_E_FORMAT,
            "%.600s is not a table of algorithms, which is a file of at most %d MiB; name "
            "another file",
            path, TABLE_BYTES >> 20);
    }
    *out = fdopen(fd, "r");
    if (*out)
        return 0;
    close(fd);
    return nj_fail(ctx, NJ_E_NOMEM, "%.600s: out of host memory", path);
}

int nj_gemm_table_read(nj_context *ctx, const char *path)
{
    FILE *f;
    int count = 0, rc;

    if (!ctx || !path)
        return NJ_E_ARG;
    rc = open_table(ctx, path, &f);
    if (!f)
        return rc;
    if (is_ours(ctx, f))
        count = read_rows(ctx, f);
    fclose(f);
    return count;
}

/* Merge the rows that others have added since the file was read. A table that somebody else needs is not replaced;
 * an empty file belongs to nobody. */
static int merge(nj_context *ctx, const char *path)
{
    FILE *f;
    int rc = open_table(ctx, path, &f);

    if (!f)
        return rc;
    if (is_ours(ctx, f))
        rc = read_rows(ctx, f);
    else if (rewind(f), fgetc(f) != EOF)
        rc = nj_fail(ctx, NJ_E_FORMAT,
                     "%.600s is not a table of this GPU and this version of cuBLASLt; remove it or "
                     "name another file",
                     path);
    fclose(f);
    return rc < 0 ? rc : 0;
}

/* A lock on the table, which is its own lock file: it is created if there is none, and held until it has been
 * replaced. */
struct lock {
    int fd, made;
    struct stat info;
};

static int open_lock(const char *path, struct lock *out)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

    out->made = 0;
    out->fd = open(path, flags);
    if (out->fd < 0 && errno == ENOENT) {
        out->fd = open(path, flags | O_CREAT | O_EXCL, 0666);
        out->made = out->fd >= 0;
    }
    return out->fd < 0 ? -1 : 0;
}

/* Take the lock. Returns false while another process holds it, or has replaced the file meanwhile. A file system
 * without locks gives none. */
static int holds(const char *path, struct lock *l)
{
    struct stat now;

    if (flock(l->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return 0;
    return fstat(l->fd, &l->info) == 0 && stat(path, &now) == 0 && now.st_ino == l->info.st_ino &&
           now.st_dev == l->info.st_dev;
}

static int take_lock(nj_context *ctx, const char *path, struct lock *out)
{
    const struct timespec wait = {.tv_nsec = LOCK_WAIT_MS * 1000000L};

    for (int i = 0; i < LOCK_TRIES; i++) {
        if (open_lock(path, out) == 0) {
            if (holds(path, out))
                return 0;
            close(out->fd);
        } else if (errno != EEXIST) { /* made by another in between, or a link to nothing */
            return nj_fail(ctx, NJ_E_IO, "%.600s: cannot be written: %s", path, strerror(errno));
        }
        nanosleep(&wait, NULL);
    }
    return nj_fail(
        ctx, NJ_E_IO,
        "%.600s: cannot be written: another process keeps it locked, or it is a link to nothing",
        path);
}

static int write_rows(const nj_context *ctx, FILE *f)
{
    char heading[512];

    write_heading(ctx, heading, sizeof heading);
    fputs(heading, f);
    for (size_t i = 0; i < ctx->choices.count; i++) {
        const struct nj_gemm_choice_row *row = ctx->choices.row[i];

        fprintf(f, "%s: ", row->shape);
        for (int k = 0; k < NJ_GEMM_CHOICE_BYTES; k++)
            fprintf(f, "%02x", row->choice[k]);
        fputc('\n', f);
    }
    return ferror(f);
}

/* Replace the file by a new one that nobody could have created before, and that is complete on the disk before it is
 * renamed. */
static int replace(nj_context *ctx, const char *path, mode_t mode)
{
    char temp[4096];
    FILE *f = NULL;
    int fd, failed;

    if (!temp_name(path, 0, temp, sizeof temp))
        return nj_fail(ctx, NJ_E_ARG, "%.600s...: the path is too long", path);
    fd = temp_make(path, temp, sizeof temp, temp_new_private_file);
    if (fd >= 0)
        f = fdopen(fd, "w");
    if (!f) {
        failed = errno;
        if (fd >= 0) {
            close(fd);
            unlink(temp);
        }
        return nj_fail(ctx, NJ_E_IO, "%.600s: cannot be written: %s", path, strerror(failed));
    }
    (void)fchmod(fd, mode & 0777);
    errno = EIO; /* the stream has only an error flag */
    failed = write_rows(ctx, f) || fflush(f) != 0 || fsync(fd) != 0;
    failed |= fclose(f) != 0;
    if (!failed && rename(temp, path) == 0)
        return 0;
    failed = errno;
    unlink(temp);
    return nj_fail(ctx, NJ_E_IO, "%.600s: cannot be written: %s", path, strerror(failed));
}

int nj_gemm_table_write(nj_context *ctx, const char *path)
{
    struct lock lock;

    if (!ctx || !path)
        return NJ_E_ARG;
    if (ctx->choices.count == 0)
        return 0;
    TRY(take_lock(ctx, path, &lock));
    int rc = merge(ctx, path);
    if (rc == 0)
        rc = replace(ctx, path, lock.info.st_mode);
    if (rc != 0 && lock.made)
        unlink(path);
    close(lock.fd);
    return rc;
}
