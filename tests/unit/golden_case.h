/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_case.h: for test_golden.c and test_golden_families.c: opens cases of tests/golden, and compares logits,
 * losses, gradients and optimizer steps with those that oracle.py computed in float64.
 *
 * GOLDEN_DEVICE=cpu|cuda (cpu) and GOLDEN_DTYPE=float32|16-bit (float32) choose what is tested.
 */
#ifndef NOJIT_TESTS_GOLDEN_CASE_H
#define NOJIT_TESTS_GOLDEN_CASE_H

#include "batch/data.h"
#include "engine/engine.h"
#include "golden_answers.h"
#include "golden_bounds.h"
#include "io/random.h"
#include "model/file_rows.h"
#include "net/forward.h"
#include "net/logits.h"
#include "nojit_ops.h"
#include "step/micro_batch.h"
#include "step/step.h"
#include "unit.h"
#include "weights/weights.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/torch/" /* the folder with the tokens */

/* the numbers in oracle.py and make_golden.py */
enum { SIGNS = 16, WHOLE_MOST = 256, SAMPLES = 32, KEPT_MOST = 4, SUMMARY_HEAD = 2 + SIGNS };
enum { VOCAB = 300, PADDED_VOCAB = 320, END_OF_TEXT = 299, WINDOWS = 4, HEAD_CHUNK = 64 };

/* The files that a program compares with, and what of a case they keep: one row of logits in row_stride, all elements
 * of a tensor that has no more than `whole`, and movements after these steps (0: no more). */
static const struct golden_set {
    const char *folder; /* its cases.json and CASE.safetensors */
    int row_stride, whole, steps[KEPT_MOST];
} * set;
static const char *models; /* path before the names of models */

static nj_context *ctx;
static json_t *golden, *cases;      /* cases.json, and the cases in it */
static struct batch packed_answers; /* completions of the case that is open */

/* ---- one case ---- */

struct golden {
    const char *name;
    const json_t *steps; /* figures of each step */
    struct train_options o;
    struct tensors want;
    struct engine *e;
    struct batch_source *d;
    double worst; /* largest share of its bound that a difference took */
    char worst_at[160];
};

static void read_options(const json_t *from, struct train_options *o)
{
    const struct {
        const char *name;
        float *to;
    } reals[] = {
        {"temperature", &o->temperature},
        {"kd_ratio", &o->kd_ratio},
        {"beta", &o->beta},
        {"lr", &o->lr},
        {"min_lr_ratio", &o->min_lr_ratio},
        {"weight_decay", &o->weight_decay},
        {"beta1", &o->beta1},
        {"beta2", &o->beta2},
        {"eps", &o->eps},
        {"max_grad_norm", &o->max_grad_norm},
    };
    /* numbers of the objective */
    enum { REALS = sizeof reals / sizeof *reals, COUNTS = 5, WORDS = 1 };
    json_int_t count[COUNTS];
    assert_int_equal(json_object_size(from), REALS + COUNTS + WORDS);
    for (int i = 0; i < REALS; i++) {
        const json_t *value = json_object_get(from, reals[i].name);
        assert_true(json_is_number(value));
        *reals[i].to = (float)json_number_value(value);
    }
    assert_int_equal(json_unpack((json_t *)(uintptr_t)from, "{s:I, s:I, s:I, s:I, s:I}",
                                 "batch_size", &count[0], "seq_len", &count[1], "grad_accum",
                                 &count[2], "steps", &count[3], "warmup_steps", &count[4]),
                     0);
    o->batch_size = (int)count[0];
    o->seq_len = (int)count[1];
    o->grad_accum = (int)count[2];
    o->steps = count[3];
    o->warmup_steps = count[4];
    const char *objective = json_string_value(json_object_get(from, "objective"));
    assert_true(strcmp(objective, "kl") == 0 || strcmp(objective, "tvd") == 0);
    o->objective = objective[0] == 't' ? OBJECTIVE_TVD : OBJECTIVE_KL;
    o->schedule = SCHEDULE_COSINE;
    o->dtype = limits->dtype;
    o->head_chunk = HEAD_CHUNK;
    o->use_graph = 1;
    o->balance = -1;
}

static struct batch_source *open_tokens(const struct train_options *o)
{
    static const char *const path = GOLDEN "tokens.bin";
    const struct tokenizer t = {.kind = "bytes", .vocab_size = VOCAB, .end_of_text = END_OF_TEXT};
    const struct data_options options = {
        .paths = &path,
        .path_count = 1,
        .seq_len = o->seq_len,
        .batch_size = o->batch_size,
        .vocab_size = VOCAB,
        .packing = PACKING_WRAPPED,
    };
    struct data *d;
    check_ok(data_open(&options, &t, &d), path);
    return data_batches(d);
}

static const char *folder_of(const char *name)
{
    static char path[2][512];
    static int next;
    char *out = path[next++ % 2];
    snprintf(out, sizeof path[0], "%s%s", models, name);
    return out;
}

static const json_t *find_case(const char *name)
{
    json_t *entry;
    size_t i;
    json_array_foreach(cases, i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0)
            return entry;
    }
    fail_msg("cases.json: there is no case %s", name);
    return NULL;
}

/* Return whether a model of a case is its teacher. */
static bool is_teacher(const json_t *entry, const char *model)
{
    const char *teacher = json_string_value(json_object_get(entry, "teacher"));
    return teacher && strcmp(teacher, model) == 0;
}

/* Open a case of a model's name. form: folder in the place of that model's; NULL: there is none. */
static struct golden open_form(const char *name, const char *form)
{
    const json_t *entry = find_case(name), *of_teacher = json_object_get(entry, "teacher_prompts");
    const char *student = json_string_value(json_object_get(entry, "student"));
    const char *teacher = json_string_value(json_object_get(entry, "teacher"));
    struct golden g = {.name = name, .steps = json_object_get(entry, "steps")};
    char path[128];
    read_options(json_object_get(entry, "options"), &g.o);
    g.o.teacher_has_context = json_is_true(of_teacher);
    g.o.answers = of_teacher != NULL;
    if (form && is_teacher(entry, name))
        teacher = form;
    else if (form)
        student = form;
    check_ok(engine_create(ctx, folder_of(student), teacher ? folder_of(teacher) : NULL, &g.o, NULL,
                           NULL, &g.e),
             name);
    snprintf(path, sizeof path, "%s%s.safetensors", set->folder, name);
    check_ok(st_open_file(path, &g.want), path);
    g.d = of_teacher ? open_answers(json_object_get(golden, "completions"), &g.o, &packed_answers,
                                    g.o.teacher_has_context)
                     : open_tokens(&g.o);
    return g;
}

static struct golden open_case(const char *name)
{
    return open_form(name, NULL);
}

static void close_case(struct golden *g)
{
    print_message("%s %s: at worst %.2f of its bound, %s\n", g->name, limits->name, g->worst,
                  g->worst_at);
    batches_close(g->d);
    batch_free(&packed_answers);
    engine_destroy(g->e);
    tensors_close(&g->want);
}

/* ---- comparing ---- */

/* Check a number against its bound; NaN exceeds every bound. */
static void check(struct golden *g, const char *what, const char *part, double got, double want,
                  double bound)
{
    double share = fabs(got - want) / bound;
    if (!(share <= 1))
        fail_msg("%s %s: %s: %s is %.9g, expected %.9g within %.2g", g->name, limits->name, what,
                 part, got, want, bound);
    if (share > g->worst) {
        g->worst = share;
        snprintf(g->worst_at, sizeof g->worst_at, "%.80s (%s)", what, part);
    }
}

static int64_t stride_of(int64_t n)
{
    return n <= set->whole ? 1 : n / SAMPLES | 1;
}

static void sign_sums(const float *x, int64_t n, double *sum)
{
    memset(sum, 0, SIGNS * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = random_mix((uint64_t)(i + 1) * 0x9e3779b97f4a7c15u);
        for (int k = 0; k < SIGNS; k++)
            sum[k] += bits >> k & 1 ? (double)x[i] : -(double)x[i];
    }
}

static const struct tensor *find(const struct golden *g, const char *name)
{
    const struct tensor *t = tensors_find(&g->want, name);
    if (!t || t->dtype != NJ_TYPE_F32)
        fail_msg("%s: there is no float32 tensor %s", g->name, name);
    return t;
}

/* Bounds for a tensor: shares of its norm and of its largest element, how much larger they are for rates of decay, and
 * a further allowance for each element. */
struct bound {
    double norm, element, decays, rounding;
};

/* Compare x, which has n elements, with the summary of this name. */
static void check_summary(struct golden *g, const char *name, const float *x, int64_t n,
                          struct bound bound)
{
    const struct tensor *t = find(g, name);
    const int64_t stride = stride_of(n), kept = (n + stride - 1) / stride;
    float want[SUMMARY_HEAD + WHOLE_MOST];
    double sum[SIGNS], squares = 0;
    char part[32];
    assert_int_equal(t->shape[0], SUMMARY_HEAD + kept);
    tensor_to_f32(t, 0, t->shape[0], want);
    const double norm = (double)want[0], largest = (double)want[1];
    if (!(norm > 0) || !(largest > 0))
        fail_msg("%s: %s is all zero, which proves nothing", g->name, name);
    sign_sums(x, n, sum);
    for (int k = 0; k < SIGNS; k++)
        squares += pow(sum[k] - (double)want[2 + k], 2);
    check(g, name, "its distance", sqrt(squares / SIGNS), 0,
          bound.norm * norm + bound.rounding * sqrt((double)n));
    for (int64_t i = 0; i < kept; i++) {
        snprintf(part, sizeof part, "element %lld", (long long)(i * stride));
        check(g, name, part, (double)x[i * stride], (double)want[SUMMARY_HEAD + i],
              bound.element * largest + bound.rounding);
    }
}

/* Return an upper bound on the effect of `times` roundings to float32 on an element of x. */
static double rounding_of(const float *x, int64_t n, int times)
{
    float largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    return times * 0x1p-24 * (double)largest;
}

/* Return the elements of an arena that a tensor of a folder consists of, in its order. */
static float *in_file(const struct golden *g, const struct file_tensor *f, const float *arena)
{
    const struct params *p = &g->e->student.p;
    const int64_t columns = file_columns(&f->spec);
    float *out = calloc((size_t)tensor_elements(&f->spec), sizeof *out);
    struct file_run run;
    assert_non_null(out);
    for (int64_t row = 0; row < f->spec.shape[0]; row += run.count) {
        run = file_run(&g->e->student.c, f, p->spec, row);
        memcpy(out + row * columns, arena + p->first[run.spec] + run.row * columns,
               (size_t)(run.count * columns) * sizeof *out);
    }
    return out;
}

/* Return whether a tensor decides how fast the states of heads decay. */
static bool is_decay(const char *name)
{
    return strstr(name, ".A_log") || strstr(name, ".dt_bias");
}

/* Check every trained tensor of an arena, which must be all tensors whose names start with prefix. `weights` has what
 * was rounded, several times, to get there. */
static void check_tensors(struct golden *g, const char *prefix, const float *arena,
                          struct bound bound, const float *weights, int roundings)
{
    const struct params *p = &g->e->student.p;
    size_t stored = 0, files;
    struct file_tensor *file;
    char name[256];
    check_ok(file_tensors(&g->e->student.c, p->spec, p->specs, &file, &files), "tensors");
    for (size_t i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, file[i].spec.name);
        const int64_t n = tensor_elements(&file[i].spec);
        float *x = in_file(g, &file[i], arena), *w = in_file(g, &file[i], weights);
        const double more = is_decay(name) ? bound.decays : 1;
        check_summary(g, name, x, n,
                      (struct bound){.norm = more * bound.norm,
                                     .element = more * bound.element,
                                     .rounding = rounding_of(w, n, roundings)});
        free(x);
        free(w);
    }
    free(file);
    for (size_t i = 0; i < g->want.count; i++)
        stored += strncmp(g->want.tensor[i].name, prefix, strlen(prefix)) == 0;
    assert_int_equal(stored, files);
}

/* ---- from the device ---- */

static void download(struct engine *e, void *to, const void *from, size_t bytes)
{
    check_ok(nj_copy(e->stream, to, from, bytes), "download");
    check_ok(nj_stream_sync(e->stream), "download");
}

static float *arena_of(struct engine *e, const float *from)
{
    const size_t bytes = (size_t)e->student.p.count * sizeof(float);
    float *out = malloc(bytes);
    assert_non_null(out);
    download(e, out, from, bytes);
    return out;
}

/* ---- tests ---- */

/* Return the logits of all rows that have a target, [valid, s->vocab], of the teacher or the student. */
static float *logits_of(struct golden *g, bool teacher)
{
    struct engine *e = g->e;
    struct memory *m = &e->mem;
    const struct shape *s = &e->shape;
    const struct net *n = &e->student;
    const int padded = s->chunks * s->chunk, columns = s->vocab;
    const size_t bytes = (size_t)s->chunk * (size_t)s->ld * dtype_bytes(n->T);
    float *out = calloc((size_t)padded * (size_t)s->ld, sizeof *out);
    char *raw = malloc(bytes);
    struct tensor chunk = {.dtype = n->T == NJ_F32 ? NJ_TYPE_F32 : weights_dtype(e), .data = raw};
    struct work w = engine_work(e);
    assert_true(out && raw);
    if (teacher) {
        teacher_forward(&w, &e->teacher, &m->rows, 1);
        teacher_keep(&w, &e->teacher, &m->rows);
    } else {
        net_forward(&w, n, &m->student, &m->rows);
        struct nj_row_gather kept = {.dst = m->hidden, .src = m->student.y, .index = m->rows.valid};
        kept.M = padded, kept.R = s->rows, kept.C = n->c.hidden_size, kept.scale = 1;
        OP(&w, nj_row_gather(w.s, n->T, &kept));
    }
    for (int first = 0; first < padded; first += s->chunk) {
        char *x = m->hidden + (size_t)first * (size_t)n->c.hidden_size * dtype_bytes(n->T);
        const char *y = teacher ? teacher_logits(&w, &e->teacher, first) : m->logits;
        if (!teacher)
            net_logits(&w, n, NULL, x, s->chunk, s->vocab, s->ld, m->logits);
        check_ok(w.rc, "logits");
        download(e, raw, y, bytes);
        for (int i = 0; i < s->chunk; i++)
            tensor_to_f32(&chunk, (int64_t)i * s->ld, columns, out + (first + i) * columns);
    }
    free(raw);
    return out;
}

static void check_logits(struct golden *g, bool teacher)
{
    const char *who = teacher ? "teacher" : "student";
    const int64_t valid = g->e->valid, stride = set->row_stride,
                  rows = (valid + stride - 1) / stride;
    const int vocab = g->e->shape.vocab;
    float *got = logits_of(g, teacher), want[PADDED_VOCAB];
    char name[32], summary[32];
    snprintf(name, sizeof name, "%s.logits", who);
    snprintf(summary, sizeof summary, "%s.all_logits", who);
    const struct tensor *t = find(g, name);
    assert_true(t->shape[0] == rows && t->shape[1] == vocab && rows > 2);
    for (int64_t r = 0; r < rows; r++) {
        double largest = 0;
        tensor_to_f32(t, r * vocab, vocab, want);
        for (int v = 0; v < vocab; v++)
            largest = fmax(largest, fabs((double)want[v]));
        for (int v = 0; v < vocab; v++) {
            char part[48];
            snprintf(part, sizeof part, "row %lld, token %d", (long long)(r * stride), v);
            check(g, name, part, (double)got[r * stride * vocab + v], (double)want[v],
                  limits->logits * largest);
        }
    }
    check_summary(g, summary, got, valid * vocab,
                  (struct bound){.norm = limits->logits, .element = limits->logits});
    free(got);
}

static void logits(void **state)
{
    struct golden g = open_case(*state);
    check_ok(stage_next(g.e, g.d, 0, 0), "first batch");
    check_ok(send_batch(g.e, 0), "first batch");
    check_logits(&g, false);
    if (engine_teacher(g.e))
        check_logits(&g, true);
    else
        assert_null(tensors_find(&g.want, "teacher.logits"));
    close_case(&g);
}

static double gradient_bound(const struct golden *g)
{
    const struct model_config *c = engine_student(g->e);
    const bool jumps =
        g->o.objective == OBJECTIVE_TVD || arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    return limits->gradient * (jumps && limits->dtype == NJ_LP ? 3 : 1);
}

/* Leave the gradient of the first step on the device. */
static void accumulate_first_step(struct golden *g)
{
    struct engine *e = g->e;
    for (int i = 0; i < g->o.grad_accum; i++)
        check_ok(stage_next(e, g->d, i, i), "first step");
    check_ok(step_gradients(e), "first step");
    check_ok(nj_stream_sync(e->stream), "first step");
}

static void gradients(void **state)
{
    struct golden g = open_case(*state);
    struct params *p = &g.e->student.p;
    const float scale = g.e->mem.pinned->state[NJ_STEP_LOSS_SCALE];
    accumulate_first_step(&g);
    float *grad = arena_of(g.e, g.e->mem.grad);
    for (int64_t i = 0; i < p->count; i++)
        grad[i] /= scale;
    const double bound = gradient_bound(&g);
    const double decays = limits->dtype == NJ_LP ? 5.0 / 3 : 1;
    check_tensors(&g, "gradient/", grad,
                  (struct bound){.norm = bound, .element = bound, .decays = decays}, grad, 0);
    free(grad);
    close_case(&g);
}

static void check_figures(struct golden *g, int step, const struct step_result *r)
{
    const json_t *want = json_array_get(g->steps, (size_t)step - 1);
    const struct {
        const char *name;
        double got, relative, absolute;
    } figures[] = {
        {"loss", r->loss, limits->figure, 0},
        {"class_loss", r->ce_loss, limits->figure, 0},
        {"kd_loss", r->kd_loss, limits->figure, 1e-12},
        {"teacher_entropy", r->teacher_entropy, limits->figure, 1e-12},
        {"agreement", r->agreement, 0, limits->agreement},
        {"valid_tokens", (double)r->valid_tokens, 0, 1e-12},
        {"grad_norm", r->grad_norm, gradient_bound(g), 0},
        {"lr", r->lr, 3 * 0x1p-24, 0},
    };
    enum { FIGURES = sizeof figures / sizeof *figures };
    const double kl = g->o.beta > 0 ? r->reverse_kl : r->forward_kl;
    char what[16];
    snprintf(what, sizeof what, "step %d", step);
    if (g->o.answers && (g->o.beta == 0 || g->o.beta == 1))
        check(g, what, "KL", kl, r->kd_loss, limits->figure * r->kd_loss);
    assert_int_equal(json_object_size(want), FIGURES + r->balanced);
    if (r->balanced)
        check(g, what, "balance_loss", r->balance_loss,
              json_number_value(json_object_get(want, "balance_loss")),
              limits->figure * r->balance_loss);
    for (int i = 0; i < FIGURES; i++) {
        const json_t *value = json_object_get(want, figures[i].name);
        assert_true(json_is_number(value));
        const double x = json_number_value(value);
        check(g, what, figures[i].name, figures[i].got, x,
              figures[i].relative * fabs(x) + figures[i].absolute);
    }
}

static void steps(void **state)
{
    struct golden g = open_case(*state);
    struct params *p = &g.e->student.p;
    float *first = arena_of(g.e, g.e->mem.master);
    int kept = 0;
    assert_int_equal(json_array_size(g.steps), g.o.steps);
    for (int step = 1; step <= g.o.steps; step++) {
        struct step_result r;
        char prefix[32];
        check_ok(engine_step(g.e, g.d, &r), "step");
        check_figures(&g, step, &r);
        snprintf(prefix, sizeof prefix, "movement/%d/", step);
        if (kept == KEPT_MOST || step != set->steps[kept])
            continue;
        float *moved = arena_of(g.e, g.e->mem.master);
        for (int64_t i = 0; i < p->count; i++)
            moved[i] -= first[i];
        check_tensors(&g, prefix, moved,
                      (struct bound){limits->movement, limits->moved_element, 1, 0}, first, step);
        free(moved);
        kept++;
    }
    assert_true(kept > 0 && (kept == KEPT_MOST || set->steps[kept] == 0));
    free(first);
    close_case(&g);
}

/* ---- what to test ---- */

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && value[0] ? value : otherwise;
}

/* Open the device and the cases of `tested`, whose models are in that folder. */
static int golden_begin(const struct golden_set *tested, const char *folder_of_models)
{
    const char *device = setting("GOLDEN_DEVICE", "cpu");
    const char *dtype = setting("GOLDEN_DTYPE", "float32");
    const bool cuda = strcmp(device, "cuda") == 0;
    const struct nj_options options = {.device = cuda ? NJ_DEVICE_CUDA : NJ_DEVICE_CPU};
    char path[128];
    set = tested;
    models = folder_of_models;
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        if (strcmp(precisions[i].name, dtype) == 0)
            limits = &precisions[i];
    if (!limits || (!cuda && strcmp(device, "cpu") != 0)) {
        print_message("GOLDEN_DEVICE is %s, GOLDEN_DTYPE %s; not cpu or cuda, float32 or 16-bit\n",
                      device, dtype);
        return -1;
    }
    if (nj_context_create(&ctx, &options) != 0) {
        print_message("%s\n", nj_context_error(ctx));
        return -1;
    }
    snprintf(path, sizeof path, "%scases.json", set->folder);
    golden = json_load_file(path, 0, NULL);
    cases = json_object_get(golden, "cases");
    return cases ? 0 : -1;
}

static int golden_end(void **state)
{
    (void)state;
    json_decref(golden);
    nj_context_destroy(ctx);
    return 0;
}

#define OF_CASE(name)                                                                              \
    {name " logits", logits, NULL, NULL, (void *)(uintptr_t)name},                                 \
        {name " gradients", gradients, NULL, NULL, (void *)(uintptr_t)name},                       \
    {                                                                                              \
        name " steps", steps, NULL, NULL, (void *)(uintptr_t)name                                  \
    }

#endif
