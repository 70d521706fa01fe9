/* SPDX-License-Identifier: Apache-2.0
 *
 * harness_selftest.c: a harness that passes everything would look the same as one that works. So:
 * one op, y[i] = 2 x[i] and sign[i], done right once and wrong in every way that the harness must
 * notice.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

enum { ROWS = 6, COLUMNS = 5, COUNT = ROWS * COLUMNS };

struct block {
    void *y, *sign, *x;
    int32_t n;
};

static void twice(const struct block *p)
{
    float *y = p->y;
    int32_t *sign = p->sign;
    const float *x = p->x;
    for (int32_t i = 0; i < p->n; i++) {
        y[i] = 2 * x[i];
        sign[i] = x[i] < 0 ? -1 : 1;
    }
}

static int right(nj_stream *s, const void *params)
{
    (void)s;
    twice(params);
    return 0;
}

static int returns_nan(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->y)[3] = NAN;
    return 0;
}

static int returns_infinity(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->y)[0] = INFINITY;
    return 0;
}

static int returns_a_constant(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    memset(p->y, 0, COUNT * sizeof(float));
    return 0;
}

static int is_off_by_one_row(nj_stream *s, const void *params)
{
    const struct block *p = params;
    float *y = p->y;
    right(s, params);
    memmove(y + COLUMNS, y, (COUNT - COLUMNS) * sizeof(float));
    return 0;
}

static int is_slightly_off(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->y)[7] *= 1.0001f;
    return 0;
}

static int leaves_one_element(nj_stream *s, const void *params)
{
    const struct block *p = params;
    struct block shorter = *p;
    (void)s;
    shorter.n--;
    twice(&shorter);
    return 0;
}

static int gets_an_integer_wrong(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((int32_t *)p->sign)[COUNT - 1] += 1;
    return 0;
}

static int writes_past_the_end(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->y)[COUNT] = 0;
    return 0;
}

static int writes_before_the_start(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->y)[-1] = 0;
    return 0;
}

static int changes_an_input(nj_stream *s, const void *params)
{
    const struct block *p = params;
    right(s, params);
    ((float *)p->x)[2] += 1;
    return 0;
}

static int refuses(nj_stream *s, const void *params)
{
    right(s, params);
    return NJ_E_ARG;
}

static int crashes(nj_stream *s, const void *params)
{
    right(s, params);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
    return raise(SIGSEGV);
}

static void oracle(const void *params)
{
    const struct block *p = params;
    double *y = p->y;
    int32_t *sign = p->sign;
    const double *x = p->x;
    for (int32_t i = 0; i < p->n; i++) {
        y[i] = 2 * x[i];
        sign[i] = x[i] < 0 ? -1 : 1;
    }
}

static const struct case_arg ARGS[] = {
    {.name = "y", .dir = CASE_OUT, .type = CASE_F32, .elements = COUNT, .align = 16, .scale = 1},
    {.name = "sign", .dir = CASE_OUT, .type = CASE_I32, .elements = COUNT, .align = 4, .scale = 1},
    {.name = "x", .dir = CASE_IN, .type = CASE_F32, .elements = COUNT, .align = 4, .scale = 1},
};
static const struct nj_param PARAMS[] = {{offsetof(struct block, y), sizeof(void *)},
                                         {offsetof(struct block, sign), sizeof(void *)},
                                         {offsetof(struct block, x), sizeof(void *)},
                                         {offsetof(struct block, n), sizeof(int32_t)}};
static const char *const NAMES[] = {"y", "sign", "x", "n"};
static const struct case_names CASE_NAMES = {.params = NAMES};
static const struct block NUMBERS = {.n = COUNT};

/* says: what the message must hold, so that no op fails for another reason than its own. */
static const struct {
    const char *name;
    int (*launch)(nj_stream *s, const void *params);
    const char *says; /* NULL: it must pass */
} OPS[] = {
    {"right", right, NULL},
    {"returns NaN", returns_nan, "y[3]: got nan"},
    {"returns infinity", returns_infinity, "y[0]: got inf"},
    {"returns a constant", returns_a_constant, "got 0, want"},
    {"is off by one row", is_off_by_one_row, "y["},
    {"is slightly off", is_slightly_off, "y[7]"},
    {"leaves one element", leaves_one_element, "y[29]: got -nan"},
    {"gets an integer wrong", gets_an_integer_wrong, "sign[29]"},
    {"writes past the end", writes_past_the_end, "y: wrote"},
    {"writes before the start", writes_before_the_start, "y: wrote"},
    {"changes an input", changes_an_input, "x[2]: input was changed"},
    {"refuses", refuses, "launch: NJ_E_ARG"},
    {"crashes", crashes, "signal 11"},
    {"right after a crash", right, NULL},
};
enum { OP_COUNT = sizeof(OPS) / sizeof(OPS[0]) };

/* Every finite value of a 16-bit type survives storing, and what lies between two goes to the
 * nearer one, at the middle to the even one. Returns how many patterns break that. */
static int broken_patterns(int lp_is_f16)
{
    int broken = 0;
    for (unsigned bits = 0; bits < 0xffff; bits++) {
        const uint16_t pair[2] = {(uint16_t)bits, (uint16_t)(bits + 1)};
        const double x = nj_case_decode((const unsigned char *)pair, 0, CASE_LP, lp_is_f16);
        const double next = nj_case_decode((const unsigned char *)pair, 1, CASE_LP, lp_is_f16);
        uint16_t stored;
        if (!isfinite(x) || !isfinite(next) || signbit(x) != signbit(next))
            continue;
        nj_case_encode((unsigned char *)&stored, &x, 1, CASE_LP, lp_is_f16);
        const double even = bits % 2 ? next : x, step = next - x;
        broken += stored != bits || step == 0 ||
                  nj_case_round_to_type(x + step / 2, CASE_LP, lp_is_f16) != even ||
                  nj_case_round_to_type(x + 0.49 * step, CASE_LP, lp_is_f16) != x ||
                  nj_case_round_to_type(x + 0.51 * step, CASE_LP, lp_is_f16) != next;
    }
    return broken;
}

/* Values whose bits the formats' definitions give. */
static int wrong_bits(void)
{
    static const struct {
        double x;
        uint16_t bf16, f16;
    } known[] = {{1, 0x3f80, 0x3c00},       {-2, 0xc000, 0xc000},      {0, 0, 0},
                 {0x1p-14, 0x3880, 0x0400}, {0x1p-24, 0x3380, 0x0001}, {0.15625, 0x3e20, 0x3100},
                 {65280, 0x477f, 0x7bf8}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint16_t bf16, f16;
        nj_case_encode((unsigned char *)&bf16, &known[i].x, 1, CASE_LP, 0);
        nj_case_encode((unsigned char *)&f16, &known[i].x, 1, CASE_LP, 1);
        wrong += bf16 != known[i].bf16 || f16 != known[i].f16;
    }
    static const struct {
        uint8_t bits;
        double x;
    } e4m3[] = {{0, 0},        {1, 0x1p-9}, {7, 7 * 0x1p-9}, {0x08, 0x1p-6}, {0x38, 1},
                {0x39, 1.125}, {0xc4, -3},  {0x7e, 448},     {0xfe, -448}};
    for (size_t i = 0; i < sizeof(e4m3) / sizeof(e4m3[0]); i++)
        wrong += nj_case_decode(&e4m3[i].bits, 0, CASE_F8, 0) != e4m3[i].x;
    wrong += !isnan(nj_case_decode((const unsigned char[]){0x7f}, 0, CASE_F8, 0));
    wrong += !isnan(nj_case_decode((const unsigned char[]){0x7e}, 0, CASE_E5M2, 0));
    static const struct {
        uint8_t bits;
        double x;
    } e5m2[] = {{0, 0},       {1, 0x1p-16}, {3, 3 * 0x1p-16}, {0x04, 0x1p-14}, {0x3c, 1},
                {0x3d, 1.25}, {0xc2, -3},   {0x7b, 57344},    {0xfb, -57344}};
    for (size_t i = 0; i < sizeof(e5m2) / sizeof(e5m2[0]); i++) {
        unsigned char bits;
        nj_case_encode(&bits, &e5m2[i].x, 1, CASE_E5M2, 0);
        wrong += bits != e5m2[i].bits || nj_case_decode(&bits, 0, CASE_E5M2, 0) != e5m2[i].x;
    }
    return wrong + (nj_case_round_to_type(65520, CASE_LP, 1) != (double)INFINITY) +
           (nj_case_round_to_type(65519, CASE_LP, 1) != 65504);
}

static int check_types(void)
{
    const int bf16 = broken_patterns(0), f16 = broken_patterns(1), bits = wrong_bits();
    if (!bf16 && !f16 && !bits)
        return 0;
    printf("FAIL self-test: narrow types: %d bfloat16 and %d float16 patterns, %d known values\n",
           bf16, f16, bits);
    printf("RERUN harness --self-test\n");
    return 1;
}

static int check_sorted(void)
{
    static const int32_t ids[5] = {3, 6, 3, 0, 3};
    static const int32_t order[5] = {3, 0, 2, 4, 1}, runs[6] = {0, 1, 4, 5, 5, 5};
    const struct case_arg order_arg = {.fill = CASE_FILL_ORDER, .elements = 5};
    const struct case_arg runs_arg = {.fill = CASE_FILL_RUNS, .elements = 6};
    int32_t got_order[5], got_runs[6];
    nj_case_fill_sorted(&order_arg, ids, 5, got_order);
    nj_case_fill_sorted(&runs_arg, ids, 5, got_runs);
    if (!memcmp(got_order, order, sizeof(order)) && !memcmp(got_runs, runs, sizeof(runs)))
        return 0;
    printf("FAIL self-test: order and runs of five ids\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

/* Sequences of three, the last rows in one of their own; -1 here and there, never at the start. */
static int check_sequence(void)
{
    enum { N = 100, LENGTH = 3 };
    struct case_arg a = {.type = CASE_I32, .fill = CASE_FILL_SEQUENCE, .fill_value = LENGTH};
    int32_t got[N];
    int none = 0, wrong = 0, left_out = 0;
    a.every_row = 1;
    nj_case_fill_plain(&a, 1, N, got);
    for (int i = 0; i < N; i++)
        left_out += got[i] < 0;
    a.every_row = 0;
    nj_case_fill_plain(&a, 1, N, got);
    for (int i = 0; i < N; i++) {
        none += got[i] == -1;
        wrong += got[i] != -1 && got[i] != (N - 1) / LENGTH - i / LENGTH;
    }
    if (!left_out && !wrong && none > N / 20 && none < N / 2 && got[0] != -1)
        return 0;
    printf("FAIL self-test: sequences of rows\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

/* Starts ascend from a place behind the first to the number of places, and some of many groups are empty. */
static int check_starts(void)
{
    enum { GROUPS = 40, PLACES = 100 };
    struct case_arg a = {.type = CASE_I32, .fill = CASE_FILL_STARTS, .fill_value = PLACES};
    int32_t got[GROUPS + 1] = {0};
    int empty = 0, wrong = 0;
    nj_case_fill_plain(&a, 1, GROUPS + 1, got);
    for (int i = 0; i < GROUPS; i++) {
        empty += got[i + 1] == got[i];
        wrong += got[i + 1] < got[i];
    }
    if (!wrong && empty > 0 && empty < GROUPS && got[0] > 0 && got[0] < PLACES / 2 &&
        got[GROUPS] == PLACES)
        return 0;
    printf("FAIL self-test: starts of groups\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

/* `most`: of 2,999 elements 3 may differ, all within the tolerance. */
static int check_most(void)
{
    enum { N = 2999 };
    static float got[N];
    static double want[N];
    const struct case_arg a = {
        .name = "y", .type = CASE_F32, .elements = N, .compare = CASE_COMPARE_MOST};
    int wrong = 0;
    for (int i = 0; i < N; i++)
        want[i] = got[i] = 1;
    for (int differ = 1; differ <= 5; differ++) {
        char message[200] = "";
        got[100 * differ] = differ == 5 ? 2.0f : 1.001f;
        nj_case_compare_output(&a, (const unsigned char *)got, want, 0.01, 0, message,
                               sizeof message);
        const char *says = differ < 4 ? "" : differ == 4 ? "4 of 2999" : "y[500]: got 2";
        wrong += *says ? !strstr(message, says) : *message;
    }
    if (!wrong)
        return 0;
    printf("FAIL self-test: an output that may differ in few elements\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

/* An output's own tolerance counts, not the case's, and its error is the same share of that. */
static int check_own_tolerance(void)
{
    const float got = 1.001f;
    const double want = 1;
    int wrong = 0;
    for (int own = 0; own < 2; own++) {
        const struct case_arg a = {
            .name = "y", .type = CASE_F32, .elements = 1, .tolerance = own ? 1e-4 : 0};
        char message[200] = "";
        const double error = nj_case_compare_output(&a, (const unsigned char *)&got, &want, 0.01, 0,
                                                    message, sizeof message);
        wrong += own ? !strstr(message, "tolerance 0.0001") : *message;
        wrong += fabs(error - (own ? 0.05 : 0.0005)) > 1e-5;
    }
    if (!wrong)
        return 0;
    printf("FAIL self-test: an output with a tolerance of its own\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

/* Zero for a denormal, and nothing else. */
static int check_flushed(void)
{
    static const struct {
        float got;
        double want;
        int passes;
    } pairs[] = {{0, 1e-39, 1}, {-0.0f, -1e-39, 1}, {1e-30f, 1e-39, 0}, {0, 2e-38, 0}};
    const struct case_arg a = {
        .name = "y", .type = CASE_F32, .elements = 1, .compare = CASE_COMPARE_EXACT};
    int wrong = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const unsigned char *got = (const unsigned char *)&pairs[i].got;
        double want = pairs[i].want;
        char message[200] = "";
        nj_case_flush(&a, got, &want, 0);
        nj_case_compare_output(&a, got, &want, 0, 0, message, sizeof message);
        wrong += (*message == 0) != pairs[i].passes;
    }
    if (!wrong)
        return 0;
    printf("FAIL self-test: denormals that are flushed\n");
    printf("RERUN harness --self-test\n");
    return 1;
}

int run_self_test(void)
{
    static struct kernel_case cases[OP_COUNT];
    static struct subject subjects[OP_COUNT];
    struct result *results = shared_results(OP_COUNT);
    int failed = check_types() + check_sorted() + check_sequence() + check_starts() + check_most() +
                 check_own_tolerance() + check_flushed();
    for (int i = 0; i < OP_COUNT; i++) {
        cases[i] = (struct kernel_case){.label = OPS[i].name,
                                        .args = ARGS,
                                        .arg_count = sizeof(ARGS) / sizeof(ARGS[0]),
                                        .params = (const unsigned char *)&NUMBERS,
                                        .tolerance = 1e-5,
                                        .launch = OPS[i].launch,
                                        .oracle = oracle};
        subjects[i] = (struct subject){.key = "twice.f32",
                                       .op = "twice",
                                       .params = PARAMS,
                                       .param_bytes = sizeof(struct block),
                                       .param_count = sizeof(PARAMS) / sizeof(PARAMS[0]),
                                       .names = &CASE_NAMES,
                                       .c = &cases[i]};
    }
    run_in_children(subjects, OP_COUNT, 1, results);
    for (int i = 0; i < OP_COUNT; i++) {
        const struct result *r = &results[i];
        const int as_said = OPS[i].says ? r->status == FAILED && strstr(r->message, OPS[i].says)
                                        : r->status == PASSED;
        if (!as_said) {
            printf("FAIL self-test: an op that %s: %s\n", OPS[i].name,
                   r->status == PASSED ? "passed" : r->message);
            printf("RERUN harness --self-test\n");
            failed++;
        }
    }
    printf("self-test: %d passed, %d failed\n", OP_COUNT + 5 - failed, failed);
    return failed ? 1 : 0;
}
