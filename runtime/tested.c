/* SPDX-License-Identifier: Apache-2.0
 *
 * tested.c: a device whose driver compiles the kernels is tried before it is used. That it passed is kept in a
 * file beside the driver's pipelines, for this device, driver, set of shaders and version of the program; that it
 * failed is not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static const char PASSED[] = "nojit " NOJIT_VERSION " passed\n";

static int path_of(const nj_context *ctx, const char *folder, char *out, size_t bytes)
{
    return folder &&
           snprintf(out, bytes, "%s/vulkan-%s.tested", folder, ctx->info.cache_key) < (int)bytes;
}

static int has_passed(const char *path)
{
    char text[sizeof PASSED + 1] = "";
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    return n == (ssize_t)sizeof PASSED - 1 && strcmp(text, PASSED) == 0;
}

static void keep(const char *path)
{
    char temp[4096];
    int fd, failed;

    if (snprintf(temp, sizeof temp, "%s.tmp-XXXXXX", path) >= (int)sizeof temp)
        return;
    fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return;
    failed = write(fd, PASSED, sizeof PASSED - 1) != (ssize_t)sizeof PASSED - 1;
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

int nj_tested(nj_context *ctx, const struct nj_options *options)
{
    char path[4096], why[NJ_SENTENCE_BYTES] = "";
    const int kept = path_of(ctx, options->cache_folder, path, sizeof path);
    struct timespec from;
    int rc;

    ctx->info.self_test = NJ_SELF_TEST_BEFORE;
    if (kept && has_passed(path))
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
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
    if (kept)
        keep(path);
    return 0;
}
