/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_doctor.c: `nojit doctor` and `nojit version`: the machine, the binary, and whether they fit.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/doctor_gpus.h"
#include "cli/doctor_self_test.h"
#include "cli/libraries.h"
#include "io/cache_folder.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/waits.h"
#include "record/progress.h"
#include "run/receipt.h"
#include "run/run.h"

/* Print a line after `before`, with control characters replaced: names of libraries and folders may contain some. */
static void print_after(const char *before, const char *line, FILE *out)
{
    char shown[1024];
    snprintf(shown, sizeof shown, "%s", line);
    make_printable(shown);
    fprintf(out, "%s%s\n", before, shown);
}

static void print_line(void *user, const char *line)
{
    (void)user;
    print_after("  ", line, stdout);
}

/* Print a line besides JSON, which has standard output to itself. */
static void print_aside(void *user, const char *line)
{
    (void)user;
    print_after("nojit doctor: ", line, stderr);
}

/* Return a copy of the device whose paths and names are safe to show on a terminal. */
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
    const int rc = nj_embedded_read(e);
    if (rc != 0)
        return fail(rc, "the embedded kernel index is damaged; rebuild or reinstall the binary");
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
        printf("gpu       not used: %s\n", d->fallback);
    printf("cpu       %s, %d thread%s; %s of memory available; GEMMs by %s\n", d->name,
           d->multiprocessors, plural(d->multiprocessors),
           bytes_text((double)d->budget_bytes, size, sizeof size), d->gemm_library);
}

/* Print the limit of one submission, and its reason. */
static void print_submissions(const struct nj_device_info *d)
{
    printf("work      in submissions of at most %.3g operations", d->submit_operations);
    if (d->gemm_flops > 0)
        printf("; timed at the first start: a GEMM at %.0f GFLOP/s, a copy at %.1f GB/s",
               d->gemm_flops * 1e-9, d->copy_bytes * 1e-9);
    printf("\n");
}

static void print_vulkan(const struct nj_device_info *d)
{
    char size[32], budget[32];
    printf("gpu       %s, by Vulkan%s\n", d->name,
           d->integrated ? ", memory shared with the host" : "");
    if (d->fallback[0] != '\0')
        printf("cuda      cannot be used: %s\n", d->fallback);
    printf("memory    %s, %s may be used\n", bytes_text((double)d->memory_bytes, size, sizeof size),
           bytes_text((double)d->budget_bytes, budget, sizeof budget));
    printf("driver    %s\n", d->driver);
    printf("shaders   %u, translated by the driver in %s, %u of them compiled now; float32%s; the "
           "other kernels are for CUDA\n",
           d->kernels_loaded, took_text(d->pipelines_ms, size, sizeof size), d->pipelines_compiled,
           d->lp ? ", and bfloat16 as storage" : "; no 16-bit storage here");
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
    if (d->gemm_reports[0] != '\0')
        printf("reports   %s\n", d->gemm_reports);
    printf("kernels   %u of %u loaded from %u module%s, 16-bit type %s", d->kernels_loaded,
           nj_kernel_count, d->modules_loaded, plural(d->modules_loaded),
           d->lp_is_f16 ? "float16" : "bfloat16");
    if (nj_kernel_count > d->kernels_loaded)
        printf("; %u for code of other archs", nj_kernel_count - d->kernels_loaded);
    printf("\n");
}

/* ---- as JSON ---- */

static json_t *binary_json(const struct nj_embedded *e)
{
    json_t *archs = json_array(), *assemblers = json_object(), *spares = json_array();
    for (uint32_t i = 0; i < e->archs; i++) {
        json_array_append_new(archs, json_c_text(e->arch[i]));
        json_object_set_new(assemblers, e->arch[i], json_c_text(e->assembler[i]));
        if (e->spare[i])
            json_array_append_new(spares, json_c_text(e->arch[i]));
    }
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:I, s:I}", "version", NOJIT_VERSION, "keys",
                     (json_int_t)e->keys, "toolkit", json_c_text(e->toolkit), "archs", archs,
                     "assemblers", assemblers, "spare_archs", spares, "code_bytes",
                     (json_int_t)e->code_bytes, "spare_bytes", (json_int_t)e->spare_bytes);
}

static void add_device(json_t *to, const struct nj_device_info *d)
{
    json_object_set_new(to, "backend", json_string(d->backend));
    json_object_set_new(to, "device", json_c_text(d->name));
    json_object_set_new(to, "sm", json_integer(d->sm));
    json_object_set_new(to, "driver", json_c_text(d->driver));
    json_object_set_new(to, "gemm_version", json_integer((json_int_t)d->gemm_version));
    if (d->gemm_reports[0] != '\0')
        json_object_set_new(to, "gemm_reports", json_c_text(d->gemm_reports));
    json_object_set_new(to, "memory_bytes", json_integer((json_int_t)d->memory_bytes));
    json_object_set_new(to, "budget_bytes", json_integer((json_int_t)d->budget_bytes));
    json_object_set_new(to, "kernels_loaded", json_integer(d->kernels_loaded));
    if (strcmp(d->backend, "vulkan") == 0)
        json_object_set_new(to, "pipelines_compiled", json_integer(d->pipelines_compiled));
    json_object_set_new(to, "self_test", receipt_self_test(d));
}

static void add_libraries(json_t *to)
{
    json_t *versions = json_object();
    for (const struct library *l = libraries; l->name != NULL; l++)
        json_object_set_new(versions, l->name, json_c_text(l->version()));
    json_object_set_new(to, "compiler", json_c_text(compiler_name()));
    json_object_set_new(to, "libraries", versions);
}

/* Print and free the object that follows json_memory_begin(). */
static int print_json(json_t *root)
{
    char *text = json_dumps(root, 0);
    json_decref(root);
    const int rc = json_memory_end() || text == NULL ? fail(NJ_E_NOMEM, "out of memory") : 0;
    if (rc == 0)
        puts(text);
    free(text);
    return rc;
}

static int doctor_json(const struct nj_embedded *e, const struct nj_device_info *d,
                       const char *problem)
{
    json_memory_begin();
    json_t *root = binary_json(e);
    if (d != NULL)
        add_device(root, d);
    json_object_set_new(root, "fits", json_boolean(problem == NULL));
    if (problem != NULL)
        json_object_set_new(root, "problem", json_c_text(problem));
    return print_json(root);
}

static int version_json(const struct nj_embedded *e, bool verbose)
{
    json_memory_begin();
    json_t *root = binary_json(e);
    if (verbose)
        add_libraries(root);
    return print_json(root);
}

/* ---- as text ---- */

static void print_device(const struct settings *s, const struct nj_device_info *d)
{
    const bool cpu = d != NULL && strcmp(d->backend, "cpu") == 0;
    const bool vulkan = d != NULL && strcmp(d->backend, "vulkan") == 0;
    if (d != NULL) {
        (cpu ? print_cpu : vulkan ? print_vulkan : print_gpu)(d);
        self_test_print_state(d);
    }
    if (vulkan && s->verbose)
        print_submissions(d);
    if (s->device != NJ_DEVICE_VULKAN) {
        puts("libraries of the GPU, where they were looked for");
        nj_library_search(print_line, NULL);
    }
    if (s->device == NJ_DEVICE_VULKAN || s->device == NJ_DEVICE_AUTO) {
        puts("GPUs that Vulkan shows");
        nj_vulkan_search(print_line, NULL);
    }
    if (d == NULL)
        printf("verdict   not ready to train on the %s\n",
               s->device == NJ_DEVICE_CPU ? "CPU" : "GPU");
    else
        printf("verdict   ready to train on the %s\n",
               cpu ? "CPU, in float32: for small models"
               : d->software
                   ? "CPU by a Vulkan driver, for tests: --device cpu is faster; where there "
                     "is a GPU, check its driver and the permissions of /dev/dri"
               : vulkan ? "GPU, by Vulkan in float32 arithmetic"
                        : "GPU");
}

/* Open what a run would; on failure *ctx has the reason. */
static int open_device(const struct settings *s, struct self_test_report *report, nj_context **ctx)
{
    char kept[3072], why[4200];
    cache_folder(kept, sizeof kept, why, sizeof why);
    if (why[0] != '\0')
        fprintf(stderr, "nojit doctor: %s\n", why);
    const struct nj_options options = {.device = (enum nj_device_kind)s->device,
                                       .verbose = s->verbose,
                                       .log = s->json ? print_aside : print_line,
                                       .doing = run_doing,
                                       .cache_folder = kept[0] != '\0' ? kept : NULL,
                                       .self_test = nj_self_test,
                                       .retest = s->self_test,
                                       .tried = s->self_test ? self_test_hear : NULL,
                                       .tried_user = report};
    wait_begin("opening the device");
    const int rc = nj_context_create(ctx, &options);
    wait_end();
    report->incomplete = rc != 0 && report->failed == 0;
    if (rc != 0)
        return *ctx != NULL ? fail_context(rc, *ctx, device_option(s))
                            : fail(rc, "%s", nj_error_text(rc));
    if (report->failed > 0)
        return fail(NJ_E_DEVICE, "%s fails the self-test of its kernels, so it is not used",
                    report->device.name);
    return 0;
}

/* End the self-test: print the results, and write the report. */
static int end_self_test(const struct settings *s, const struct self_test_report *r)
{
    if (!s->json)
        self_test_print(r, s->verbose);
    if (r->count > 0)
        TRY(self_test_write(r, s->report));
    if (r->count > 0 && !s->json)
        printf("report    %s, to be attached to an issue\n", s->report);
    return 0;
}

int cmd_doctor(const struct settings *s)
{
    if (s->gpus != 1 && s->self_test)
        return fail(NJ_E_ARG,
                    "--self-test tries one GPU: leave --gpus out, and choose another one by "
                    "CUDA_VISIBLE_DEVICES");
    if (s->gpus != 1)
        return doctor_gpus(s);

    nj_context *ctx = NULL;
    struct nj_embedded embedded;
    struct self_test_report report = {.count = 0};
    TRY(read_binary(&embedded));
    if (!s->json)
        print_binary(&embedded);
    fflush(stdout);
    const int rc = open_device(s, &report, &ctx);
    struct nj_device_info info;
    const struct nj_device_info *d =
        rc != 0 ? NULL : printable_device(nj_context_device(ctx), &info);
    int failed = 0;
    if (s->json)
        failed = doctor_json(&embedded, d, rc != 0 ? fail_text() : NULL);
    else
        print_device(s, d);
    const int unwritten = end_self_test(s, &report);
    self_test_free(&report);
    nj_context_destroy(ctx);
    return rc != 0 ? rc : failed ? failed : unwritten;
}

static void print_spares(const struct nj_embedded *e)
{
    char size[32];
    if (e->spare_bytes == 0)
        return;
    printf("spare     the kernels at -O1 for");
    for (uint32_t i = 0; i < e->archs; i++)
        if (e->spare[i])
            printf(" %s", e->arch[i]);
    printf("; %s, compressed\n", bytes_text((double)e->spare_bytes, size, sizeof size));
}

static void print_libraries(void)
{
    printf("compiler  %s\n", compiler_name());
    for (const struct library *l = libraries; l->name != NULL; l++)
        printf("library   %s %s, %s\n", l->name, l->version(), l->license);
}

int cmd_version(const struct settings *s)
{
    struct nj_embedded e;
    TRY(read_binary(&e));
    if (s->json)
        return version_json(&e, s->verbose);
    print_binary(&e);
    if (s->verbose) {
        print_spares(&e);
        print_libraries();
    }
    return 0;
}
