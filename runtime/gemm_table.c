/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_table.c: which algorithm each matrix product takes, kept in a file. Timing chooses, and may
 * choose another one the next time; with the same file the same algorithms are taken, and so the
 * same bits come out. Three lines say for what the file holds, then a line a product: the shape,
 * as gemm.c describes it, and the bytes of the backend's choice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { LINE_BYTES = NJ_GEMM_TEXT_BYTES + 2 * NJ_GEMM_CHOICE_BYTES + 8 };

/* Choices hold for one kind of GPU and one version of the library. */
static void write_heading(const nj_context *ctx, char *out, size_t bytes)
{
    snprintf(out, bytes, "nojit-gemm 1\ndevice %s sm_%d %s\nlibrary %zu\n", ctx->info.name,
             ctx->info.sm, ctx->info.lp_is_f16 ? "float16" : "bfloat16", ctx->info.gemm_version);
}

static struct nj_gemm_choice_row *find_row(const nj_context *ctx, const char *shape)
{
    const struct nj_gemm_choices *c = &ctx->choices;

    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->row[i].shape, shape) == 0)
            return &c->row[i];
    return NULL;
}

const unsigned char *nj_gemm_choice(const nj_context *ctx, const char *shape)
{
    const struct nj_gemm_choice_row *row = find_row(ctx, shape);

    return row ? row->choice : NULL;
}

int nj_gemm_choose(nj_context *ctx, const char *shape, const unsigned char *choice)
{
    struct nj_gemm_choices *c = &ctx->choices;
    struct nj_gemm_choice_row *row = find_row(ctx, shape);

    if (!row) {
        row = realloc(c->row, (c->count + 1) * sizeof *row);
        if (!row)
            return nj_fail(ctx, NJ_E_NOMEM, "matrix product %s: out of host memory", shape);
        c->row = row;
        row = &c->row[c->count++];
        snprintf(row->shape, sizeof row->shape, "%s", shape);
    }
    memcpy(row->choice, choice, sizeof row->choice);
    return 0;
}

void nj_gemm_choices_free(nj_context *ctx)
{
    free(ctx->choices.row);
    memset(&ctx->choices, 0, sizeof ctx->choices);
}

/* Both digits of each byte, and nothing after them but the end of the line. */
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
        int rc;

        if (!colon || colon - line >= NJ_GEMM_TEXT_BYTES || strlen(colon) < 2 + sizeof choice * 2 ||
            !read_hex(colon + 2, choice))
            break; /* torn: what came before it counts */
        *colon = '\0';
        if (nj_gemm_choice(ctx, line))
            continue;
        rc = nj_gemm_choose(ctx, line, choice);
        if (rc)
            return rc;
        count++;
    }
    return count;
}

/* Reads the heading, and says whether it is this context's. */
static int is_ours(const nj_context *ctx, FILE *f)
{
    char wanted[512], have[512];

    write_heading(ctx, wanted, sizeof wanted);
    have[fread(have, 1, strlen(wanted), f)] = '\0';
    return strcmp(have, wanted) == 0;
}

int nj_gemm_table_read(nj_context *ctx, const char *path)
{
    FILE *f;
    int count = 0;

    if (!ctx || !path)
        return NJ_E_ARG;
    f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? 0 : nj_fail(ctx, NJ_E_IO, "%.600s: %s", path, strerror(errno));
    if (is_ours(ctx, f))
        count = read_rows(ctx, f);
    fclose(f);
    return count;
}

/* What somebody else needs is not replaced; an empty file is nobody's. */
static int check_target(nj_context *ctx, const char *path)
{
    FILE *f = fopen(path, "re");
    int free_to_take;

    if (!f)
        return 0;
    free_to_take = is_ours(ctx, f) || (rewind(f), fgetc(f) == EOF);
    fclose(f);
    if (free_to_take)
        return 0;
    return nj_fail(ctx, NJ_E_FORMAT,
                   "%.600s is no table of this GPU and this version of cuBLASLt; remove it or name "
                   "another file",
                   path);
}

static int write_rows(const nj_context *ctx, FILE *f)
{
    char heading[512];

    write_heading(ctx, heading, sizeof heading);
    fputs(heading, f);
    for (size_t i = 0; i < ctx->choices.count; i++) {
        const struct nj_gemm_choice_row *row = &ctx->choices.row[i];

        fprintf(f, "%s: ", row->shape);
        for (int k = 0; k < NJ_GEMM_CHOICE_BYTES; k++)
            fprintf(f, "%02x", row->choice[k]);
        fputc('\n', f);
    }
    return ferror(f);
}

int nj_gemm_table_write(nj_context *ctx, const char *path)
{
    char temp[4096];
    FILE *f;
    int failed;

    if (!ctx || !path)
        return NJ_E_ARG;
    if (ctx->choices.count == 0)
        return 0;
    failed = check_target(ctx, path);
    if (failed)
        return failed;
    if (snprintf(temp, sizeof temp, "%s.tmp-%ld", path, (long)getpid()) >= (int)sizeof temp)
        return nj_fail(ctx, NJ_E_ARG, "%.600s...: the path is too long", path);
    f = fopen(temp, "we");
    if (!f)
        return nj_fail(ctx, NJ_E_IO, "%.600s: cannot be written: %s", temp, strerror(errno));
    errno = EIO; /* for a stream that only remembers that it failed */
    failed = write_rows(ctx, f);
    failed |= fclose(f) != 0;
    if (!failed && rename(temp, path) == 0)
        return 0;
    failed = errno;
    unlink(temp);
    return nj_fail(ctx, NJ_E_IO, "%.600s: cannot be written: %s", path, strerror(failed));
}
