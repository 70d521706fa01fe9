/* SPDX-License-Identifier: Apache-2.0
 *
 * case_run.c: one case. Each argument lies alone in an allocation between guards, aligned to
 * what its contract says and no better; outputs start as NaN patterns. After the launch guards and
 * inputs must be as they were, outputs equal to the reference in double.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { GUARD = 256, GUARD_BYTE = 0xa5, POISON_BYTE = 0xff };

/* An argument on the device, [guard][data][guard], and its wanted value. */
struct buffer {
    const struct case_arg *spec;
    unsigned char *image; /* host copy of the whole allocation before the launch */
    unsigned char *after; /* host copy of it after the launch */
    size_t bytes, data_at, data_bytes;
    void *device;
    void *want; /* values wanted, double[] or int32_t[] */
};

struct run {
    nj_context *ctx;
    nj_stream *stream;
    const struct subject *s;
    struct result *out;
    int lp_is_f16;
    struct buffer buffer[ARGS_MAX];
};

struct subject nj_case_subject_of(const struct kernel_case *c)
{
    const struct nj_kernel *k = &nj_kernels[c->kernel];
    return (struct subject){.key = k->key,
                            .op = k->op,
                            .params = k->params,
                            .param_bytes = k->param_bytes,
                            .param_count = k->param_count,
                            .names = &nj_case_names[c->kernel],
                            .c = c};
}

void nj_case_set_pointer(const struct subject *s, unsigned char *params, uint32_t arg,
                         const void *ptr)
{
    memcpy(params + s->params[arg].offset, &ptr, sizeof(ptr));
}

static void fail(struct run *r, const char *what)
{
    r->out->status = FAILED;
    snprintf(r->out->message, sizeof(r->out->message), "%s", what);
}

static int no_memory(struct run *r)
{
    r->out->no_memory = 1;
    fail(r, "out of host memory");
    return -1;
}

static int device_failed(struct run *r, const char *step, int rc)
{
    r->out->status = FAILED;
    r->out->device_lost = rc == NJ_E_DEVICE;
    r->out->no_memory = rc == NJ_E_NOMEM;
    snprintf(r->out->message, sizeof(r->out->message), "%s: %s: %s", step, nj_error_name(rc),
             nj_context_error(r->ctx));
    return rc;
}

/* Make the reference's initial value: the input, or NaN (-1 for integers) where it must write. */
static void *initial_want(const struct case_arg *a, const void *values)
{
    const size_t n = (size_t)a->elements;
    const size_t bytes = n * (a->type == CASE_I32 ? sizeof(int32_t) : sizeof(double));
    void *want = nj_case_allocate(bytes, 1);
    if (!want)
        return NULL;
    if (values)
        memcpy(want, values, bytes);
    else
        memset(want, POISON_BYTE, bytes);
    return want;
}

/* Make guards, data and device memory of one argument; nothing for NULL. */
static int make_buffer(struct run *r, struct buffer *b, const void *values)
{
    const struct case_arg *a = b->spec;
    const size_t align = a->align;
    b->data_bytes = (size_t)a->elements * nj_case_type_bytes(a->type);
    b->bytes = GUARD + 2 * align + b->data_bytes + GUARD;
    int rc = nj_alloc(r->ctx, NJ_MEM_DEVICE, b->bytes, &b->device);
    if (rc != 0)
        return device_failed(r, "allocation", rc);
    /* Aligned to `align`, not to twice that. */
    b->data_at = GUARD;
    while (((uintptr_t)b->device + b->data_at) % (2 * align) != align)
        b->data_at++;
    b->image = nj_case_allocate(b->bytes, 1);
    b->after = nj_case_allocate(b->bytes, 1);
    if (!b->image || !b->after)
        return no_memory(r);
    memset(b->image, GUARD_BYTE, b->bytes);
    if (values)
        nj_case_encode(b->image + b->data_at, values, a->elements, a->type, r->lp_is_f16);
    else
        memset(b->image + b->data_at, POISON_BYTE, b->data_bytes);
    rc = nj_copy(r->stream, b->device, b->image, b->bytes);
    return rc != 0 ? device_failed(r, "upload", rc) : 0;
}

static int make_buffers(struct run *r, void **values)
{
    for (uint32_t i = 0; i < r->s->c->arg_count; i++) {
        struct buffer *b = &r->buffer[i];
        b->spec = &r->s->c->args[i];
        if (b->spec->null)
            continue;
        b->want = initial_want(b->spec, values[i]);
        if (!b->want)
            return no_memory(r);
        if (make_buffer(r, b, values[i]))
            return -1;
    }
    return 0;
}

static void run_oracle(struct run *r)
{
    _Alignas(16) unsigned char params[BLOCK_MAX];
    memcpy(params, r->s->c->params, r->s->param_bytes);
    for (uint32_t i = 0; i < r->s->c->arg_count; i++)
        nj_case_set_pointer(r->s, params, i, r->buffer[i].want);
    r->s->c->oracle(params);
}

static int launch(struct run *r)
{
    _Alignas(16) unsigned char params[BLOCK_MAX];
    memcpy(params, r->s->c->params, r->s->param_bytes);
    for (uint32_t i = 0; i < r->s->c->arg_count; i++) {
        const struct buffer *b = &r->buffer[i];
        nj_case_set_pointer(r->s, params, i, b->device ? (char *)b->device + b->data_at : NULL);
    }
    int rc = r->s->c->launch(r->stream, params);
    if (rc != 0)
        return device_failed(r, "launch", rc);
    for (uint32_t i = 0; i < r->s->c->arg_count && rc == 0; i++) {
        struct buffer *b = &r->buffer[i];
        if (b->device)
            rc = nj_copy(r->stream, b->after, b->device, b->bytes);
    }
    const int sync = nj_stream_sync(r->stream);
    return rc != 0 || sync ? device_failed(r, "run", sync ? sync : rc) : 0;
}

/* Return the index of the first byte of [from, to) that the launch changed, or -1. */
static long long changed(const struct buffer *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (b->after[i] != b->image[i])
            return (long long)i;
    return -1;
}

static void check_buffer(struct run *r, const struct buffer *b)
{
    const size_t end = b->data_at + b->data_bytes;
    char what[sizeof(r->out->message)] = "";
    long long at;
    if ((at = changed(b, 0, b->data_at)) >= 0) {
        snprintf(what, sizeof(what), "%s: wrote %lld bytes before its start", b->spec->name,
                 (long long)b->data_at - at);
    } else if ((at = changed(b, end, b->bytes)) >= 0) {
        snprintf(what, sizeof(what), "%s: wrote %lld bytes past its end", b->spec->name,
                 at - (long long)end + 1);
    } else if (b->spec->dir == CASE_IN) {
        if ((at = changed(b, b->data_at, end)) >= 0)
            snprintf(what, sizeof(what), "%s[%lld]: input was changed", b->spec->name,
                     (at - (long long)b->data_at) / (long long)nj_case_type_bytes(b->spec->type));
    } else {
        if (strcmp(nj_context_device(r->ctx)->backend, "vulkan") == 0)
            nj_case_flush(b->spec, b->after + b->data_at, b->want, r->lp_is_f16);
        const double e =
            nj_case_compare_output(b->spec, b->after + b->data_at, b->want, r->s->c->tolerance,
                                   r->lp_is_f16, what, sizeof(what));
        if (!(e <= r->out->worst))
            r->out->worst = e;
    }
    if (what[0] && r->out->status != FAILED)
        fail(r, what);
}

static void free_buffers(struct run *r)
{
    for (int i = 0; i < ARGS_MAX; i++) {
        struct buffer *b = &r->buffer[i];
        nj_free(r->ctx, NJ_MEM_DEVICE, b->device);
        free(b->image);
        free(b->after);
        free(b->want);
    }
}

void nj_case_run_case(nj_context *ctx, nj_stream *stream, const struct subject *s, uint64_t seed,
                      struct result *out)
{
    const struct kernel_case *c = s->c;
    struct run r = {.ctx = ctx, .stream = stream, .s = s, .out = out};
    void *values[ARGS_MAX] = {NULL};
    char message[sizeof(out->message)] = "";
    *out = (struct result){.status = NOT_RUN};
    r.lp_is_f16 = nj_context_device(ctx)->lp_is_f16;
    if (c->arg_count > ARGS_MAX || s->param_bytes > BLOCK_MAX) {
        fail(&r, "more arguments than the harness holds");
        return;
    }
    if (nj_case_fill_case(s, seed, r.lp_is_f16, values, message, sizeof(message))) {
        fail(&r, message);
        goto done;
    }
    if (make_buffers(&r, values))
        goto done;
    run_oracle(&r);
    if (launch(&r))
        goto done;
    for (uint32_t i = 0; i < c->arg_count; i++)
        if (r.buffer[i].device)
            check_buffer(&r, &r.buffer[i]);
    if (out->status == NOT_RUN)
        out->status = PASSED;
done:
    (void)nj_stream_sync(stream); /* an upload may still read the images after a failed launch */
    free_buffers(&r);
    for (int i = 0; i < ARGS_MAX; i++)
        free(values[i]);
}
