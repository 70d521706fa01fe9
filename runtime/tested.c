/* SPDX-License-Identifier: Apache-2.0
 *
 * tested.c: a device whose driver compiles the kernels is tried before it is used, and timed, if it is a GPU. That it
 * passed is kept in a file beside the driver's pipelines, for this device, driver, set of shaders and version of the
 * program, and so is its speed, which is then the same at each start; that it failed is not.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* The record begins with this, with the number of its form; then come the numbers of struct nj_speed, 0 for a device
 * that was not timed. */
static const char PASSED[] = "nojit " NOJIT_VERSION " passed, form 2: ";
enum { RECORD_BYTES = 128 };

static int path_of(const nj_context *ctx, const char *folder, char *out, size_t bytes)
{
    return folder &&
           snprintf(out, bytes, "%s/vulkan-%s.tested", folder, ctx->info.cache_key) < (int)bytes;
}

static int read_record(const char *path, struct nj_speed *speed)
{
    char text[RECORD_BYTES] = "", end = 0;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct nj_speed said = {0};
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0 || strncmp(text, PASSED, sizeof PASSED - 1) != 0 ||
        sscanf(text + sizeof PASSED - 1, "%lf FLOP/s, %lf B/s%c", &said.gemm_flops,
               &said.copy_bytes, &end) != 3 ||
        end != '\n')
        return 0;
    *speed = said;
    return 1;
}

static void keep(const char *path, const struct nj_speed *speed)
{
    char temp[4096], text[RECORD_BYTES];
    const int n = snprintf(text, sizeof text, "%s%.0f FLOP/s, %.0f B/s\n", PASSED,
                           speed->gemm_flops, speed->copy_bytes);
    int fd, failed;

    if (n >= (int)sizeof text ||
        snprintf(temp, sizeof temp, "%s.tmp-XXXXXX", path) >= (int)sizeof temp)
        return;
    fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return;
    failed = write(fd, text, (size_t)n) != n;
    failed |= close(fd) != 0;
    if (failed || rename(temp, path) != 0)
        unlink(temp);
}

static float milliseconds(const struct timespec *from)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (float)(now.tv_sec - from->tv_sec) * 1e3f + (float)(now.tv_nsec - from->tv_nsec) * 1e-6f;
}

static void say_doing(const nj_context *ctx, const struct nj_options *options, const char *what)
{
    char text[200];

    snprintf(text, sizeof text, "%.100s %s", ctx->info.name, what);
    if (options->doing)
        options->doing(options->log_user, text);
}

static int try_kernels(nj_context *ctx, const struct nj_options *options)
{
    char why[NJ_SENTENCE_BYTES] = "";
    struct timespec from;
    int rc;

    clock_gettime(CLOCK_MONOTONIC, &from);
    say_doing(ctx, options, "tries every kernel, as at each first start");
    rc = options->self_test(ctx, why, sizeof why);
    if (rc == NJ_E_NOMEM)
        return nj_fail(ctx, rc, "%.100s: the self-test of its kernels: %.800s", ctx->info.name,
                       why);
    if (rc)
        return nj_fail(
            ctx, rc,
            "%.100s (%.62s) fails the self-test of its kernels, so its results cannot be "
            "trusted; use another driver, or --device cpu: %.600s",
            ctx->info.name, ctx->info.driver, why);
    ctx->info.self_test = NJ_SELF_TEST_NOW;
    ctx->info.self_test_ms = milliseconds(&from);
    return 0;
}

/* In whole numbers, as the record has them. A queue without timestamps has no speed, and one whose memory is taken just
 * now is timed another time. */
static int time_device(nj_context *ctx, struct nj_speed *speed)
{
    int rc = nj_speed(ctx, speed);

    if (rc == NJ_E_UNSUPPORTED || rc == NJ_E_NOMEM) {
        *speed = (struct nj_speed){0};
        ctx->error[0] = '\0';
        rc = 0;
    }
    speed->gemm_flops = floor(speed->gemm_flops);
    speed->copy_bytes = floor(speed->copy_bytes);
    return rc;
}

int nj_tested(nj_context *ctx, const struct nj_options *options)
{
    char path[4096];
    struct nj_speed speed = {0};
    const int kept = path_of(ctx, options->cache_folder, path, sizeof path);
    const int passed = kept && read_record(path, &speed);
    const int tried = !passed && options->self_test;
    const int untimed = ctx->info.paced && (!passed || speed.gemm_flops <= 0);
    int rc = 0;

    if (options->self_test)
        ctx->info.self_test = NJ_SELF_TEST_BEFORE;
    if (tried)
        rc = try_kernels(ctx, options);
    if (rc == 0 && untimed) {
        say_doing(ctx, options, "is timed");
        rc = time_device(ctx, &speed);
    }
    if (rc)
        return rc;
    if (kept && (tried || (passed && untimed)))
        keep(path, &speed);
    if (ctx->info.paced && speed.gemm_flops > 0)
        ctx->backend->pace(ctx, &speed);
    return 0;
}
