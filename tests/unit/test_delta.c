/* SPDX-License-Identifier: Apache-2.0
 *
 * test_delta.c: the double references of the gated delta rule. What they compute chunk by chunk equals the recurrence,
 * row by row and one document after the other; all gradients are derivatives of the recurrence; documents do not see
 * each other; steps continue what a pass over prompts leaves.
 */
#include "base/delta.h"
#include "gradients.h"

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
void nj_ref_delta_step_f64(int D, double *o, double *state, const double *qkv, const double *b,
                           const double *a, const double *a_log, const double *dt_bias,
                           const int32_t *slot, const int32_t *pos, int32_t R, int32_t H, int32_t K,
                           int32_t ld, int32_t G);
void nj_ref_delta_solve_f32(int D, float *gates, float *logs, float *solve, float *scores,
                            const float *qkv, const float *b, const float *a, const float *a_log,
                            const float *dt_bias, const int32_t *doc_start, int32_t B, int32_t S,
                            int32_t H, int32_t K, int32_t ld);
void nj_ref_delta_fwd_f32(int D, float *o, float *states, float *updates, float *state,
                          const float *qkv, const float *gates, const float *logs,
                          const float *solve, const float *scores, const int32_t *doc_start,
                          const int32_t *slot, int32_t B, int32_t S, int32_t H, int32_t K,
                          int32_t G);
void nj_ref_delta_step_f32(int D, float *o, float *state, const float *qkv, const float *b,
                           const float *a, const float *a_log, const float *dt_bias,
                           const int32_t *slot, const int32_t *pos, int32_t R, int32_t H, int32_t K,
                           int32_t ld, int32_t G);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);

enum { D = 64, CHUNK = DELTA_CHUNK };

struct shape {
    int B, S, H, K;
};

struct delta_args {
    struct shape of;
    double *qkv, *b, *a, *a_log, *dt_bias, *dout;
    int32_t *doc_start; /* NULL: a document for each sequence */
};

static size_t rows_of(const struct shape *s)
{
    return (size_t)(s->B * s->S);
}

static size_t chunks_of(const struct shape *s)
{
    return (size_t)(s->B * s->H * ((s->S + CHUNK - 1) / CHUNK));
}

static int width_of(const struct shape *s)
{
    return (2 * s->K + s->H) * D;
}

static int ld_of(const struct shape *s)
{
    return s->H + 3;
}

/* Return inputs whose rates of decay are exp(rate + a random number). */
static struct delta_args inputs(struct shape s, double rate)
{
    const size_t n = rows_of(&s), H = (size_t)s.H;
    struct delta_args x = {s,
                           random_values(n * (size_t)width_of(&s)),
                           random_values(n * (size_t)ld_of(&s)),
                           random_values(n * (size_t)ld_of(&s)),
                           random_values(H),
                           random_values(H),
                           random_values(n * H * D),
                           NULL};
    for (size_t h = 0; h < H; h++)
        x.a_log[h] += rate;
    return x;
}

/* Results of the passes, which overwrite random numbers. */
struct pass {
    double *gates, *logs, *solve, *scores, *o, *states, *updates;
};

static struct pass passed(const struct delta_args *x, double *state, const int32_t *slot, int G)
{
    const struct shape *s = &x->of;
    const size_t n = chunks_of(s), values = rows_of(s) * (size_t)s->H * D;
    const struct pass p = {random_values(n * DELTA_FACTORS * CHUNK),
                           random_values(n * DELTA_LOGS * CHUNK),
                           random_values(n * CHUNK * CHUNK),
                           random_values(n * CHUNK * CHUNK),
                           random_values(values),
                           random_values(n * D * D),
                           random_values(values)};
    nj_ref_delta_solve_f64(D, p.gates, p.logs, p.solve, p.scores, x->qkv, x->b, x->a, x->a_log,
                           x->dt_bias, x->doc_start, s->B, s->S, s->H, s->K, ld_of(s));
    nj_ref_delta_fwd_f64(D, p.o, p.states, p.updates, state, x->qkv, p.gates, p.logs, p.solve,
                         p.scores, x->doc_start, slot, s->B, s->S, s->H, s->K, G);
    return p;
}

/* Compute rows [first, end) of a sequence as one document of its own, row by row. */
static void recurrence(double *o, const struct delta_args *x, int sequence, int h, int first,
                       int end)
{
    static double state[D][D]; /* keys by values */
    const struct shape *s = &x->of;
    const int kv = h / (s->H / s->K);
    memset(state, 0, sizeof state);
    for (int i = first; i < end; i++) {
        const size_t n = (size_t)(sequence * s->S + i);
        const double *row = x->qkv + n * (size_t)width_of(s), *q = row + kv * D;
        const double *k = row + (s->K + kv) * D, *v = row + (2 * s->K + h) * D;
        const size_t column = n * (size_t)ld_of(s) + (size_t)h;
        const double of_k = 1 / sqrt(dot(k, k, D) + (double)DELTA_EPS);
        const double of_q = 1 / sqrt(dot(q, q, D) + (double)DELTA_EPS) / sqrt(D);
        const double step = x->a[column] + x->dt_bias[h];
        const double keep = exp(-exp(x->a_log[h]) * log(1 + exp(step)));
        const double beta = 1 / (1 + exp(-x->b[column]));
        for (int e = 0; e < D; e++) {
            double seen = 0, out = 0;
            for (int d = 0; d < D; d++)
                seen += keep * state[d][e] * k[d] * of_k;
            for (int d = 0; d < D; d++) {
                state[d][e] = keep * state[d][e] + k[d] * of_k * beta * (v[e] - seen);
                out += state[d][e] * q[d] * of_q;
            }
            o[(n * (size_t)s->H + (size_t)h) * D + (size_t)e] = out;
        }
    }
}

static double *row_by_row(const struct delta_args *x)
{
    const struct shape *s = &x->of;
    double *o = zeros(rows_of(s) * (size_t)s->H * D);
    for (int n = 0; n < s->B; n++)
        for (int h = 0; h < s->H; h++)
            for (int first = 0, i = 0; i < s->S; i++) {
                const int32_t *start = x->doc_start ? x->doc_start + n * s->S : NULL;
                if (i + 1 < s->S && (!start || start[i + 1] == start[i]))
                    continue;
                recurrence(o, x, n, h, first, i + 1);
                first = i + 1;
            }
    return o;
}

/* Give x documents that begin at each row of `starts`, in each sequence. */
static void set_documents(struct delta_args *x, const int *starts, int count)
{
    static int32_t doc_start[1024];
    for (int n = 0; n < x->of.B; n++)
        for (int i = 0, k = -1; i < x->of.S; i++) {
            k += k + 1 < count && i == starts[k + 1];
            doc_start[n * x->of.S + i] = k < 0 ? 0 : starts[k];
        }
    x->doc_start = doc_start;
}

static void check_chunks(const struct delta_args *x)
{
    const double *got = passed(x, NULL, NULL, 1).o, *want = row_by_row(x);
    assert_all_close(got, want, rows_of(&x->of) * (size_t)x->of.H * D, 1e-11);
}

/* Rates from a state that hardly decays, as in trained heads, to one that a row empties. */
static const double rates[] = {-8, -2, 0, 3, 6};
enum { RATES = sizeof rates / sizeof *rates };

static void chunks_equal_the_recurrence(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1, 1, 1, 1}, {1, 63, 2, 1}, {2, 64, 1, 1}, {1, 65, 4, 2}, {1, 200, 3, 3}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int r = 0; r < RATES; r++) {
            const struct delta_args x = inputs(shapes[k], rates[r]);
            check_chunks(&x);
            reset(NULL);
        }
}

/* A key of zeros has the length that the epsilon gives it, and is finite. */
static void short_keys_are_finite(void **state)
{
    (void)state;
    const struct shape s = {1, 70, 1, 1};
    struct delta_args x = inputs(s, -2);
    for (int i = 0; i < s.S; i++)
        for (int d = 0; d < 2 * D; d++)
            x.qkv[i * width_of(&s) + d] *= i % 3 == 0 ? 0 : 1e-3;
    check_chunks(&x);
}

/* The second document begins at each place of a chunk in turn. */
static void documents_do_not_see_each_other(void **state)
{
    (void)state;
    const struct shape s = {1, 140, 1, 1};
    for (int start = 1; start < 132; start += start < 6 || start > 60 ? 1 : 7) {
        struct delta_args x = inputs(s, -4);
        const size_t from = (size_t)start * (size_t)s.H * D;
        set_documents(&x, (const int[]){0, start, start + 5}, 3);
        check_chunks(&x);
        const double *before = passed(&x, NULL, NULL, 1).o;
        for (int i = 0; i < start * width_of(&s); i++)
            x.qkv[i] += 1;
        for (int i = 0; i < start * ld_of(&s); i++) {
            x.a[i] *= 1.25;
            x.b[i] -= 1;
        }
        const double *after = passed(&x, NULL, NULL, 1).o;
        assert_memory_equal(after + from, before + from,
                            (rows_of(&s) * (size_t)s.H * D - from) * sizeof *after);
        assert_true(after[from - 1] != before[from - 1]);
        reset(NULL);
    }
}

static double delta_loss(void *args)
{
    const struct delta_args *x = args;
    return dot(row_by_row(x), x->dout, rows_of(&x->of) * (size_t)x->of.H * D);
}

static void check_delta_gradient(struct delta_args *x)
{
    const struct shape *s = &x->of;
    const size_t n = rows_of(s), H = (size_t)s->H, chunks = chunks_of(s);
    const size_t columns = n * (size_t)ld_of(s), width = n * (size_t)width_of(s);
    const struct pass p = passed(x, NULL, NULL, 1);
    double *dr = random_values(n * H * D), *dstates = random_values(chunks * D * D);
    double *dqkv = random_values(width), *db = zeros(columns), *da = zeros(columns);
    double *da_log_part = random_values(chunks), *ddt_bias_part = random_values(chunks);
    double *da_log = zeros(H), *ddt_bias = zeros(H);
    nj_ref_delta_bwd_state_f64(D, dr, dstates, x->dout, x->qkv, p.gates, p.solve, p.scores, s->B,
                               s->S, s->H, s->K);
    nj_ref_delta_bwd_f64(D, dqkv, db, da, da_log_part, ddt_bias_part, x->dout, x->qkv, p.updates,
                         p.states, dr, dstates, p.gates, p.logs, x->b, x->a, x->a_log, x->dt_bias,
                         x->doc_start, s->B, s->S, s->H, s->K, ld_of(s));
    nj_ref_colsum_f64(da_log, da_log_part, (int)(chunks / H), s->H);
    nj_ref_colsum_f64(ddt_bias, ddt_bias_part, (int)(chunks / H), s->H);
    check_gradient(delta_loss, x, x->qkv, dqkv, width);
    check_gradient(delta_loss, x, x->b, db, columns);
    check_gradient(delta_loss, x, x->a, da, columns);
    check_gradient(delta_loss, x, x->a_log, da_log, H);
    check_gradient(delta_loss, x, x->dt_bias, ddt_bias, H);
}

static void gradient_is_the_derivative(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1, 5, 1, 1}, {1, 63, 2, 1}, {1, 65, 2, 2}, {1, 140, 2, 1}};
    static const double rate[] = {-3, -1, 1}; /* difference quotients do not resolve smaller ones */
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int r = 0; r < 3; r++) {
            struct delta_args x = inputs(shapes[k], rate[r]);
            if (r == 1 && shapes[k].S > 63)
                set_documents(&x, (const int[]){0, 3, 40, 64}, 4);
            if (r == 2 && shapes[k].S > 65)
                set_documents(&x, (const int[]){0, 60, 66, 129}, 4);
            check_delta_gradient(&x);
            reset(NULL);
        }
}

/* Documents of some rows are cut behind `cut` rows: a pass has those, packed, and steps the rest. */
static void check_steps(int rows, int cut)
{
    enum { SLOTS = 3, H = 2 };
    const struct shape s = {2, rows, H, 1}, packed = {1, 2 * cut, H, 1}, single = {1, SLOTS, H, 1};
    static const int32_t slots[SLOTS] = {0, -1, 2};
    const struct delta_args all = inputs(s, -3);
    const double *want = row_by_row(&all);
    double *memory = random_values(SLOTS * H * D * D);
    int32_t slot[256];
    if (cut > 0) {
        struct delta_args x = inputs(packed, -3);
        x.a_log = all.a_log;
        x.dt_bias = all.dt_bias;
        set_documents(&x, (const int[]){0, cut}, 2);
        for (int n = 0; n < 2 * cut; n++) {
            const size_t from = (size_t)(n / cut * rows + n % cut), w = (size_t)width_of(&s);
            const size_t ld = (size_t)ld_of(&s);
            memcpy(x.qkv + (size_t)n * w, all.qkv + from * w, w * sizeof *x.qkv);
            memcpy(x.a + (size_t)n * ld, all.a + from * ld, ld * sizeof *x.a);
            memcpy(x.b + (size_t)n * ld, all.b + from * ld, ld * sizeof *x.b);
            slot[n] = n / cut == 0 ? 2 : 0;
        }
        passed(&x, memory, slot, SLOTS);
    }
    for (int n = cut; n < rows; n++) {
        const int32_t pos[SLOTS] = {n, n, n};
        const int from[SLOTS] = {rows + n, 0, n};
        const struct delta_args x = inputs(single, 0);
        double *o = zeros(SLOTS * H * D);
        for (int r = 0; r < SLOTS; r++) {
            const size_t w = (size_t)width_of(&s), ld = (size_t)ld_of(&s);
            memcpy(x.qkv + r * width_of(&s), all.qkv + (size_t)from[r] * w, w * sizeof *x.qkv);
            memcpy(x.a + r * ld_of(&s), all.a + (size_t)from[r] * ld, ld * sizeof *x.a);
            memcpy(x.b + r * ld_of(&s), all.b + (size_t)from[r] * ld, ld * sizeof *x.b);
        }
        nj_ref_delta_step_f64(D, o, memory, x.qkv, x.b, x.a, all.a_log, all.dt_bias, slots, pos,
                              SLOTS, H, 1, ld_of(&s), SLOTS);
        assert_all_close(o, want + (size_t)(rows + n) * H * D, H * D, 1e-11);
        assert_all_close(o + H * D, zeros(H * D), H * D, 0);
        assert_all_close(o + 2 * H * D, want + (size_t)n * H * D, H * D, 1e-11);
    }
}

static float *floats(size_t count)
{
    return (float *)(void *)zeros((count + 1) / 2);
}

/* Round an array to float32, in place, too. */
static float *rounded(double *x, size_t count)
{
    float *out = floats(count);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)(out[i] = (float)x[i]);
    return out;
}

/* Check rows of o in float32, a quarter of them after the other: an error that adds up grows from one to the next. */
static void check_quarters(const char *what, const float *o, const double *want, size_t count)
{
    enum { QUARTERS = 4 };
    const double tolerance = 4e-5 + 2e-5; /* delta_solve, and delta_fwd or delta_step */
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += want[i] * want[i];
    const double rms = sqrt(squares / (double)count);
    for (size_t k = 0; k < QUARTERS; k++) {
        double worst = 0;
        for (size_t i = k * count / QUARTERS; i < (k + 1) * count / QUARTERS; i++)
            worst = fmax(worst, fabs((double)o[i] - want[i]) / (fabs(want[i]) + rms));
        print_message("%s, quarter %zu: %.2g\n", what, k + 1, worst);
        assert_true(worst <= tolerance);
    }
}

/* A row leaves all but 1/10,000 of the state. In float32 neither chunks nor steps drift away from the recurrence in
 * double over more rows than a chunk has by far. */
static void slow_decays_do_not_drift(void **state)
{
    (void)state;
    const struct shape s = {1, 1280, 1, 1};
    const size_t rows = rows_of(&s), H = 1, w = (size_t)width_of(&s), ld = (size_t)ld_of(&s);
    const size_t chunks = chunks_of(&s), values = rows * H * D;
    struct delta_args x = inputs(s, -9);
    const float *qkv = rounded(x.qkv, rows * w), *b = rounded(x.b, rows * ld);
    const float *a = rounded(x.a, rows * ld), *a_log = rounded(x.a_log, H);
    const float *dt_bias = rounded(x.dt_bias, H);
    float *gates = floats(chunks * DELTA_FACTORS * CHUNK);
    float *logs = floats(chunks * DELTA_LOGS * CHUNK);
    float *solve = floats(chunks * CHUNK * CHUNK);
    float *scores = floats(chunks * CHUNK * CHUNK);
    float *o = floats(values), *memory = floats(H * D * D);
    const double *want = row_by_row(&x);
    nj_ref_delta_solve_f32(D, gates, logs, solve, scores, qkv, b, a, a_log, dt_bias, NULL, 1, s.S,
                           s.H, s.K, (int)ld);
    nj_ref_delta_fwd_f32(D, o, NULL, NULL, NULL, qkv, gates, logs, solve, scores, NULL, NULL, 1,
                         s.S, s.H, s.K, 1);
    check_quarters("chunks", o, want, values);
    for (int32_t n = 0; n < s.S; n++)
        nj_ref_delta_step_f32(D, o + (size_t)n * H * D, memory, qkv + (size_t)n * w,
                              b + (size_t)n * ld, a + (size_t)n * ld, a_log, dt_bias, &(int32_t){0},
                              &n, 1, s.H, s.K, (int)ld, 1);
    check_quarters("steps", o, want, values);
}

static void steps_continue_a_pass(void **state)
{
    (void)state;
    static const int cuts[] = {0, 1, 5, 31, 32, 40, 63, 64, 65, 69};
    for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
        check_steps(70, cuts[k]);
        reset(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(chunks_equal_the_recurrence, reset),
        cmocka_unit_test_setup(short_keys_are_finite, reset),
        cmocka_unit_test_setup(documents_do_not_see_each_other, reset),
        cmocka_unit_test_setup(gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(slow_decays_do_not_drift, reset),
        cmocka_unit_test_setup(steps_continue_a_pass, reset),
    };
    return cmocka_run_group_tests_name("delta rule", tests, NULL, NULL);
}
