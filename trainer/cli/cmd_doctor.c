/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_doctor.c: `nojit doctor` and `nojit version`: the machine, the binary, and whether they fit.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/libraries.h"
#include "io/error.h"
#include "io/plural.h"
#include "record/progress.h"
#include "run/run.h"
#include "utf8.h"

/* What libraries and their folders are called is theirs to say, not for the terminal to do. */
static void print_line(void *user, const char *line)
{
    char shown[1024];
    (void)user;
    snprintf(shown, sizeof shown, "%s", line);
    make_printable(shown);
    printf("  %s\n", shown);
}

/* A copy, whose paths and names a terminal only shows. */
static const struct nj_device_info *printable_device(const struct nj_device_info *d,
                                                     struct nj_device_info *copy)
{
    *copy = *d;
    make_printable(copy->name);
    make_printable(copy->driver);
    make_printable(copy->gemm_library);
    make_printable(copy->fallback);
    return copy;
}

static int read_binary(struct nj_embedded *e)
{
    const int err = nj_embedded_read(e);
    if (err)
        return fail(err, "the embedded kernel index is damaged; rebuild or reinstall the binary");
    return 0;
}

static void print_binary(const struct nj_embedded *e)
{
    char size[32];
    printf("binary    nojit %s: %u kernel%s for", NOJIT_VERSION, e->keys, plural(e->keys));
    for (uint32_t i = 0; i < e->archs; i++)
        printf(" %s", e->arch[i]);
    printf("; %s of machine code by %s; no PTX\n",
           bytes_text((double)e->code_bytes, size, sizeof size), e->toolkit);
}

static void print_cpu(const struct nj_device_info *d)
{
    char size[32];
    if (d->fallback[0] != '\0')
        printf("gpu       none can be used: %s\n", d->fallback);
    printf("cpu       %s, %d thread%s; %s of memory available; GEMMs by %s\n", d->name,
           d->multiprocessors, plural(d->multiprocessors),
           bytes_text((double)d->budget_bytes, size, sizeof size), d->gemm_library);
}

static void print_gpu(const struct nj_device_info *d)
{
    char size[32], budget[32];
    printf("gpu       %s, sm_%d, %d SMs%s\n", d->name, d->sm, d->multiprocessors,
           d->integrated ? ", memory shared with the host" : "");
    printf("memory    %s, %s may be used; arenas in %s memory\n",
           bytes_text((double)d->memory_bytes, size, sizeof size),
           bytes_text((double)d->budget_bytes, budget, sizeof budget),
           d->managed ? "managed" : "device");
    printf("driver    %s, supports CUDA %d.%d\n",
           d->driver[0] != '\0' ? d->driver : "release unknown", d->driver_version / 1000,
           d->driver_version % 1000 / 10);
    printf("cublasLt  %s, version %zu\n", d->gemm_library, d->gemm_version);
    printf("kernels   %u of %u loaded from %u module%s, 16-bit type %s", d->kernels_loaded,
           nj_kernel_count, d->modules_loaded, plural(d->modules_loaded),
           d->lp_is_f16 ? "float16" : "bfloat16");
    if (nj_kernel_count > d->kernels_loaded)
        printf("; %u for code of other archs", nj_kernel_count - d->kernels_loaded);
    printf("\n");
}

/* Of an object, whose end is still to come. */
static void doctor_json(const struct nj_embedded *e, const struct nj_device_info *d,
                        const char *problem)
{
    printf("{\"version\": \"%s\", \"keys\": %u, \"toolkit\": \"%s\", \"archs\": [", NOJIT_VERSION,
           e->keys, e->toolkit);
    for (uint32_t i = 0; i < e->archs; i++)
        printf("%s\"%s\"", i ? ", " : "", e->arch[i]);
    printf("], \"code_bytes\": %llu", (unsigned long long)e->code_bytes);
    if (d != NULL)
        printf(", \"backend\": \"%s\", \"device\": \"%s\", \"sm\": %d, \"driver\": \"%s\", "
               "\"gemm_version\": %zu, "
               "\"memory_bytes\": %zu, \"budget_bytes\": %zu, \"kernels_loaded\": %u",
               d->backend, d->name, d->sm, d->driver, d->gemm_version, d->memory_bytes,
               d->budget_bytes, d->kernels_loaded);
    printf(", \"fits\": %s", problem == NULL ? "true" : "false");
}

static void print_device(const struct settings *s, const struct nj_device_info *d)
{
    const bool cpu = d != NULL && strcmp(d->backend, "cpu") == 0;
    if (d != NULL)
        (cpu ? print_cpu : print_gpu)(d);
    puts("libraries of the GPU, where they were looked for");
    nj_library_search(print_line, NULL);
    if (d == NULL)
        printf("verdict   not ready to train on the %s\n",
               s->device == NJ_DEVICE_CPU ? "CPU" : "GPU");
    else
        printf("verdict   ready to train on the %s\n",
               cpu ? "CPU, in float32: for small models" : "GPU");
}

int cmd_doctor(const struct settings *s)
{
    const struct nj_options options = {
        .device = (enum nj_device_kind)s->device, .verbose = s->verbose, .log = print_line};
    nj_context *ctx = NULL;
    struct nj_embedded embedded;
    int err = read_binary(&embedded);
    if (err)
        return err;
    if (!s->json)
        print_binary(&embedded);
    err = nj_context_create(&ctx, &options);
    if (err)
        err = ctx != NULL ? fail_context(err, ctx, device_option(s))
                          : fail(err, "%s", nj_error_text(err));
    struct nj_device_info info;
    const struct nj_device_info *d = err ? NULL : printable_device(nj_context_device(ctx), &info);
    if (s->json) {
        doctor_json(&embedded, d, err ? fail_text() : NULL);
        puts("}");
    } else {
        print_device(s, d);
    }
    nj_context_destroy(ctx);
    return err;
}

static void print_libraries(void)
{
    printf("compiler  %s\n", compiler_name());
    for (const struct library *l = libraries; l->name != NULL; l++)
        printf("library   %s %s, %s\n", l->name, l->version(), l->licence);
}

static void libraries_json(void)
{
    printf(", \"compiler\": \"%s\", \"libraries\": {", compiler_name());
    for (const struct library *l = libraries; l->name != NULL; l++)
        printf("%s\"%s\": \"%s\"", l != libraries ? ", " : "", l->name, l->version());
    printf("}");
}

int cmd_version(const struct settings *s)
{
    struct nj_embedded e;
    const int err = read_binary(&e);
    if (err)
        return err;
    if (s->json)
        doctor_json(&e, NULL, NULL);
    else
        print_binary(&e);
    if (s->verbose)
        (s->json ? libraries_json : print_libraries)();
    if (s->json)
        puts("}");
    return 0;
}
