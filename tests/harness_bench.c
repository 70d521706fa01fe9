/* SPDX-License-Identifier: Apache-2.0
 *
 * harness_bench.c: how long the benchmark cases take: median of RUNS, timed by events on the
 * stream. Rates count what must move or be computed (the contract's cost), so that they compare
 * with the copy bandwidth measured beside them.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { WARM_UPS = 3, RUNS = 20, ARGS_MAX = 32, BLOCK_MAX = 512 };
static const int64_t TILE = 1 << 20; /* values made for an argument; longer ones repeat them */
static const size_t FLUSH_BYTES = (size_t)256 << 20, COPY_BYTES = (size_t)1 << 30;

struct bench {
    nj_context *ctx;
    nj_stream *stream;
    nj_event *from, *to;
    void *flush; /* written between runs when --cold */
    double copy_gbs;
    int reported;
    const struct options *o;
};

/* What is timed. */
struct work {
    const struct kernel_case *c;
    const unsigned char *params;
    void *dst, *src; /* a copy, when c is NULL */
};

static int run_once(struct bench *b, const struct work *w)
{
    return w->c ? w->c->launch(b->stream, w->params)
                : nj_copy(b->stream, w->dst, w->src, COPY_BYTES);
}

static int time_once(struct bench *b, const struct work *w, float *ms)
{
    int rc = b->flush ? nj_zero(b->stream, b->flush, FLUSH_BYTES) : 0;
    if (!rc)
        rc = nj_event_record(b->from, b->stream);
    if (!rc)
        rc = run_once(b, w);
    if (!rc)
        rc = nj_event_record(b->to, b->stream);
    return rc ? rc : nj_event_elapsed_ms(b->from, b->to, ms);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int time_work(struct bench *b, const struct work *w, double *median_ms)
{
    float ms[RUNS];
    int rc = 0;
    for (int i = 0; i < WARM_UPS && !rc; i++)
        rc = run_once(b, w);
    if (!rc)
        rc = nj_stream_sync(b->stream);
    for (int i = 0; i < RUNS && !rc; i++)
        rc = time_once(b, w, &ms[i]);
    if (rc)
        return rc;
    qsort(ms, RUNS, sizeof(ms[0]), ascending);
    *median_ms = ((double)ms[RUNS / 2 - 1] + (double)ms[RUNS / 2]) / 2;
    return 0;
}

/* The first n stored values of an argument. */
static unsigned char *make_tile(const struct bench *b, const struct subject *s,
                                const struct case_arg *a, int64_t n)
{
    const int lp_is_f16 = nj_context_device(b->ctx)->lp_is_f16;
    const uint64_t stream = stream_of(b->o->seed, s->key, s->c->label, a->name);
    unsigned char *bytes = allocate((size_t)n, type_bytes(a->type));
    void *values = allocate((size_t)n, sizeof(double));
    if (a->fill == CASE_FILL_ORDER || a->fill == CASE_FILL_RUNS) {
        const struct case_arg *ids = &s->c->args[arg_index(s->c, a->fill_name)];
        int32_t *id_values = allocate((size_t)ids->elements, sizeof(*id_values));
        fill_plain(ids, stream_of(b->o->seed, s->key, s->c->label, ids->name), ids->elements,
                   id_values);
        fill_sorted(a, id_values, ids->elements, values);
        free(id_values);
    } else {
        fill_plain(a, stream, n, values); /* of `ref OP`: any numbers take as long */
    }
    for (int64_t i = 0; a->type != CASE_I32 && i < n; i++)
        ((double *)values)[i] = round_to_type(((double *)values)[i], a->type, lp_is_f16);
    if (a->type != CASE_F8) /* which is only written */
        encode(bytes, values, n, a->type, lp_is_f16);
    free(values);
    return bytes;
}

static int make_argument(struct bench *b, const struct subject *s, const struct case_arg *a,
                         void **out)
{
    const int whole = a->fill == CASE_FILL_ORDER || a->fill == CASE_FILL_RUNS;
    const int64_t n = whole || a->elements < TILE ? a->elements : TILE;
    const size_t size = type_bytes(a->type);
    int rc = nj_alloc(b->ctx, NJ_MEM_DEVICE, (size_t)a->elements * size, out);
    if (rc)
        return rc;
    unsigned char *tile = make_tile(b, s, a, n);
    for (int64_t i = 0; i < a->elements && !rc; i += n) {
        const int64_t part = a->elements - i < n ? a->elements - i : n;
        rc = nj_copy(b->stream, (char *)*out + (size_t)i * size, tile, (size_t)part * size);
    }
    const int sync = nj_stream_sync(b->stream);
    free(tile);
    return rc ? rc : sync;
}

static void report(struct bench *b, const struct kernel_case *c, double ms, FILE *json)
{
    const char *key = nj_kernels[c->kernel].key;
    const double gbs = c->bytes / ms * 1e-6, gflops = c->flops / ms * 1e-6;
    printf("%-24s %10.1f us %8.0f GB/s %10.0f GFLOP/s %6.1f %% of copy  [%s]\n", key, ms * 1e3, gbs,
           gflops, 100 * gbs / b->copy_gbs, c->label);
    if (json)
        fprintf(json,
                "%s\n  {\"key\": \"%s\", \"label\": \"%s\", \"us\": %.4g, \"gbs\": %.5g, "
                "\"gflops\": %.6g}",
                b->reported ? "," : "", key, c->label, ms * 1e3, gbs, gflops);
    b->reported++;
}

/* Times one case. A case that does not fit is said and left out; other failures are the caller's.
 */
static int bench_case(struct bench *b, const struct kernel_case *c, FILE *json)
{
    const struct subject s = subject_of(c);
    _Alignas(16) unsigned char params[BLOCK_MAX];
    void *args[ARGS_MAX] = {NULL};
    double ms = 0;
    int rc = c->arg_count > ARGS_MAX || s.param_bytes > BLOCK_MAX ? NJ_E_ARG : 0;
    if (rc)
        return rc;
    memcpy(params, c->params, s.param_bytes);
    for (uint32_t i = 0; i < c->arg_count && !rc; i++) {
        if (!c->args[i].null)
            rc = make_argument(b, &s, &c->args[i], &args[i]);
        set_pointer(&s, params, i, args[i]);
    }
    if (!rc)
        rc = time_work(b, &(struct work){.c = c, .params = params}, &ms);
    if (!rc)
        report(b, c, ms, json);
    for (uint32_t i = 0; i < c->arg_count; i++)
        nj_free(b->ctx, NJ_MEM_DEVICE, args[i]);
    if (rc == NJ_E_NOMEM) {
        printf("%-24s does not fit: %s\n", s.key, nj_context_error(b->ctx));
        return 0;
    }
    return rc;
}

static int measure_copy(struct bench *b)
{
    void *dst = NULL, *src = NULL;
    double ms = 0;
    int rc = nj_alloc(b->ctx, NJ_MEM_DEVICE, COPY_BYTES, &dst);
    if (!rc)
        rc = nj_alloc(b->ctx, NJ_MEM_DEVICE, COPY_BYTES, &src);
    if (!rc)
        rc = time_work(b, &(struct work){.dst = dst, .src = src}, &ms);
    nj_free(b->ctx, NJ_MEM_DEVICE, dst);
    nj_free(b->ctx, NJ_MEM_DEVICE, src);
    if (!rc)
        b->copy_gbs = 2 * (double)COPY_BYTES / ms * 1e-6;
    return rc;
}

static int open_bench(struct bench *b)
{
    const struct nj_options options = {.device = b->o->device};
    int rc = nj_context_create(&b->ctx, &options);
    if (!rc)
        rc = nj_stream_create(b->ctx, &b->stream);
    if (!rc)
        rc = nj_event_create(b->ctx, &b->from);
    if (!rc)
        rc = nj_event_create(b->ctx, &b->to);
    if (!rc)
        rc = measure_copy(b);
    if (!rc && b->o->cold)
        rc = nj_alloc(b->ctx, NJ_MEM_DEVICE, FLUSH_BYTES, &b->flush);
    return rc;
}

static void close_bench(struct bench *b)
{
    nj_free(b->ctx, NJ_MEM_DEVICE, b->flush);
    nj_event_destroy(b->from);
    nj_event_destroy(b->to);
    nj_stream_destroy(b->stream);
    nj_context_destroy(b->ctx);
}

static int bench_all(struct bench *b, FILE *json)
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    int rc = 0;
    printf("%s: copies %.0f GB/s (read and written); median of %d, caches %s\n", info->name,
           b->copy_gbs, RUNS, b->flush ? "cold" : "warm");
    if (json)
        fprintf(json, "{\"device\": \"%s\", \"cold\": %d, \"copy_gbs\": %.5g, \"bench\": [",
                info->name, b->flush != NULL, b->copy_gbs);
    for (uint32_t i = 0; i < nj_case_count && !rc; i++) {
        const struct nj_kernel *k = &nj_kernels[nj_cases[i].kernel];
        const int here = runs_on(k, b->o->device == NJ_DEVICE_CUDA ? info : NULL);
        if (nj_cases[i].bench && here && fnmatch(b->o->filter, k->key, 0) == 0)
            rc = bench_case(b, &nj_cases[i], json);
    }
    if (json)
        fputs("]}\n", json);
    return rc;
}

int run_bench(const struct options *o)
{
    struct bench b = {.o = o};
    FILE *json = NULL;
    int rc = open_bench(&b), io = 0;
    if (!rc && o->json) {
        json = fopen(o->json, "w");
        io = !json;
    }
    if (!rc && !io)
        rc = bench_all(&b, json);
    if (json)
        io = ferror(json) | fclose(json);
    if (io)
        perror(o->json);
    if (rc)
        fprintf(stderr, "harness: %s: %s\n", nj_error_name(rc),
                b.ctx ? nj_context_error(b.ctx) : nj_error_text(rc));
    close_bench(&b);
    return rc || io ? 1 : 0;
}
