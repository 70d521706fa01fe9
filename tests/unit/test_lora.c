/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lora.c: guarantees of adapters: their gradients are derivatives, the base model is not changed, and saving,
 * merging and resuming keep the model the same.
 */
#include "engine/engine.h"
#include "engine_grad.h"
#include "lora_folder.h"
#include "net/forward.h"
#include "recurrent_model.h"
#include "step/head.h"

#include "formats/safetensors.h"
#include "nojit_ops.h"
#include "weights/merge.h"

#include <sys/stat.h>
#include <unistd.h>

static struct train_options lora_options(int rank, double dropout, const char *targets)
{
    struct train_options o = small_options;
    o.lora = (struct lora_config){.rank = rank, .alpha = 2.0 * rank, .dropout = dropout};
    ok(lora_targets_add(&o.lora, targets));
    o.seed = 3;
    return o;
}

static void train_some(struct engine *e, struct batch_source *d, int steps, struct step_result *r)
{
    for (int i = 0; i < steps; i++)
        ok(engine_step(e, d, r));
}

static uint32_t lcg = 1;
static float noise(float size)
{
    lcg = lcg * 1664525u + 1013904223u;
    return size * ((float)(lcg >> 8) * 0x1p-23f - 1.0f);
}

/* Make the weights of the base large enough for float32 differences, and all adapters nonzero. */
static void spread(struct engine *e)
{
    float *w = (float *)(void *)e->mem.weights;
    lcg = 11;
    for (int64_t i = 0; i < e->student.p.decayed; i++)
        w[i] *= 4.0f;
    for (size_t i = 0; i < e->lora.p.specs; i++)
        for (int64_t k = 0; k < tensor_elements(&e->lora.p.spec[i]); k++)
            e->mem.master[e->lora.p.first[i] + k] = noise(0.2f);
}

/* Return the loss of a pass with the same dropout as the gradient's pass. */
static double loss_with_masks(struct engine *e, struct batch_source *d)
{
    double sum[2] = {0};
    e->valid = 0;
    batches_seek(d, &(struct data_state){0});
    while (stage_next(e, d, 0, 0) == 0) {
        struct work w = engine_work(e);
        ok(nj_zero(e->stream, e->mem.sums, sizeof *e->mem.sums));
        ok(send_batch(e, 0));
        teacher_forward(&w, &e->teacher, &e->mem.rows, 1);
        teacher_keep(&w, &e->teacher, &e->mem.rows);
        e->mem.student.lora.key = e->mem.rows.key;
        net_forward(&w, &e->student, &e->mem.student, &e->mem.rows);
        head_losses(&w, e, e->chunks_of[0], false);
        ok(w.rc);
        ok(engine_read_back(e));
        sum[0] += (double)e->mem.pinned->sums.objective.kd_loss;
        sum[1] += (double)e->mem.pinned->sums.objective.ce_loss;
    }
    double T = (double)e->o.temperature, r = (double)e->o.kd_ratio;
    return ((1 - r) * sum[1] + r * T * T * sum[0]) / (double)e->valid;
}

/* Return the number of tensors of all adapters: an A and a B each, but one A of queries whose file has gates, too. */
static int tensors_of_adapters(const struct model_config *c)
{
    enum { MLP = 3 };
    int sum = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_mixer(&c->arch, l);
        const bool gate = block_has(b, FEATURE_GATE), joined = block_has(b, FEATURE_GATED_Q);
        const int products = b->kind == BLOCK_CONV ? 2 : b->kind == BLOCK_DELTA ? 5 : 4 + gate;
        sum += 2 * (products + MLP) - joined;
    }
    return sum;
}

static void check_adapters(const char *student, double dropout, loss_fn *loss)
{
    struct train_options o = lora_options(3, dropout, "all-linear");
    /* the test calls gradient(), which adds, and logits must not lie in gradients */
    o.grad_accum = 2;
    struct engine *e = open_engine(student, "teacher", &o);
    struct batch_source *d = open_tokens("masked.bin", &o, true);
    const struct params *p = &e->lora.p;
    assert_int_equal(p->specs, tensors_of_adapters(&e->student.c));
    spread(e);
    gradient(e, d);
    for (size_t i = 0; i < p->specs; i++) {
        int64_t at = steepest(e->mem.grad, p->first[i], tensor_elements(&p->spec[i]));
        double got = (double)e->mem.grad[at], want = difference(e, d, at, loss);
        if (!(fabs(got - want) <= 0.01 * fabs(want) + 2e-6) || !(fabs(got) > 1e-5))
            fail_msg("%s, element %lld: gradient %.7g, difference quotient %.7g", p->spec[i].name,
                     (long long)(at - p->first[i]), got, want);
    }
    batches_close(d);
    engine_destroy(e);
}

/* Write a model whose outputs of attention are gated, by matrices called gate_proj, as those of the MLP are. */
static void write_gated(void)
{
    struct model_config c = qwen3;
    struct block *blocks = config_plain_layers(&c, "muse_glimmer_text");
    const unsigned features = blocks[PLAIN_ATTENTION].features;
    blocks[PLAIN_ATTENTION] = ATTENTION(&qwen3);
    blocks[PLAIN_ATTENTION].features = features;
    blocks[PLAIN_ATTENTION].gain_offset = 1;
    blocks[PLAIN_ATTENTION].score_scale = 0.2f;
    blocks[PLAIN_GLU].ffn_size = GLU(&qwen3).ffn_size;
    c.arch.rope[0].theta = 1e4;
    c.after_eps = 1e-6f;
    c.logit_cap = 10;
    ok(init_model(path_of("gated"), &c, 1, NJ_TYPE_F32, 1 << 30, NULL));
}

static void gradients_of_adapters_are_derivatives(void **state)
{
    (void)state;
    write_gated();
    write_recurrent("nojit-tiny-lfm2", "lfm2", 0);
    write_recurrent("nojit-tiny-qwen3.5", "qwen3.5", 2);
    check_adapters("lfm2", 0, loss_at);
    check_adapters("qwen3.5", 0, loss_at);
    check_adapters("qwen3.5", 0.3, loss_with_masks);
    check_adapters("qwen2", 0, loss_at);
    check_adapters("qwen3", 0, loss_at);
    check_adapters("gelu-tanh", 0, loss_at);
    check_adapters("gated", 0, loss_at);
}

static void gradients_with_dropout_are_derivatives(void **state)
{
    (void)state;
    check_adapters("qwen2", 0.3, loss_with_masks);
    check_adapters("qwen3", 0.3, loss_with_masks);
}

/* B is zero at first, so the loss is exactly that of the base. Later the loss falls, and the base has not changed. */
static void only_adapters_move(void **state)
{
    (void)state;
    struct train_options o = lora_options(4, 0, "all-linear");
    o.lr = 1e-2f;
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct engine *plain = open_engine("qwen2", NULL, &small_options);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct batch_source *held = open_tokens("masked.bin", &o, true);
    const struct params *p = &e->lora.p;
    struct step_result r;
    assert_true(loss_at(e, held) == loss_at(plain, held));
    float *before = malloc((size_t)p->count * sizeof *before);
    assert_non_null(before);
    memcpy(before, e->mem.master, (size_t)p->count * sizeof *before);
    train_some(e, d, 2, &r);
    for (size_t i = 0; i < p->specs; i++)
        if (memcmp(before + p->first[i], e->mem.master + p->first[i],
                   (size_t)tensor_elements(&p->spec[i]) * sizeof(float)) == 0)
            fail_msg("%s did not move", p->spec[i].name);
    double start = r.loss;
    train_some(e, d, 30, &r);
    assert_true(r.loss < start - 0.3);
    assert_memory_equal(e->mem.weights, plain->mem.weights,
                        (size_t)e->student.p.count * sizeof(float));
    free(before);
    batches_close(d);
    batches_close(held);
    engine_destroy(plain);
    engine_destroy(e);
}

static void new_adapters_are_drawn_as_peft_does(void **state)
{
    (void)state;
    struct train_options o = lora_options(8, 0, "q_proj,down_proj");
    struct engine *e = open_engine("qwen3", NULL, &o);
    const struct params *p = &e->lora.p;
    assert_int_equal(p->specs, 8);
    assert_string_equal(p->spec[5].name,
                        "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight");
    assert_string_equal(p->spec[2].name,
                        "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight");
    for (size_t i = 0; i < p->specs; i++) {
        int64_t n = tensor_elements(&p->spec[i]);
        double bound = 1 / sqrt((double)p->spec[i].shape[1]), sum = 0, squares = 0;
        for (int64_t k = 0; k < n; k++) {
            double x = (double)e->mem.master[p->first[i] + k];
            assert_true(fabs(x) <= bound && (i % 2 == 0 || x == 0));
            sum += x;
            squares += x * x;
        }
        if (i % 2 == 0) { /* mean 0, variance bound^2 / 3 */
            assert_true(fabs(sum / (double)n) < 5 * bound / sqrt(3 * (double)n));
            assert_true(fabs(squares / (double)n / (bound * bound / 3) - 1) < 0.15);
        }
    }
    engine_destroy(e);
}

/* The adapters are equal bit for bit, and an evaluation without gradients gives the same result. */
static void saved_adapters_load_again(void **state)
{
    (void)state;
    struct train_options o = lora_options(4, 0.1, "q_proj,v_proj,up_proj,o_proj");
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct batch_source *held = open_tokens("masked.bin", &o, true);
    struct step_result r;
    train_some(e, d, 6, &r);
    make_folder("adapters");
    ok(engine_save_model(e, path_of("adapters")));

    struct train_options again = small_options;
    char *dir = strdup(path_of("adapters"));
    ok(lora_config_read(dir, &again.lora));
    assert_memory_equal(&again.lora, &o.lora, sizeof o.lora);
    again.adapter_dir = dir;
    struct engine *f = open_engine("qwen2", "teacher", &again);
    assert_memory_equal(e->mem.master, f->mem.master, (size_t)e->lora.p.count * sizeof(float));
    again.steps = 0;
    struct engine *g = open_engine("qwen2", "teacher", &again);
    double want = loss_at(e, held);
    assert_true(loss_at(f, held) == want && loss_at(g, held) == want);
    free(dir);
    batches_close(d);
    batches_close(held);
    engine_destroy(e);
    engine_destroy(f);
    engine_destroy(g);
}

static void resuming_continues_bit_for_bit(void **state)
{
    (void)state;
    struct train_options o = lora_options(4, 0.2, "all-linear");
    o.grad_accum = 2;
    struct engine *e = open_engine("qwen3", "teacher", &o), *f;
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct data_state at;
    struct step_result r, s;
    int64_t step = 0;
    train_some(e, d, 3, &r);
    batches_tell(d, &at);
    make_folder("state");
    ok(engine_save_state(e, path_of("state"), 3, &at));
    train_some(e, d, 3, &r);

    f = open_engine("qwen3", "teacher", &o);
    ok(engine_load_state(f, path_of("state"), &step, &at));
    assert_int_equal(step, 3);
    batches_seek(d, &at);
    train_some(f, d, 3, &s);
    assert_true(r.loss == s.loss && r.grad_norm == s.grad_norm);
    size_t bytes = (size_t)e->lora.p.count * sizeof(float);
    assert_memory_equal(e->mem.master, f->mem.master, bytes);
    assert_memory_equal(e->mem.v, f->mem.v, bytes);
    engine_destroy(e);
    engine_destroy(f);

    /* Another scale, another form, all weights: the run is a different one. */
    struct train_options other[3] = {o, o, small_options};
    other[0].lora.alpha = 1;
    other[1].lora.target[LORA_K] = false;
    for (int i = 0; i < 3; i++) {
        f = open_engine("qwen3", "teacher", &other[i]);
        assert_int_equal(engine_load_state(f, path_of("state"), &step, &at), NJ_E_ARG);
        engine_destroy(f);
    }
    batches_close(d);
}

/* The seed decides what is dropped, not the machine; without dropout it decides nothing. */
static void dropout_masks_follow_the_seed(void **state)
{
    (void)state;
    const double dropout[3] = {0.5, 0.5, 0};
    double loss[3][2];
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            struct train_options o = lora_options(4, dropout[i], "all-linear");
            struct engine *e = open_engine("qwen2", NULL, &o);
            struct batch_source *d = open_tokens("tokens.bin", &o, false);
            struct step_result r;
            spread(e);
            if (k == 1 && i != 0)
                e->o.seed = 99;
            train_some(e, d, 1, &r);
            loss[i][k] = r.loss;
            batches_close(d);
            engine_destroy(e);
        }
    }
    assert_true(loss[0][0] == loss[0][1]);
    assert_true(loss[1][0] != loss[1][1]);
    assert_true(loss[2][0] == loss[2][1]);
    assert_true(loss[0][0] != loss[2][0]);
}

/* Words of Philox4x32-10 for counter 0 and key 0, from its authors' test vectors, times 2^-32: 0.400, 0.884, 0.736,
 * 0.606. */
static void dropout_masks_are_philox(void **state)
{
    (void)state;
    const struct {
        float p;
        bool kept[4];
    } cases[] = {
        {0.39f, {true, true, true, true}},     {0.41f, {false, true, true, true}},
        {0.65f, {false, true, true, false}},   {0.74f, {false, true, false, false}},
        {0.89f, {false, false, false, false}},
    };
    float x[4] = {1, 1, 1, 1}, y[4];
    int32_t key[2] = {0, 0};
    nj_stream *s;
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            nj_dropout(s, NJ_F32,
                       &(struct nj_dropout){
                           .y = y, .x = x, .key = key, .n = 4, .p = cases[i].p, .mask = 0}),
            0);
        for (int k = 0; k < 4; k++) {
            float want = cases[i].kept[k] ? 1 / (1 - cases[i].p) : 0;
            assert_true(fabsf(y[k] - want) <= 1e-5f * want);
        }
    }
    nj_stream_destroy(s);
}

static void plan_leaves_out_what_is_frozen(void **state)
{
    (void)state;
    struct train_options o = lora_options(4, 0.1, "all-linear");
    o.dtype = NJ_LP;
    struct plan plan, whole;
    ok(plan_make(&qwen3, &teacher_config, &o, &plan));
    struct train_options all = o;
    all.lora = (struct lora_config){0};
    ok(plan_make(&qwen3, &teacher_config, &all, &whole));
    assert_true(plan.total_bytes < whole.total_bytes);
    int found = 0;
    for (int i = 0; i < plan.count; i++) {
        const char *name = plan.region[i].name;
        assert_true(strncmp(name, "student.", 8) != 0 || strcmp(name, "student.weights") == 0);
        found += strncmp(name, "adapters.", 9) == 0;
    }
    assert_int_equal(found, 5);

    o.dtype = NJ_F32;
    ok(plan_make(&qwen3, &teacher_config, &o, &plan));
    struct engine *e = open_engine("qwen3", "teacher", &o);
    assert_true(engine_plan(e)->total_bytes == plan.total_bytes);
    char *end = (char *)e->device + plan.total_bytes;
    char *last = (char *)e->teacher.net.inv_freq + 64 / 2 * sizeof(float);
    assert_true(last <= end && end - last < 256);
    engine_destroy(e);
}

/* ---- merging ---- */

static void trained_adapters(const char *base_model, const char *dir)
{
    struct train_options o = lora_options(4, 0, "all-linear");
    o.lr = 1e-2f;
    struct engine *e = open_engine(base_model, NULL, &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    train_some(e, d, 20, &r);
    make_folder(dir);
    ok(engine_save_model(e, path_of(dir)));
    batches_close(d);
    engine_destroy(e);
}

static struct engine *with_adapters(const char *model, const char *dir,
                                    const struct model_config *given)
{
    struct train_options o = small_options;
    char *path = strdup(path_of(dir));
    o.steps = 0;
    ok(lora_config_read(path, &o.lora));
    o.adapter_dir = path;
    o.decode_rows = 1;
    o.given = given;
    struct engine *e = open_engine(model, NULL, &o);
    free(path);
    return e;
}

/* A text that begins with one token. */
struct text {
    const struct decode_prompt *prompt; /* NULL: the prompt was taken */
    int32_t *ids;
    int count;
};

static int take_prompt(void *user, struct decode_prompt *out)
{
    struct text *t = user;
    const bool got = t->prompt != NULL;
    if (got)
        *out = *t->prompt;
    t->prompt = NULL;
    return got;
}

static int keep_tokens(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                       enum decode_end end)
{
    struct text *t = user;
    (void)p;
    (void)end;
    memcpy(t->ids + t->count, ids, (size_t)count * sizeof *ids);
    t->count += count;
    return 0;
}

static int decode_text(struct engine *e, int32_t first, int32_t *ids, int count)
{
    const struct decode_prompt p = {.ids = &first, .count = 1, .most = count};
    struct text t = {&p, ids, 0};
    return engine_decode(e, &(struct decode_io){.next = take_prompt,
                                                .generated = keep_tokens,
                                                .user = &t,
                                                .how = {.temperature = 1}});
}

/* Train adapters, save and merge them, and compare both models, in a pass and as decoders. */
static void check_merged(const char *model, const char *adapters, const char *merged_to)
{
    struct train_options o = small_options;
    o.steps = 0;
    o.decode_rows = 1;
    size_t count;
    trained_adapters(model, adapters);
    ok(merge_adapters(path_of(model), path_of(adapters), path_of(merged_to), &count));
    struct engine *a = with_adapters(model, adapters, NULL), *b = open_engine(merged_to, NULL, &o);
    struct engine *plain = open_engine(model, NULL, &o);
    struct batch_source *held = open_tokens("masked.bin", &o, true);
    double apart = loss_at(a, held), merged = loss_at(b, held), before = loss_at(plain, held);
    assert_true(fabs(apart - merged) < 1e-5);
    assert_true(fabs(apart - before) > 0.1);
    int32_t x[12], y[12];
    ok(decode_text(a, 5, x, 12));
    ok(decode_text(b, 5, y, 12));
    assert_memory_equal(x, y, sizeof x);
    batches_close(held);
    engine_destroy(a);
    engine_destroy(b);
    engine_destroy(plain);
}

static void merged_model_is_the_same_model(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.steps = 0;
    check_merged("lfm2", "apart-lfm2", "merged-lfm2");
    check_merged("qwen3.5", "apart-qwen3.5", "merged-qwen3.5");
    check_merged("qwen3", "apart", "merged");
    struct batch_source *held = open_tokens("masked.bin", &o, true);
    struct model_config scaled = qwen3; /* a factor of a product is that of its adapter */
    scaled.residual_scale = 0.4f;
    o.given = &scaled;
    struct engine *a = with_adapters("qwen3", "apart", &scaled);
    struct engine *b = open_engine("merged", NULL, &o);
    assert_true(fabs(loss_at(a, held) - loss_at(b, held)) < 1e-5);
    batches_close(held);
    engine_destroy(a);
    engine_destroy(b);
}

/* Each 16-bit weight is the float32 sum rounded once; tensors without an adapter keep their bits. */
static void merging_rounds_once(void **state)
{
    (void)state;
    ok(init_model(path_of("half"), &qwen2, 1, NJ_TYPE_BF16, 1 << 30, NULL));
    size_t merged;
    trained_adapters("half", "half-apart");
    ok(merge_adapters(path_of("half"), path_of("half-apart"), path_of("half-merged"), &merged));
    struct tensors from, to, ad;
    char file[160];
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", path_of("half-apart"));
    ok(st_open(path_of("half"), &from));
    ok(st_open(path_of("half-merged"), &to));
    ok(st_open_file(file, &ad));
    assert_int_equal(from.count, to.count);
    const char name[] = "model.layers.0.mlp.down_proj.weight";
    const struct tensor *w = tensors_find(&from, name), *m = tensors_find(&to, name);
    const float *a =
        tensors_find(&ad, "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight")->data;
    const float *b =
        tensors_find(&ad, "base_model.model.model.layers.0.mlp.down_proj.lora_B.weight")->data;
    assert_int_equal(m->dtype, NJ_TYPE_BF16);
    int64_t moved = 0;
    for (int64_t row = 0; row < w->shape[0]; row++) {
        for (int64_t col = 0; col < w->shape[1]; col++) {
            float before, after;
            tensor_to_f32(w, row * w->shape[1] + col, 1, &before);
            tensor_to_f32(m, row * w->shape[1] + col, 1, &after);
            double want = (double)before;
            for (int k = 0; k < 4; k++)
                want += 2.0 * (double)b[row * 4 + k] * (double)a[k * w->shape[1] + col];
            int exponent; /* half a unit in the last of 8 places */
            frexp(want, &exponent);
            assert_true(fabs((double)after - want) <= ldexp(1.0001, exponent - 9) + 1e-8);
            moved += after != before;
        }
    }
    assert_true(moved > w->shape[0]);
    w = tensors_find(&from, "model.embed_tokens.weight");
    m = tensors_find(&to, "model.embed_tokens.weight");
    assert_memory_equal(w->data, m->data, w->bytes);
    tensors_close(&from);
    tensors_close(&to);
    tensors_close(&ad);
}

/* ---- refusals ---- */

/* Adapters of another model, and a file with more tensors than its configuration lists. */
static void adapters_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e;
    size_t merged;
    trained_adapters("qwen3", "misfit");
    char *dir = strdup(path_of("misfit"));
    ok(lora_config_read(dir, &o.lora));
    o.adapter_dir = dir;
    assert_int_not_equal(engine_create(ctx, path_of("qwen2"), NULL, &o, NULL, NULL, &e), 0);
    assert_non_null(strstr(fail_text(), "lora_"));
    assert_int_not_equal(merge_adapters(path_of("qwen2"), dir, path_of("no"), &merged), 0);
    write_config("misfit", ", \"target_modules\": [\"q_proj\"]");
    ok(lora_config_read(dir, &o.lora));
    assert_int_equal(engine_create(ctx, path_of("qwen3"), NULL, &o, NULL, NULL, &e),
                     NJ_E_UNSUPPORTED);
    assert_int_equal(merge_adapters(path_of("qwen3"), dir, path_of("no"), &merged),
                     NJ_E_UNSUPPORTED);
    assert_int_not_equal(access(path_of("no"), F_OK), 0);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_adapters_are_derivatives),
        cmocka_unit_test(gradients_with_dropout_are_derivatives),
        cmocka_unit_test(only_adapters_move),
        cmocka_unit_test(new_adapters_are_drawn_as_peft_does),
        cmocka_unit_test(saved_adapters_load_again),
        cmocka_unit_test(resuming_continues_bit_for_bit),
        cmocka_unit_test(dropout_masks_follow_the_seed),
        cmocka_unit_test(dropout_masks_are_philox),
        cmocka_unit_test(plan_leaves_out_what_is_frozen),
        cmocka_unit_test(merged_model_is_the_same_model),
        cmocka_unit_test(merging_rounds_once),
        cmocka_unit_test(adapters_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
