/* SPDX-License-Identifier: Apache-2.0
 *
 * kbench_time.c: the clock of kbench: events on the stream around each run, at most RUNS of them, fewer if they are
 * long. A case is timed warm, with its operands in the caches as the last run left them, and cold, after FLUSH_BYTES
 * have been written.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kbench.h"

#include "base/clock.h"

enum { WARM_UPS = 3, RUNS = 50, RUNS_LEAST = 5 };
/* Launches are timed in batches that the queue of a GPU takes without waiting. */
enum { LAUNCHES = 200, BATCHES = 500 };
static const double SECONDS_MOST = 0.5;
/* number of values made for an argument; longer arguments repeat them */
static const int64_t TILE = 1 << 20;
static const size_t FLUSH_BYTES = (size_t)256 << 20, COPY_BYTES = (size_t)1 << 30;

/* The timed work: a case, a GEMM, or a copy. */
struct work {
    const struct kernel_case *c;
    const unsigned char *params;
    const struct nj_gemm *product;
    void *dst, *a, *b, *scale; /* scale: scales of rows in e4m3 */
    size_t copied_bytes;
};

static int run_once(struct bench *b, const struct work *w)
{
    if (w->c)
        return w->c->launch(b->stream, w->params);
    const struct nj_gemm_operands x = {
        .c = w->dst, .a = w->a, .b = w->b, .a_scale = w->scale, .b_scale = w->scale};
    return w->product ? nj_gemm_run_scaled(b->stream, w->product, &x)
                      : nj_copy(b->stream, w->dst, w->a, w->copied_bytes);
}

static int time_once(struct bench *b, const struct work *w, int cold, float *ms)
{
    int rc = cold ? nj_zero(b->stream, b->flush, FLUSH_BYTES) : 0;
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

/* Return the value below which a share of n sorted values lies, interpolated. */
static double at_share(const float *sorted, int n, double share)
{
    const double at = share * (n - 1);
    const int below = (int)at, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static struct timing quantiles(float *of, int n)
{
    qsort(of, (size_t)n, sizeof of[0], ascending);
    return (struct timing){at_share(of, n, 0.5), at_share(of, n, 0.1), at_share(of, n, 0.9)};
}

static int time_work(struct bench *b, const struct work *w, int cold, struct timing *out)
{
    float ms[RUNS];
    int rc = 0, n = 0;
    double started = clock_seconds();
    for (int i = 0; i < WARM_UPS && !rc && (i == 0 || clock_seconds() - started < SECONDS_MOST);
         i++) {
        rc = run_once(b, w);
        if (!rc)
            rc = nj_stream_sync(b->stream);
    }
    started = clock_seconds();
    while (!rc && n < RUNS && (n < RUNS_LEAST || clock_seconds() - started < SECONDS_MOST))
        rc = time_once(b, w, cold, &ms[n++]);
    if (rc)
        return rc;
    const struct timing t = quantiles(ms, n);
    *out = (struct timing){1e3 * t.median, 1e3 * t.p10, 1e3 * t.p90};
    return 0;
}

/* ---- arguments --------------------------------------------------------------------------------
 */

/* Make the first n stored values of an argument. */
static unsigned char *make_tile(const struct bench *b, const struct subject *s,
                                const struct case_arg *a, int64_t n)
{
    const int lp_is_f16 = nj_context_device(b->ctx)->lp_is_f16;
    const uint64_t stream = nj_case_stream_of(b->seed, s->key, s->c->label, a->name);
    unsigned char *bytes = allocate((size_t)n, nj_case_type_bytes(a->type));
    void *values = allocate((size_t)n, sizeof(double));
    if (a->fill == CASE_FILL_ORDER || a->fill == CASE_FILL_RUNS) {
        const struct case_arg *ids = &s->c->args[nj_case_arg_index(s->c, a->fill_name)];
        int32_t *id_values = allocate((size_t)ids->elements, sizeof(*id_values));
        nj_case_fill_plain(ids, nj_case_stream_of(b->seed, s->key, s->c->label, ids->name),
                           ids->elements, id_values);
        if (nj_case_fill_sorted(a, id_values, ids->elements, values)) {
            fprintf(stderr, "kbench: no memory for %lld ids\n", (long long)ids->elements);
            exit(1);
        }
        free(id_values);
    } else {
        /* for `ref OP`: any values take the same time */
        nj_case_fill_plain(a, stream, n, values);
    }
    for (int64_t i = 0; a->type != CASE_I32 && i < n; i++)
        ((double *)values)[i] = nj_case_round_to_type(((double *)values)[i], a->type, lp_is_f16);
    nj_case_encode(bytes, values, n, a->type, lp_is_f16);
    free(values);
    return bytes;
}

static int make_argument(struct bench *b, const struct subject *s, const struct case_arg *a,
                         void **out)
{
    const int whole = a->fill == CASE_FILL_ORDER || a->fill == CASE_FILL_RUNS;
    const int64_t n = whole || a->elements < TILE ? a->elements : TILE;
    const size_t size = nj_case_type_bytes(a->type);
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

/* Time w on operands of these kinds (result, two inputs, scales). They are random, since a GPU multiplies zeros
 * faster. */
static int time_roof(struct bench *b, struct work *w, const struct case_arg kinds[4],
                     struct timing *t)
{
    void **const operands[4] = {&w->dst, &w->a, &w->b, &w->scale};
    const struct kernel_case c = {.label = ""};
    const struct subject s = {.key = "roof", .c = &c};
    int rc = 0;
    for (int i = 0; i < 4 && !rc; i++)
        if (kinds[i].elements > 0)
            rc = make_argument(b, &s, &kinds[i], operands[i]);
    if (!rc)
        rc = time_work(b, w, 0, t);
    for (int i = 0; i < 4; i++)
        nj_free(b->ctx, NJ_MEM_DEVICE, *operands[i]);
    return rc;
}

/* Time a copy; reading and writing each count for half of the bytes. */
static int time_copy(struct bench *b, double moved_bytes, struct timing *t)
{
    const int64_t floats = (int64_t)fmax(1, moved_bytes / 2 / (double)sizeof(float));
    const struct case_arg kinds[4] = {{.name = "to", .elements = floats, .scale = 1},
                                      {.name = "from", .elements = floats, .scale = 1}};
    struct work copy = {.copied_bytes = (size_t)floats * sizeof(float)};
    return time_roof(b, &copy, kinds, t);
}

int bench_copy(struct bench *b, const struct kernel_case *c, struct timing *t)
{
    return time_copy(b, fmin(c->bytes, 2 * (double)COPY_BYTES), t);
}

/* Call time_it with the arguments of a case on the device. */
static int with_arguments(struct bench *b, const struct shaped *shaped,
                          int (*time_it)(struct bench *b, const struct work *w,
                                         struct timing *out[2]),
                          struct timing *out[2])
{
    const struct kernel_case *c = &shaped->c;
    const struct subject s = nj_case_subject_of(c);
    _Alignas(16) unsigned char params[BLOCK_MAX];
    void *args[ARGS_MAX] = {NULL};
    int rc = 0;
    memcpy(params, c->params, s.param_bytes);
    for (uint32_t i = 0; i < c->arg_count && !rc; i++) {
        if (!c->args[i].null)
            rc = make_argument(b, &s, &c->args[i], &args[i]);
        nj_case_set_pointer(&s, params, i, args[i]);
    }
    const struct work w = {.c = c, .params = params};
    if (!rc)
        rc = time_it(b, &w, out);
    for (uint32_t i = 0; i < c->arg_count; i++)
        nj_free(b->ctx, NJ_MEM_DEVICE, args[i]);
    return rc;
}

static int time_warm_and_cold(struct bench *b, const struct work *w, struct timing *out[2])
{
    const int rc = time_work(b, w, 0, out[0]);
    return rc ? rc : time_work(b, w, 1, out[1]);
}

int bench_case(struct bench *b, const struct shaped *s, struct timing *warm, struct timing *cold)
{
    return with_arguments(b, s, time_warm_and_cold, (struct timing *[]){warm, cold});
}

static int time_batch(struct bench *b, const struct work *w, float *ns)
{
    int rc = 0;
    const int64_t from = clock_ns();
    for (int i = 0; i < LAUNCHES && !rc; i++)
        rc = run_once(b, w);
    *ns = (float)(clock_ns() - from) / LAUNCHES;
    const int sync = nj_stream_sync(b->stream);
    return rc ? rc : sync;
}

static int time_launches(struct bench *b, const struct work *w, struct timing *out[2])
{
    float ns[BATCHES];
    int n = 0, rc = time_batch(b, w, ns); /* a warm-up */
    const double started = clock_seconds();
    while (!rc && n < BATCHES && (n < RUNS_LEAST || clock_seconds() - started < SECONDS_MOST))
        rc = time_batch(b, w, &ns[n++]);
    if (!rc)
        *out[0] = quantiles(ns, n);
    return rc;
}

int bench_launches(struct bench *b, const struct shaped *s, struct timing *ns)
{
    return with_arguments(b, s, time_launches, (struct timing *[]){ns, NULL});
}

/* ---- shapes -----------------------------------------------------------------------------------
 */

int shape_next(const char **at, char name[32], char value[32])
{
    int used = 0;
    *at += strspn(*at, " ,");
    if (!**at)
        return 0;
    if (sscanf(*at, "%31[A-Za-z0-9_]=%31[A-Za-z0-9_]%n", name, value, &used) != 2 ||
        !strchr(" ,", (*at)[used]))
        return -1;
    *at += used;
    return 1;
}

int shape_param(const struct subject *s, const char *name)
{
    const int dims_end = (int)s->c->arg_count + s->names->dim_count;
    for (int i = 0; i < dims_end; i++)
        if (strcmp(s->names->params[i], name) == 0)
            return i;
    return -1;
}

static int64_t read_dim(const struct subject *s, int param, const unsigned char *block)
{
    const struct nj_param *p = &s->params[param];
    int64_t wide = 0;
    int32_t narrow = 0;
    memcpy(p->bytes == 8 ? (void *)&wide : &narrow, block + p->offset, p->bytes);
    return p->bytes == 8 ? wide : narrow;
}

/* Set a parameter. Return NULL, or a text that says why the value is wrong. */
static const char *set_param(const struct subject *s, int param, const char *value,
                             struct shaped *out)
{
    const struct nj_param *p = &s->params[param];
    char *end;
    if (param < (int)s->c->arg_count) {
        out->args[param].null = 1;
        return strcmp(value, "null") == 0 ? NULL : "an argument can only be null";
    }
    const long long wide = strtoll(value, &end, 10);
    const int32_t narrow = (int32_t)wide;
    if (*end || (p->bytes == 4 && narrow != wide))
        return "a dim must be a whole number that fits";
    memcpy(out->params + p->offset, p->bytes == 8 ? (const void *)&wide : &narrow, p->bytes);
    return NULL;
}

/* Write a label, as gen labels cases. */
static void write_label(const struct subject *s, struct shaped *out)
{
    const int dims_end = (int)s->c->arg_count + s->names->dim_count;
    int n = 0;
    for (int i = (int)s->c->arg_count; i < dims_end && n < LABEL_BYTES; i++)
        n += snprintf(out->label + n, (size_t)(LABEL_BYTES - n), "%s%s=%lld", n ? " " : "",
                      s->names->params[i], (long long)read_dim(s, i, out->params));
    for (uint32_t i = 0; i < s->c->arg_count && n < LABEL_BYTES; i++)
        if (out->args[i].null)
            n += snprintf(out->label + n, (size_t)(LABEL_BYTES - n), "%s%s=null", n ? " " : "",
                          s->names->params[i]);
    for (uint32_t i = 0; i < s->c->arg_count && n < LABEL_BYTES; i++)
        if (out->args[i].first > 0)
            n += snprintf(out->label + n, (size_t)(LABEL_BYTES - n), "%s%s=%lld", n ? " " : "",
                          s->names->params[i], (long long)out->args[i].first);
}

/* Place positions in a cache as far from the end of their slot as those of the benchmark's shape and, with C chunks of
 * 256 keys, within these. */
static void place_positions(const struct subject *s, const struct kernel_case *c,
                            struct shaped *out)
{
    const int slot = shape_param(s, "P"), chunks = shape_param(s, "C");
    if (slot < 0)
        return;
    const int64_t added = read_dim(s, slot, out->params) - read_dim(s, slot, c->params);
    const int64_t C = chunks < 0 ? 1 : read_dim(s, chunks, out->params);
    for (uint32_t i = 0; i < c->arg_count; i++) {
        struct case_arg *a = &out->args[i];
        if (a->fill != CASE_FILL_POSITION || a->first == 0)
            continue;
        a->first += added;
        if (C > 1 && a->first > 256 * C - a->fill_value)
            a->first = 256 * C - a->fill_value;
        if (a->first < 0)
            a->first = 0;
    }
}

int shape_case(const struct kernel_case *c, const char *shape, struct shaped *out, char *why,
               size_t why_bytes)
{
    const struct subject s = nj_case_subject_of(c);
    struct case_sizes sizes;
    char name[32], value[32];
    if (c->arg_count > ARGS_MAX || s.param_bytes > BLOCK_MAX) {
        snprintf(why, why_bytes, "%s: more parameters than kbench knows", s.key);
        return NJ_E_ARG;
    }
    *out = (struct shaped){.c = *c};
    memcpy(out->args, c->args, c->arg_count * sizeof(c->args[0]));
    memcpy(out->params, c->params, s.param_bytes);
    for (const char *at = shape; shape_next(&at, name, value) > 0;) {
        const int param = shape_param(&s, name);
        const char *fault = param >= 0 ? set_param(&s, param, value, out) : NULL;
        if (fault) {
            snprintf(why, why_bytes, "%s: %s=%s: %s", s.key, name, value, fault);
            return NJ_E_ARG;
        }
    }
    c->sizes(out->params, &sizes);
    for (uint32_t i = 0; i < c->arg_count; i++) {
        out->args[i].elements = sizes.elements[i];
        out->args[i].fill_value = sizes.fill_value[i];
        if (sizes.elements[i] < 1 || sizes.elements[i] > INT64_MAX / 16) {
            snprintf(why, why_bytes, "%s: with '%s' %s would have %lld elements", s.key, shape,
                     c->args[i].name, (long long)sizes.elements[i]);
            return NJ_E_ARG;
        }
    }
    place_positions(&s, c, out);
    write_label(&s, out);
    out->c.label = out->label;
    out->c.args = out->args;
    out->c.params = out->params;
    out->c.flops = sizes.flops;
    out->c.bytes = sizes.bytes;
    return 0;
}

/* ---- roofs ------------------------------------------------------------------------------------
 */

double bench_floor(const struct bench *b, const struct kernel_case *c, int *by_bytes)
{
    const char *type = strchr(nj_kernels[c->kernel].key, '.');
    const double product = b->product_gflops[type && strncmp(type, ".lp", 3) == 0 ? NJ_LP : NJ_F32];
    const double moving = c->bytes / b->copy_gbs * 1e-3;
    const double computing = product > 0 ? c->flops / product * 1e-3 : 0;
    *by_bytes = moving >= computing;
    return fmax(moving, computing);
}

/* Return the number of scales of the larger operand, in words of four bytes. */
static int64_t scale_words(const struct bench *b, const struct nj_gemm *g)
{
    const int64_t rows = g->M > g->N ? g->M : g->N;
    if (nj_context_device(b->ctx)->f8 != NJ_F8_BLOCKS)
        return rows;
    return (rows + 127) / 128 * 128 * ((g->K + 127) / 128);
}

int bench_gemm(struct bench *b, const struct nj_gemm *g, struct timing *t)
{
    static const enum case_type types[] = {
        [NJ_F32] = CASE_F32, [NJ_LP] = CASE_LP, [NJ_F8] = CASE_F8};
    const struct case_arg kinds[4] = {
        {.name = "c", .type = types[g->c_dtype], .elements = (int64_t)g->M * g->N, .scale = 1},
        {.name = "a", .type = types[g->ab_dtype], .elements = (int64_t)g->M * g->K, .scale = 1},
        {.name = "b", .type = types[g->ab_dtype], .elements = (int64_t)g->N * g->K, .scale = 1},
        {.name = "scale", .elements = g->ab_dtype == NJ_F8 ? scale_words(b, g) : 0, .scale = 1}};
    struct work w = {.product = g};
    int rc = nj_gemm_prepare(b->ctx, g);
    return rc ? rc : time_roof(b, &w, kinds, t);
}

static int measure_product(struct bench *b, enum nj_dtype dtype)
{
    const int32_t n = b->product_dim;
    const struct nj_gemm g = {.kind = NJ_GEMM_NT,
                              .ab_dtype = dtype,
                              .c_dtype = dtype == NJ_F32 ? NJ_F32 : NJ_LP,
                              .M = n,
                              .N = n,
                              .K = n,
                              .lda = n,
                              .ldb = n,
                              .ldc = n,
                              .one_scale =
                                  dtype == NJ_F8 && nj_context_device(b->ctx)->f8 == NJ_F8_ONE};
    struct timing t;
    int rc = bench_gemm(b, &g, &t);
    if (!rc)
        b->product_gflops[dtype] = 2 * pow(n, 3) / t.median * 1e-3;
    return rc;
}

int bench_roofs(struct bench *b)
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    const int gpu = info->sm > 0 || (strcmp(info->backend, "vulkan") == 0 && !info->integrated);
    struct timing t;
    int rc = time_copy(b, 2 * (double)COPY_BYTES, &t);
    if (rc)
        return rc;
    b->copy_gbs = 2 * (double)COPY_BYTES / t.median * 1e-3;
    b->product_dim = gpu ? 8192 : 1024;
    rc = measure_product(b, NJ_F32);
    if (!rc && gpu && info->lp)
        rc = measure_product(b, NJ_LP);
    return !rc && gpu && info->f8 ? measure_product(b, NJ_F8) : rc;
}

int bench_open(struct bench *b, enum nj_device_kind device)
{
    const struct nj_options options = {.device = device, .gemm_tune = 1};
    int rc = nj_context_create(&b->ctx, &options);
    if (!rc)
        rc = nj_stream_create(b->ctx, &b->stream);
    if (!rc)
        rc = nj_event_create(b->ctx, &b->from);
    if (!rc)
        rc = nj_event_create(b->ctx, &b->to);
    if (!rc)
        rc = nj_alloc(b->ctx, NJ_MEM_DEVICE, FLUSH_BYTES, &b->flush);
    return rc;
}

void bench_close(struct bench *b)
{
    nj_free(b->ctx, NJ_MEM_DEVICE, b->flush);
    nj_event_destroy(b->from);
    nj_event_destroy(b->to);
    nj_stream_destroy(b->stream);
    nj_context_destroy(b->ctx);
}
