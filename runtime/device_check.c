/* SPDX-License-Identifier: Apache-2.0
 *
 * device_check.c: a GPU is tried before it is used, as the machine code for it, its driver's compiler and the card
 * itself may be wrong, and timed, if its work is cut by its speed. That it passed is kept in a file of the cache, for
 * this card, driver, libraries, code and version of the program, and so is its speed, which is then the same at each
 * start; that it failed is not. Of ranks that start at once each tries its GPU, and waits for none.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#include "base/clock.h"

/* Beginning of the record, with the number of its form, which changes when more is tested than before. */
static const char PASSED[] = "nojit " NOJIT_VERSION " passed, form 3\n";
enum { RECORD_BYTES = 2048 };

struct record {
    struct nj_self_test_record was;
    struct nj_speed speed; /* speed of the device; 0 if it was not timed */
};

static int parse(const char *text, struct record *out)
{
    struct nj_self_test_record *was = &out->was;
    int names = 0;
    size_t n;

    *out = (struct record){0};
    if (strncmp(text, PASSED, sizeof PASSED - 1) != 0)
        return 0;
    text += sizeof PASSED - 1;
    sscanf(text,
           "at %23[0-9TZ:-] in %f ms: %u kernels, %u GEMMs\n"
           "speed %lf FLOP/s, %lf B/s\n"
           "%u spares:%n",
           was->at, &was->ms, &was->kernels, &was->gemms, &out->speed.gemm_flops,
           &out->speed.copy_bytes, &was->spares, &names);
    if (!names)
        return 0;
    n = strcspn(text + names, "\n");
    snprintf(was->spare_names, sizeof was->spare_names, "%.*s", (int)n, text + names);
    return n < sizeof was->spare_names && strcmp(text + names + n, "\n") == 0;
}

static int read_record(const char *path, struct record *out)
{
    char text[RECORD_BYTES] = "";
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && parse(text, out);
}

static void keep(const char *path, const struct record *r)
{
    const struct nj_self_test_record *was = &r->was;
    char text[RECORD_BYTES];
    const int n = snprintf(text, sizeof text,
                           "%sat %s in %.0f ms: %u kernels, %u GEMMs\n"
                           "speed %.0f FLOP/s, %.0f B/s\n"
                           "%u spares:%s\n",
                           PASSED, was->at, (double)was->ms, was->kernels, was->gemms,
                           r->speed.gemm_flops, r->speed.copy_bytes, was->spares, was->spare_names);

    if (n < (int)sizeof text)
        nj_kept_write(path, &(struct iovec){text, (size_t)n}, 1);
}

/* ---- trying ---- */

static void write_now(char out[24])
{
    const time_t now = time(NULL);
    struct tm parts;

    gmtime_r(&now, &parts);
    strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

struct hearing {
    const struct nj_options *options;
    struct nj_self_test_record *was;
    int fits; /* whether the names of all spares fit */
};

static void say_spare(const struct hearing *h, const struct nj_trial *t)
{
    char line[700];

    snprintf(line, sizeof line,
             "%.100s fails the self-test, so its second set of machine code is used, which passes: "
             "[%.100s] %.400s",
             t->name, t->label, t->wrong);
    if (h->options->log)
        h->options->log(h->options->log_user, line);
}

static void hear(void *user, const struct nj_device_info *device, const struct nj_trial *t)
{
    struct hearing *h = user;
    char *names = h->was->spare_names;
    const size_t used = strlen(names), room = sizeof h->was->spare_names - used;

    if (t->verdict == NJ_PASSED_SPARE) {
        h->fits &= snprintf(names + used, room, " %s", t->name) < (int)room;
        say_spare(h, t);
    }
    if (h->options->tried)
        h->options->tried(h->options->tried_user, device, t);
}

/* Return "sm_90a, driver 580.95.05, cuBLASLt 13.1.0, machine code by ptxas 13.0.88". */
static const char *describe(const nj_context *ctx, char *out, size_t bytes)
{
    const struct nj_device_info *d = &ctx->info;
    const size_t lt = d->gemm_version;
    const char *assembler = "an unknown assembler";
    struct nj_embedded e;

    if (!d->arch[0]) {
        snprintf(out, bytes, "%.62s", d->driver[0] ? d->driver : d->backend);
        return out;
    }
    if (nj_embedded_read(&e) == 0)
        assembler = nj_embedded_assembler(&e, d->arch);
    snprintf(out, bytes,
             "%.15s, driver %.62s for CUDA %d.%d, cuBLASLt %zu.%zu.%zu, machine code by %.63s",
             d->arch, d->driver[0] ? d->driver : "of unknown release", d->driver_version / 1000,
             d->driver_version % 1000 / 10, lt / 10000, lt / 100 % 100, lt % 100, assembler);
    return out;
}

static int refuse(nj_context *ctx, int rc, const struct nj_self_test *t)
{
    char what[300];

    if (rc == NJ_E_NOMEM)
        return nj_fail(ctx, rc, "%.100s: the self-test of its kernels: %.690s", ctx->info.name,
                       t->why);
    return nj_fail(ctx, rc,
                   "%.100s (%s) fails the self-test of its kernels, so its results cannot be "
                   "trusted; use another driver, or --device cpu, and attach the report of `nojit "
                   "doctor --self-test` to an issue: %.400s",
                   ctx->info.name, describe(ctx, what, sizeof what), t->why);
}

/* Reset the counters, so that a run reports only its own GEMMs. */
static void forget_gemms(struct nj_device_info *d)
{
    d->gemms_checked = d->gemms_wrong = d->gemms_refused = d->gemms_unchecked = 0;
    d->gemm_ms = d->gemm_check_ms = 0;
}

static int try_kernels(nj_context *ctx, const struct nj_options *options,
                       struct nj_self_test_record *was, int *fits)
{
    struct hearing hearing = {options, was, 1};
    struct nj_self_test t = {.all = options->retest, .tried = hear, .user = &hearing};
    const double from = clock_ms();
    int rc;

    *was = (struct nj_self_test_record){.state = NJ_SELF_TEST_NOW};
    nj_doing(options, "%.100s tries every kernel%s", ctx->info.name,
             options->retest ? "" : ", as at each first start");
    rc = options->self_test(ctx, &t);
    nj_gemm_table_free(ctx);
    forget_gemms(&ctx->info);
    if (rc != 0)
        return refuse(ctx, rc, &t);
    was->ms = (float)(clock_ms() - from);
    write_now(was->at);
    was->kernels = t.kernels;
    was->gemms = t.gemms;
    was->spares = t.spares;
    *fits = hearing.fits;
    return 0;
}

/* Load the second sets of machine code that an earlier start found to be needed. */
static int take_spares(nj_context *ctx, const struct nj_self_test_record *was, const char *path)
{
    char names[sizeof was->spare_names], *rest = names, *name;

    snprintf(names, sizeof names, "%s", was->spare_names);
    while ((name = strsep(&rest, " ")) != NULL) {
        const int id = nj_kernel_find(name);

        if (name[0] && (id < 0 || nj_spare_load(ctx, (uint32_t)id)))
            return nj_fail(ctx, NJ_E_DEVICE,
                           "%.100s: its second set of machine code, which %.600s says is needed, "
                           "cannot be loaded; start again, and every kernel is tried anew",
                           name, path);
    }
    return 0;
}

/* ---- timing ---- */

/* Time the device, rounded to whole numbers as in the record. A queue without timestamps has no speed, and a device
 * whose memory is in use now is timed another time. */
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

/* Read NOJIT_SELF_TEST. *off: the user has switched self-tests off. */
static int read_switch(nj_context *ctx, int *off)
{
    const char *said = getenv("NOJIT_SELF_TEST");

    *off = said && strcmp(said, "off") == 0;
    if (*off || !said || !said[0] || strcmp(said, "on") == 0)
        return 0;
    return nj_fail(ctx, NJ_E_ARG, "NOJIT_SELF_TEST=%.40s: must be on or off", said);
}

int nj_tested(nj_context *ctx, const struct nj_options *options)
{
    struct nj_self_test_record *now = &ctx->info.self_test;
    char path[4096];
    struct record r = {0};
    const int kept = nj_kept_path(ctx, options->cache_folder, "tested", path, sizeof path);
    const int read = kept && read_record(path, &r), passed = read && !options->retest;
    const int untimed = ctx->info.paced && (!read || r.speed.gemm_flops <= 0);
    int off, tried, fits = 1, rc = read_switch(ctx, &off);

    tried = options->self_test && (options->retest || (!passed && !off));
    *now = r.was;
    now->state = !options->self_test ? NJ_SELF_TEST_NONE
                 : passed            ? NJ_SELF_TEST_BEFORE
                                     : NJ_SELF_TEST_SKIPPED;
    if (rc == 0 && passed)
        rc = take_spares(ctx, &r.was, path);
    if (rc == 0 && tried)
        rc = try_kernels(ctx, options, now, &fits);
    if (rc == NJ_E_DEVICE && kept)
        unlink(path);
    if (rc == 0 && untimed) {
        nj_doing(options, "%.100s is timed", ctx->info.name);
        rc = time_device(ctx, &r.speed);
    }
    if (rc != 0)
        return rc;
    if (kept && fits && (tried || (read && untimed))) {
        r.was = *now;
        keep(path, &r);
    }
    if (ctx->info.paced && r.speed.gemm_flops > 0)
        ctx->backend->pace(ctx, &r.speed);
    return 0;
}
