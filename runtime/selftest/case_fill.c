/* SPDX-License-Identifier: Apache-2.0
 *
 * case_fill.c: inputs of a case. Every value is a function of seed, key, label, argument and
 * index alone, so a case sees the same inputs whichever others run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/step_state.h"
#include "cases.h"

static const char NO_MEMORY[] = "out of host memory";
enum { DOCUMENT_ROWS = 24 }; /* mean length of a document */

static const double TWO_PI = 6.283185307179586;

void *nj_case_allocate(size_t count, size_t bytes)
{
    return calloc(count ? count : 1, bytes ? bytes : 1);
}

static int no_memory(char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", NO_MEMORY);
    return -1;
}

/* Finalize a hash as splitmix64 does. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t bits_at(uint64_t stream, uint64_t index)
{
    return mix(stream + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static double uniform_at(uint64_t stream, uint64_t index)
{
    return (double)(bits_at(stream, index) >> 11) * 0x1p-53;
}

static double normal_at(uint64_t stream, uint64_t index)
{
    const double u = uniform_at(stream, 2 * index), v = uniform_at(stream, 2 * index + 1);
    return sqrt(-2 * log(1 - u)) * cos(TWO_PI * v);
}

uint64_t nj_case_stream_of(uint64_t seed, const char *key, const char *label, const char *arg)
{
    const char *const parts[] = {key, label, arg};
    uint64_t h = mix(seed + 1);
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
        for (const char *s = parts[k]; *s; s++)
            h = mix(h ^ (unsigned char)*s) + k;
        h = mix(h + 0x100);
    }
    return h;
}

/* Fill a step state in which no slot that an op reads has a neutral value. */
static void fill_state(double *state, int64_t elements)
{
    static const double slots[NJ_STEP_SLOTS] = {
        [NJ_STEP_LR] = 0.01,        [NJ_STEP_INV_VALID] = 0.125, [NJ_STEP_UPDATES] = 3,
        [NJ_STEP_BIAS1] = 0.271,    [NJ_STEP_BIAS2] = 0.142625,  [NJ_STEP_GRAD_SCALE] = 0.5,
        [NJ_STEP_GRAD_NORM] = 1.75, [NJ_STEP_LOSS_SCALE] = 4,    [NJ_STEP_GOOD_STEPS] = 1,
        [NJ_STEP_SKIPPED] = 2,
    };
    for (int64_t i = 0; i < elements; i++)
        state[i] = i < NJ_STEP_SLOTS ? slots[i] : 0;
}

static void fill_real(const struct case_arg *a, uint64_t stream, int64_t elements, double *out)
{
    if (a->fill == CASE_FILL_STATE) {
        fill_state(out, elements);
        return;
    }
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t n = (uint64_t)i;
        switch (a->fill) {
        case CASE_FILL_UNIFORM:
            out[i] = uniform_at(stream, n);
            if (a->type == CASE_F32 && (float)out[i] == 1.0f)
                out[i] = 1 - 0x1p-24; /* rounding must not leave [0,1) */
            break;
        case CASE_FILL_POSITIVE:
            out[i] = 0.5 + uniform_at(stream, n);
            break;
        case CASE_FILL_ZERO:
            out[i] = 0;
            break;
        case CASE_FILL_INV_FREQ:
            out[i] = a->first > 0 && i >= a->first ? 0 : pow(10000, -(double)i / (double)elements);
            break;
        case CASE_FILL_WHOLE:
            out[i] = a->scale * (double)(bits_at(stream, n) %
                                         (a->fill_value > 0 ? (uint64_t)a->fill_value : 1));
            break;
        default:
            out[i] = normal_at(stream, n) * a->scale;
        }
    }
}

/* Return bits that make neither half of the word an infinity or a NaN as a float16. */
static int32_t finite_halves(uint32_t word)
{
    for (int shift = 0; shift < 32; shift += 16)
        if ((word >> shift & 0x7c00) == 0x7c00)
            word ^= (uint32_t)0x4000 << shift;
    return (int32_t)word;
}

static void fill_int(const struct case_arg *a, uint64_t stream, int64_t elements, int32_t *out)
{
    int32_t start = 0;
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bound = a->fill_value > 0 ? (uint64_t)a->fill_value : 1;
        const int32_t value = (int32_t)(bits_at(stream, (uint64_t)i) % bound);
        const int rare = !a->every_row && uniform_at(~stream, (uint64_t)i) < 0.2;
        const int32_t row = (int32_t)(i % (int64_t)bound);
        switch (a->fill) {
        case CASE_FILL_ID:
            out[i] = value;
            break;
        case CASE_FILL_ID_OR_IGNORED:
            out[i] = rare ? -100 : value;
            break;
        case CASE_FILL_ROW_OR_NONE:
            out[i] = rare ? -1 : value;
            break;
        case CASE_FILL_SEQUENCE: /* never no rows at all */
            out[i] = rare && i > 0
                         ? -1
                         : (int32_t)((elements - 1) / (int64_t)bound - i / (int64_t)bound);
            break;
        case CASE_FILL_POSITION:
            out[i] = (int32_t)a->first + row;
            break;
        case CASE_FILL_DOC_START:
            if (row == 0)
                start = 0;
            else if (uniform_at(~stream, (uint64_t)i) * DOCUMENT_ROWS < 1)
                start = row;
            out[i] = start;
            break;
        case CASE_FILL_HALVES:
            out[i] = finite_halves((uint32_t)bits_at(stream, (uint64_t)i));
            break;
        case CASE_FILL_LOW_BYTES:
            out[i] = finite_halves((uint32_t)bits_at(stream, (uint64_t)i) & 0x7f7f7f7f);
            break;
        default:
            out[i] = 0;
        }
    }
}

/* Divide the places, but the first ones, among elements - 1 groups: the first groups get most, and of many groups some
 * get none. */
static void fill_starts(const struct case_arg *a, uint64_t stream, int64_t elements, int32_t *out)
{
    const double groups = (double)(elements - 1);
    const int64_t first = a->fill_value / 16;
    out[0] = (int32_t)first;
    for (int64_t i = first; i < a->fill_value && elements > 1; i++) {
        const double u = uniform_at(stream, (uint64_t)i);
        out[1 + (int64_t)(groups * u * u)]++;
    }
    for (int64_t i = 1; i < elements; i++)
        out[i] += out[i - 1];
}

void nj_case_fill_plain(const struct case_arg *a, uint64_t stream, int64_t elements, void *out)
{
    if (a->fill == CASE_FILL_STARTS)
        fill_starts(a, stream, elements, out);
    else if (a->type == CASE_I32)
        fill_int(a, stream, elements, out);
    else
        fill_real(a, stream, elements, out);
}

int nj_case_fill_sorted(const struct case_arg *a, const int32_t *ids, int64_t ids_count,
                        int32_t *out)
{
    int32_t top = 0;
    for (int64_t n = 0; n < ids_count; n++)
        top = ids[n] > top ? ids[n] : top;
    /* next[v]: next free place for id v */
    int32_t *next = nj_case_allocate((size_t)top + 2, sizeof(*next));
    if (!next)
        return -1;
    for (int64_t n = 0; n < ids_count; n++)
        next[ids[n] + 1]++;
    int64_t runs = 0;
    for (int32_t v = 0; v <= top; v++) {
        if (a->fill == CASE_FILL_RUNS && next[v + 1])
            out[runs++] = next[v];
        next[v + 1] += next[v];
    }
    if (a->fill == CASE_FILL_RUNS) {
        while (runs < a->elements)
            out[runs++] = (int32_t)ids_count;
    } else {
        for (int64_t n = 0; n < ids_count; n++)
            out[next[ids[n]]++] = (int32_t)n;
    }
    free(next);
    return 0;
}

int nj_case_arg_index(const struct kernel_case *c, const char *name)
{
    for (uint32_t i = 0; i < c->arg_count; i++)
        if (strcmp(c->args[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- ref OP -----------------------------------------------------------------------------------
 */

/* Copy a dim, scalar or axis of the case, found by name, in the requested width. */
static int copy_number(const struct subject *s, const char *name, void *out, size_t bytes)
{
    for (uint32_t i = s->c->arg_count; i < s->param_count; i++) {
        if (strcmp(s->names->params[i], name) == 0 && s->params[i].bytes == bytes) {
            memcpy(out, s->c->params + s->params[i].offset, bytes);
            return 0;
        }
    }
    for (uint16_t k = 0; k < s->names->axis_count; k++) {
        if (strcmp(s->names->axis_names[k], name) == 0 && bytes == sizeof(int32_t)) {
            const int32_t value = s->names->axis_values[k];
            memcpy(out, &value, sizeof(value));
            return 0;
        }
    }
    return -1;
}

static const struct oracle_op *find_oracle(const char *op)
{
    for (uint32_t i = 0; i < nj_oracle_op_count; i++)
        if (strcmp(nj_oracle_ops[i].op, op) == 0)
            return &nj_oracle_ops[i];
    return NULL;
}

static size_t value_bytes(const struct case_arg *a)
{
    return (size_t)a->elements * (a->type == CASE_I32 ? sizeof(int32_t) : sizeof(double));
}

/* Copy the contents of argument `name`, since the op may write any of its arguments. NULL stays NULL. Returns -1:
 * the case has no argument of that name; -2: no memory. */
static int copy_argument(const struct subject *s, void **values, const char *name, void **out)
{
    const int i = nj_case_arg_index(s->c, name);
    if (i < 0)
        return -1;
    const struct case_arg *a = &s->c->args[i];
    *out = NULL;
    if (!a->null) {
        *out = nj_case_allocate(value_bytes(a), 1);
        if (!*out)
            return -2;
        if (values[i])
            memcpy(*out, values[i], value_bytes(a));
    }
    return 0;
}

enum { REF_AXES_MAX = 4, NUMBER_BYTES_MAX = 8 };

static void *ref_value(const struct subject *s, const char *fill, const char *name, void **values,
                       char *message, size_t message_bytes);

/* Set the op's numbers from the case; no reference reads a tensor map. Returns the name of a number that the case
 * lacks. */
static const char *bind_numbers(const struct subject *s, const struct oracle_op *op,
                                unsigned char *params, int *axes)
{
    for (uint16_t k = 0; k < op->axis_count; k++)
        if (copy_number(s, op->names[op->param_count + k], &axes[k], sizeof(axes[k])))
            return op->names[op->param_count + k];
    for (uint16_t i = op->pointer_count; i < op->param_count; i++)
        if (op->params[i].bytes <= NUMBER_BYTES_MAX &&
            copy_number(s, op->names[i], params + op->params[i].offset, op->params[i].bytes))
            return op->names[i];
    return NULL;
}

/* Make the op's block from the case; copies[i] is the array of its pointer i. An output that the case lacks is
 * written to scratch memory; a missing input of a derivative is computed by the op whose derivative it is. */
static int bind(const struct subject *s, const struct oracle_op *op, void **values,
                unsigned char *params, void **copies, int *axes, char *message,
                size_t message_bytes)
{
    int64_t outputs[ARGS_MAX] = {0};
    const char *missing = bind_numbers(s, op, params, axes);
    if (!missing)
        op->outputs(params, axes, outputs);
    for (uint16_t i = 0; i < op->pointer_count && !missing; i++) {
        const int copied = copy_argument(s, values, op->names[i], &copies[i]);
        if (copied == -1 && outputs[i] > 0)
            copies[i] = nj_case_allocate((size_t)outputs[i], sizeof(double));
        else if (copied == -1 && !op->backward_of)
            missing = op->names[i];
        else if (copied == -1 && !(copies[i] = ref_value(s, op->backward_of, op->names[i], values,
                                                         message, message_bytes)))
            return -1;
        if (copied == -2 || (copied == -1 && !missing && !copies[i]))
            return no_memory(message, message_bytes);
        memcpy(params + op->params[i].offset, &copies[i], sizeof(void *));
    }
    if (missing)
        snprintf(message, message_bytes, "fill 'ref %s' needs '%s', which the case lacks", op->op,
                 missing);
    return missing ? -1 : 0;
}

/* Return the value of argument `name` that the reference of op `fill` computes from the case; the caller frees it.
 * Return NULL with a message if that fails. */
static void *ref_value(const struct subject *s, const char *fill, const char *name, void **values,
                       char *message, size_t message_bytes)
{
    _Alignas(16) unsigned char params[BLOCK_MAX] = {0};
    void *copies[ARGS_MAX] = {NULL}, *value = NULL;
    int axes[REF_AXES_MAX] = {0};
    const struct oracle_op *op = find_oracle(fill);
    if (!op || op->param_bytes > sizeof(params) || op->pointer_count > ARGS_MAX ||
        op->axis_count > REF_AXES_MAX) {
        snprintf(message, message_bytes, "%s: fill 'ref %s' names no reference that fits", name,
                 fill);
        return NULL;
    }
    if (bind(s, op, values, params, copies, axes, message, message_bytes))
        goto done;
    op->call(params, axes);
    for (uint16_t i = 0; i < op->pointer_count; i++) {
        if (strcmp(op->names[i], name) == 0) {
            value = copies[i];
            copies[i] = NULL;
        }
    }
    if (!value)
        snprintf(message, message_bytes, "%s: '%s' does not compute it", name, fill);
done:
    for (int i = 0; i < ARGS_MAX; i++)
        free(copies[i]);
    return value;
}

static int fill_ref(const struct subject *s, const struct case_arg *a, void **values, void *out,
                    char *message, size_t message_bytes)
{
    void *value = ref_value(s, a->fill_name, a->name, values, message, message_bytes);
    if (!value)
        return -1;
    memcpy(out, value, value_bytes(a));
    free(value);
    return 0;
}

/* ---- a case -----------------------------------------------------------------------------------
 */

static int depends_on_others(const struct case_arg *a)
{
    return a->fill == CASE_FILL_ORDER || a->fill == CASE_FILL_RUNS || a->fill == CASE_FILL_REF;
}

static void round_values(const struct case_arg *a, double *x, int lp_is_f16)
{
    for (int64_t i = 0; a->type != CASE_I32 && i < a->elements; i++)
        x[i] = nj_case_round_to_type(x[i], a->type, lp_is_f16);
}

static int fill_dependent(const struct subject *s, uint32_t i, void **values, char *message,
                          size_t message_bytes)
{
    const struct case_arg *a = &s->c->args[i];
    if (a->fill == CASE_FILL_REF)
        return fill_ref(s, a, values, values[i], message, message_bytes);
    const int ids = nj_case_arg_index(s->c, a->fill_name);
    if (ids < 0 || !values[ids]) {
        snprintf(message, message_bytes, "%s: no ids in '%s'", a->name, a->fill_name);
        return -1;
    }
    if (nj_case_fill_sorted(a, values[ids], s->c->args[ids].elements, values[i]))
        return no_memory(message, message_bytes);
    return 0;
}

int nj_case_fill_case(const struct subject *s, uint64_t seed, int lp_is_f16, void **values,
                      char *message, size_t message_bytes)
{
    const struct kernel_case *c = s->c;
    for (int dependent = 0; dependent < 2; dependent++) {
        for (uint32_t i = 0; i < c->arg_count; i++) {
            const struct case_arg *a = &c->args[i];
            if (a->null || a->dir == CASE_OUT || depends_on_others(a) != dependent)
                continue;
            values[i] = nj_case_allocate(value_bytes(a), 1);
            if (!values[i])
                return no_memory(message, message_bytes);
            if (!dependent)
                nj_case_fill_plain(a, nj_case_stream_of(seed, s->key, c->label, a->name),
                                   a->elements, values[i]);
            else if (fill_dependent(s, i, values, message, message_bytes))
                return -1;
            round_values(a, values[i], lp_is_f16);
        }
    }
    return 0;
}
