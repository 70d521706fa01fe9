/* SPDX-License-Identifier: Apache-2.0
 *
 * test_delta_device.c: the gated delta rule on each device, with the slow and fast decays of real heads: its kernels
 * one after the other agree with their references in double, and no document moves a bit of another, forward or
 * backward.
 */
#include "base/delta.h"
#include "device_arrays.h"
#include "nojit_ops.h"

#include <math.h>

void nj_ref_delta_solve_f64(int D, double *gates, double *logs, double *solve, double *scores,
                            const double *qkv, const double *b, const double *a,
                            const double *a_log, const double *dt_bias, const int32_t *doc_start,
                            int32_t B, int32_t S, int32_t H, int32_t K, int32_t ld);
void nj_ref_delta_fwd_f64(int D, double *o, double *states, double *updates, double *state,
                          const double *qkv, const double *gates, const double *logs,
                          const double *solve, const double *scores, const int32_t *doc_start,
                          const int32_t *slot, int32_t B, int32_t S, int32_t H, int32_t K,
                          int32_t G);
void nj_ref_delta_bwd_state_f64(int D, double *dr, double *dstates, const double *dout,
                                const double *qkv, const double *gates, const double *solve,
                                const double *scores, int32_t B, int32_t S, int32_t H, int32_t K);
void nj_ref_delta_bwd_f64(int D, double *dqkv, double *db, double *da, double *da_log_part,
                          double *ddt_bias_part, const double *dout, const double *qkv,
                          const double *updates, const double *states, const double *dr,
                          const double *dstates, const double *gates, const double *logs,
                          const double *b, const double *a, const double *a_log,
                          const double *dt_bias, const int32_t *doc_start, int32_t B, int32_t S,
                          int32_t H, int32_t K, int32_t ld);

enum { S = 140, H = 2, K = 1, CHUNKS = 3, CHUNK = DELTA_CHUNK, WIDEST = 128 };

/* Arrays of the passes; those from `out` on are computed. */
enum delta_array {
    QKV,
    B_,
    A,
    A_LOG,
    DT_BIAS,
    DOUT,
    OUT,
    GATES = OUT,
    LOGS,
    SOLVE,
    SCORES,
    O,
    STATES,
    UPDATES,
    DR,
    DSTATES,
    DQKV,
    DB,
    DA,
    DA_LOG,
    DDT_BIAS,
    ARRAYS
};

/* Return the elements of an array, and whether it has the type of the key. */
static size_t elements(enum delta_array which, int D, bool *typed)
{
    const size_t heads = (size_t)H * CHUNKS, d = (size_t)D, values = (size_t)S * H * d;
    const struct {
        size_t count;
        bool typed;
    } all[ARRAYS] = {
        [QKV] = {(size_t)S * (2 * K + H) * d, true},
        [B_] = {(size_t)S * H, true},
        [A] = {(size_t)S * H, true},
        [A_LOG] = {H, true},
        [DT_BIAS] = {H, true},
        [DOUT] = {values, true},
        [GATES] = {heads * DELTA_FACTORS * CHUNK, false},
        [LOGS] = {heads * DELTA_LOGS * CHUNK, false},
        [SOLVE] = {heads * CHUNK * CHUNK, true},
        [SCORES] = {heads * CHUNK * CHUNK, true},
        [O] = {values, true},
        [STATES] = {heads * d * d, true},
        [UPDATES] = {values, true},
        [DR] = {values, true},
        [DSTATES] = {heads * d * d, true},
        [DQKV] = {(size_t)S * (2 * K + H) * d, true},
        [DB] = {(size_t)S * H, true},
        [DA] = {(size_t)S * H, true},
        [DA_LOG] = {heads, false},
        [DDT_BIAS] = {heads, false},
    };
    *typed = all[which].typed;
    return all[which].count;
}

struct delta {
    struct device *d;
    enum nj_dtype T;
    int D;
    struct array x[ARRAYS];
    int32_t doc_start[S];
    void *starts; /* doc_start on the device */
};

static struct delta *delta_make(struct device *d, enum nj_dtype T, int D, int second, float rate)
{
    struct delta *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->d = d, m->T = T, m->D = D;
    for (int i = 0; i < ARRAYS; i++) {
        bool typed;
        const size_t count = elements((enum delta_array)i, D, &typed);
        m->x[i] = array_make(d, typed ? T : NJ_F32, count);
    }
    for (int h = 0; h < H; h++)
        m->x[A_LOG].value[h] += rate;
    array_upload(d, &m->x[A_LOG]);
    for (int i = 0; i < S; i++)
        m->doc_start[i] = i < second ? 0 : second;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, sizeof m->doc_start, &m->starts), 0);
    assert_int_equal(nj_copy(d->s, m->starts, m->doc_start, sizeof m->doc_start), 0);
    return m;
}

static void delta_free(struct delta *m)
{
    for (int i = 0; i < ARRAYS; i++)
        array_free(m->d, &m->x[i]);
    nj_free(m->d->ctx, NJ_MEM_DEVICE, m->starts);
    free(m);
}

/* Run all passes on the device. */
static void delta_run(struct delta *m)
{
    struct array *x = m->x;
    nj_stream *s = m->d->s;
    assert_int_equal(nj_delta_solve(s, m->T, m->D,
                                    &(struct nj_delta_solve){.gates = x[GATES].device,
                                                             .logs = x[LOGS].device,
                                                             .solve = x[SOLVE].device,
                                                             .scores = x[SCORES].device,
                                                             .qkv = x[QKV].device,
                                                             .b = x[B_].device,
                                                             .a = x[A].device,
                                                             .a_log = x[A_LOG].device,
                                                             .dt_bias = x[DT_BIAS].device,
                                                             .doc_start = m->starts,
                                                             .B = 1,
                                                             .S = S,
                                                             .H = H,
                                                             .K = K,
                                                             .ld = H}),
                     0);
    assert_int_equal(nj_delta_fwd(s, m->T, m->D,
                                  &(struct nj_delta_fwd){.o = x[O].device,
                                                         .states = x[STATES].device,
                                                         .updates = x[UPDATES].device,
                                                         .qkv = x[QKV].device,
                                                         .gates = x[GATES].device,
                                                         .logs = x[LOGS].device,
                                                         .solve = x[SOLVE].device,
                                                         .scores = x[SCORES].device,
                                                         .B = 1,
                                                         .S = S,
                                                         .H = H,
                                                         .K = K,
                                                         .G = 1}),
                     0);
    assert_int_equal(nj_delta_bwd_state(s, m->T, m->D,
                                        &(struct nj_delta_bwd_state){.dr = x[DR].device,
                                                                     .dstates = x[DSTATES].device,
                                                                     .dout = x[DOUT].device,
                                                                     .qkv = x[QKV].device,
                                                                     .gates = x[GATES].device,
                                                                     .solve = x[SOLVE].device,
                                                                     .scores = x[SCORES].device,
                                                                     .B = 1,
                                                                     .S = S,
                                                                     .H = H,
                                                                     .K = K}),
                     0);
    assert_int_equal(nj_delta_bwd(s, m->T, m->D,
                                  &(struct nj_delta_bwd){.dqkv = x[DQKV].device,
                                                         .db = x[DB].device,
                                                         .da = x[DA].device,
                                                         .da_log_part = x[DA_LOG].device,
                                                         .ddt_bias_part = x[DDT_BIAS].device,
                                                         .dout = x[DOUT].device,
                                                         .qkv = x[QKV].device,
                                                         .updates = x[UPDATES].device,
                                                         .states = x[STATES].device,
                                                         .dr = x[DR].device,
                                                         .dstates = x[DSTATES].device,
                                                         .gates = x[GATES].device,
                                                         .logs = x[LOGS].device,
                                                         .b = x[B_].device,
                                                         .a = x[A].device,
                                                         .a_log = x[A_LOG].device,
                                                         .dt_bias = x[DT_BIAS].device,
                                                         .doc_start = m->starts,
                                                         .B = 1,
                                                         .S = S,
                                                         .H = H,
                                                         .K = K,
                                                         .ld = H}),
                     0);
    for (int i = OUT; i < ARRAYS; i++)
        array_download(m->d, &x[i]);
}

/* Compute the same with the references in double, from the inputs as the device has them. */
static void delta_reference(const struct delta *m, double *r[ARRAYS])
{
    for (int i = 0; i < ARRAYS; i++) {
        r[i] = calloc(m->x[i].count, sizeof(double));
        assert_non_null(r[i]);
        for (size_t k = 0; k < m->x[i].count; k++)
            r[i][k] = (double)m->x[i].value[k];
    }
    nj_ref_delta_solve_f64(m->D, r[GATES], r[LOGS], r[SOLVE], r[SCORES], r[QKV], r[B_], r[A],
                           r[A_LOG], r[DT_BIAS], m->doc_start, 1, S, H, K, H);
    nj_ref_delta_fwd_f64(m->D, r[O], r[STATES], r[UPDATES], NULL, r[QKV], r[GATES], r[LOGS],
                         r[SOLVE], r[SCORES], NULL, NULL, 1, S, H, K, 1);
    nj_ref_delta_bwd_state_f64(m->D, r[DR], r[DSTATES], r[DOUT], r[QKV], r[GATES], r[SOLVE],
                               r[SCORES], 1, S, H, K);
    nj_ref_delta_bwd_f64(m->D, r[DQKV], r[DB], r[DA], r[DA_LOG], r[DDT_BIAS], r[DOUT], r[QKV],
                         r[UPDATES], r[STATES], r[DR], r[DSTATES], r[GATES], r[LOGS], r[B_], r[A],
                         r[A_LOG], r[DT_BIAS], m->doc_start, 1, S, H, K, H);
}

/* A result has passed through three kernels, each with the error that its contract allows. */
static void check_against_references(struct device *d, enum nj_dtype T, int D, float rate)
{
    static const enum delta_array results[] = {O, DR, DQKV, DB, DA};
    struct delta *m = delta_make(d, T, D, 70, rate);
    double *r[ARRAYS];
    delta_run(m);
    delta_reference(m, r);
    for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
        const struct array *got = &m->x[results[k]];
        const double *want = r[results[k]];
        double squares = 0, worst = 0;
        for (size_t i = 0; i < got->count; i++)
            squares += want[i] * want[i];
        const double rms = sqrt(squares / (double)got->count);
        for (size_t i = 0; i < got->count; i++)
            worst = fmax(worst, fabs((double)got->value[i] - want[i]) / (fabs(want[i]) + rms));
        const double tolerance = 3 * (T == NJ_LP ? 2e-2 : 2e-5);
        if (!(worst <= tolerance))
            fail_msg("array %d, head size %d, rate %g: error %g of %g", (int)results[k], D,
                     (double)rate, worst, tolerance);
    }
    for (int i = 0; i < ARRAYS; i++)
        free(r[i]);
    delta_free(m);
}

/* Call check for the types that the device has. */
static void in_each_type(struct device *d, void (*check)(struct device *, enum nj_dtype, int))
{
    for (int D = 64; D <= WIDEST; D *= 2) {
        check(d, NJ_F32, D);
        if (d->lp)
            check(d, NJ_LP, D);
    }
}

static void check_rates(struct device *d, enum nj_dtype T, int D)
{
    static const float rates[] = {-8, -2, 3};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++)
        check_against_references(d, T, D, rates[k]);
}

static void passes_agree_with_their_references(void **state)
{
    struct device *d = need(state);
    if (d->kind == NJ_DEVICE_VULKAN)
        skip();
    in_each_type(d, check_rates);
}

/* Compare bits of rows [from, to) of an array. */
static void assert_rows_equal(const struct delta *m, enum delta_array which, const uint8_t *before,
                              int from, int to)
{
    const size_t row = m->x[which].bytes / S;
    if (memcmp((uint8_t *)m->x[which].raw + (size_t)from * row, before + (size_t)from * row,
               (size_t)(to - from) * row) != 0)
        fail_msg("array %d: rows %d to %d have moved", (int)which, from, to);
}

/* Change rows [from, to) of all inputs. */
static void change_rows(struct delta *m, int from, int to)
{
    static const enum delta_array inputs[] = {QKV, B_, A, DOUT};
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        struct array *x = &m->x[inputs[k]];
        const int row = (int)x->count / S;
        for (int i = from * row; i < to * row; i++)
            x->value[i] = draw();
        array_upload(m->d, x);
    }
}

static void check_documents(struct device *d, enum nj_dtype T, int D)
{
    static const int seconds[] = {1, 40, 64, 70, 129};
    static const enum delta_array results[] = {O, DQKV, DB, DA};
    enum { RESULTS = sizeof results / sizeof *results };
    for (size_t k = 0; k < sizeof seconds / sizeof *seconds; k++)
        for (int changed = 0; changed < 2; changed++) {
            const int second = seconds[k], from = changed ? 0 : second, to = changed ? second : S;
            struct delta *m = delta_make(d, T, D, second, -4);
            uint8_t *before[RESULTS];
            delta_run(m);
            for (int i = 0; i < RESULTS; i++) {
                before[i] = malloc(m->x[results[i]].bytes);
                assert_non_null(before[i]);
                memcpy(before[i], m->x[results[i]].raw, m->x[results[i]].bytes);
            }
            change_rows(m, changed ? second : 0, changed ? S : second);
            delta_run(m);
            for (int i = 0; i < RESULTS; i++) {
                assert_rows_equal(m, results[i], before[i], from, to);
                free(before[i]);
            }
            delta_free(m);
        }
}

static void documents_do_not_move_a_bit_of_each_other(void **state)
{
    struct device *d = need(state);
    if (d->kind == NJ_DEVICE_VULKAN)
        skip();
    in_each_type(d, check_documents);
}

int main(void)
{
    const struct CMUnitTest devices[] = {
        cmocka_unit_test(passes_agree_with_their_references),
        cmocka_unit_test(documents_do_not_move_a_bit_of_each_other),
    };
    return RUN_ON_DEVICES(devices);
}
