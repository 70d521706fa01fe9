/* SPDX-License-Identifier: Apache-2.0
 *
 * test_invariance.c: properties that must not affect a gradient: the split of a batch, the chunk of the head, the order
 * and the packing of documents, tokens without loss, recomputation. Each case compares two passes over the same
 * documents, with a bound on the distance of their gradients.
 *
 * Elsewhere: ten steps instead of one gradient (test_engine.c: splitting, ignored targets, resuming;
 * test_engine_rows.c: empty micro-batches), every parameter moves (test_engine.c, test_lora.c), resuming after kills
 * (resume_killed.sh).
 */
#include "engine/engine.h"
#include "engine_grad.h"
#include "net/backward.h"
#include "net/forward.h"
#include "step/head.h"

#include "base/step_state.h"

enum { DOCUMENTS = 8, LONGEST = 40, NO_LOSS = 100, OTHER_WORDS = 200 };
static const int lengths[DOCUMENTS] = {23, 9, 17, 23, 5, 30, 12, 20};

/* Files: their documents, in order. NO_LOSS is a document whose tokens are no targets, OTHER_WORDS the same with other
 * words in it. */
static const struct {
    const char *name;
    int count, document[DOCUMENTS + 2];
} files[] = {
    {"forward", 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"mixed", 8, {6, 3, 0, 7, 5, 1, 4, 2}},
    {"with-no-loss", 9, {0, 1, 2, NO_LOSS, 3, 4, 5, 6, 7}},
    {"with-other-words", 9, {0, 1, 2, OTHER_WORDS, 3, 4, 5, 6, 7}},
    {"one-less", 7, {0, 1, 2, 3, 4, 5, 6}},
    {"twins", 2, {5, 5}},
    {"no-loss-first", 9, {NO_LOSS, 0, 1, 2, 3, 4, 5, 6, 7}},
};

static void put_token(int32_t *ids, uint8_t *mask, int *n, int id, bool loss)
{
    ids[*n] = id;
    mask[*n / 8] = (uint8_t)(mask[*n / 8] | loss << *n % 8);
    ++*n;
}

static void write_file(const char *name, int count, const int *document)
{
    int32_t head[256] = {0}, ids[DOCUMENTS * LONGEST * 2];
    uint8_t mask[DOCUMENTS * LONGEST / 4] = {0};
    int n = 0;
    for (int k = 0; k < count; k++) {
        const bool loss = document[k] < NO_LOSS;
        const int length = loss ? lengths[document[k]] : 19;
        uint32_t word = 1000u + (uint32_t)document[k];
        for (int i = 0; i < length; i++) {
            word = word * 1664525u + 1013904223u;
            put_token(ids, mask, &n, (int)(word >> 16) % END_OF_TEXT, loss);
        }
        put_token(ids, mask, &n, END_OF_TEXT, loss);
    }
    memcpy(head, "BIN.TOK\n", 8);
    head[2] = 2;
    head[3] = 4;
    head[4] = n;
    head[5] = VOCAB;
    head[6] = 1;
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(ids, sizeof *ids, (size_t)n, f), n);
    assert_int_equal(fwrite(mask, ((size_t)n + 7) / 8, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

struct way {
    const char *file;
    enum packing packing;
    int batch, seq, chunk;
};

/* Bound for sums of up to 160 products in another order: a rounding of 2^-24 for each. */
#define ROUNDING (160 * 0x1p-24)
/* One document per row; packed into rows of 64. */
#define ALONE(file, batch, seq, chunk)                                                             \
    {                                                                                              \
        file, PACKING_NONE, batch, seq, chunk                                                      \
    }
#define PACKED(file, batch, kind)                                                                  \
    {                                                                                              \
        file, kind, batch, 64, 8                                                                   \
    }
#define PLAIN ALONE("forward", 4, 32, 8)

static const struct {
    const char *name;
    struct way a, b;
    double bound; /* bound of |a - b| / |a| for each tensor, Euclidean; 0: bitwise identical */
    bool breaks;  /* whether the difference must exceed the bound, so that this test can fail */
} cases[] = {
    {"the same twice", PLAIN, PLAIN, 0, false},
    {"8 rows, 1", ALONE("forward", 8, 32, 8), ALONE("forward", 1, 32, 8), ROUNDING, false},
    {"8 rows, 3", ALONE("forward", 8, 32, 8), ALONE("forward", 3, 32, 8), ROUNDING, false},
    {"2 rows, 5", ALONE("mixed", 2, 32, 8), ALONE("mixed", 5, 32, 8), ROUNDING, false},
    {"chunk of 8, 64", ALONE("forward", 4, 32, 8), ALONE("forward", 4, 32, 64), ROUNDING, false},
    {"chunk of 1, 13", ALONE("forward", 4, 32, 1), ALONE("forward", 4, 32, 13), ROUNDING, false},
    {"row of 32, 48", ALONE("forward", 2, 32, 8), ALONE("forward", 2, 48, 8), ROUNDING, false},
    {"order", ALONE("forward", 2, 32, 8), ALONE("mixed", 2, 32, 8), ROUNDING, false},
    {"order, packed", PACKED("forward", 1, PACKING_BFD), PACKED("mixed", 1, PACKING_BFD), ROUNDING,
     false},
    {"packed, alone", PACKED("forward", 1, PACKING_BFD), PLAIN, ROUNDING, false},
    {"no loss", PLAIN, ALONE("with-no-loss", 4, 32, 8), ROUNDING, false},
    {"no loss, packed", PACKED("forward", 2, PACKING_BFD), PACKED("with-no-loss", 2, PACKING_BFD),
     ROUNDING, false},
    {"its words", ALONE("with-no-loss", 4, 32, 8), ALONE("with-other-words", 4, 32, 8), 0, false},
    {"a document less", PLAIN, ALONE("one-less", 4, 32, 8), 1000 * ROUNDING, true},
    {"documents cut", PLAIN, PACKED("forward", 4, PACKING_WRAPPED), 1000 * ROUNDING, true},
};

static struct engine *open_way(const char *student, const struct way *way, struct batch_source **d)
{
    struct train_options o = small_options;
    o.batch_size = way->batch;
    o.seq_len = way->seq;
    o.head_chunk = way->chunk;
    /* the test calls gradient(), which adds, and logits must not lie in gradients */
    o.grad_accum = 2;
    *d = open_rows(way->file, &o, way->packing, true);
    return open_engine(student, "teacher", &o);
}

/* Return the gradient of one pass, and its loss. */
static float *gradient_of(const char *student, const struct way *way, double *loss,
                          struct params *p)
{
    struct batch_source *d;
    struct engine *e = open_way(student, way, &d);
    const size_t bytes = (size_t)e->student.p.count * sizeof(float);
    float *out = malloc(bytes);
    assert_non_null(out);
    *loss = loss_at(e, d);
    gradient(e, d);
    memcpy(out, e->mem.grad, bytes);
    ok(params_layout(&e->student.c, PARAMS_ALL, p));
    batches_close(d);
    engine_destroy(e);
    return out;
}

static double distance(const float *a, const float *b, int64_t first, int64_t count)
{
    double apart = 0, size = 0;
    for (int64_t i = first; i < first + count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)a[i] * (double)a[i];
    }
    assert_true(size > 0);
    return sqrt(apart / size);
}

static double worst_tensor(const struct params *p, const float *a, const float *b,
                           const char **name)
{
    double worst = -1;
    for (size_t i = 0; i < p->specs; i++) {
        const double x = distance(a, b, p->first[i], tensor_elements(&p->spec[i]));
        if (!(x <= worst)) {
            worst = x;
            *name = p->spec[i].name;
        }
    }
    return worst;
}

static void gradients_do_not_depend_on_the_batch(void **state)
{
    static const char *const models[] = {"qwen2", "qwen3"};
    (void)state;
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        const size_t i = k / 2;
        struct params p, same;
        double loss[2];
        const char *name = "";
        float *a = gradient_of(models[k % 2], &cases[i].a, &loss[0], &p);
        float *b = gradient_of(models[k % 2], &cases[i].b, &loss[1], &same);
        const double worst = worst_tensor(&p, a, b, &name);
        const double losses = fabs(loss[0] - loss[1]) / loss[0];
        if (getenv("V") != NULL)
            print_message("%s, %s: %.2e in %s, loss %.2e\n", cases[i].name, models[k % 2], worst,
                          name, losses);
        if ((worst <= cases[i].bound) == cases[i].breaks)
            fail_msg("%s (%s): %s: gradients are %.3g apart, the bound is %.3g", cases[i].name,
                     models[k % 2], name, worst, cases[i].bound);
        if (!cases[i].breaks && !(losses <= ROUNDING))
            fail_msg("%s (%s): losses %.9g and %.9g", cases[i].name, models[k % 2], loss[0],
                     loss[1]);
        params_free(&p);
        params_free(&same);
        free(a);
        free(b);
    }
}

/* The contents of the gradients before the first micro-batch have no effect, not even NaN. */
static void old_gradients_are_gone(void **state)
{
    static const char *const models[] = {"qwen2", "qwen3"};
    static const struct way ways[] = {PLAIN, ALONE("no-loss-first", 1, 32, 8)};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct batch_source *d;
        struct engine *e = open_way(models[k % 2], &ways[k / 2], &d);
        const struct params *p = &e->student.p;
        const size_t bytes = (size_t)p->count * sizeof(float);
        float *fresh = malloc(bytes);
        assert_non_null(fresh);
        gradient(e, d);
        memcpy(fresh, e->mem.grad, bytes);
        for (size_t i = 0; i < p->specs; i++)
            for (int64_t j = 0; j < tensor_elements(&p->spec[i]); j++)
                e->mem.grad[p->first[i] + j] = NAN;
        gradient(e, d);
        if (memcmp(fresh, e->mem.grad, bytes) != 0)
            fail_msg("%s: what the gradients were before shows", models[k % 2]);
        free(fresh);
        batches_close(d);
        engine_destroy(e);
    }
}

/* Compute the gradient of every tensor for two rows with the same document, where the gradient of the second row's
 * outputs is `factor` times that of the first. */
static void backward_of_twins(const char *student, float factor, float **out, struct params *p)
{
    const struct way way = ALONE("twins", 2, 32, 8);
    struct batch_source *d;
    struct engine *e = open_way(student, &way, &d);
    struct work w = engine_work(e);
    const int64_t half = 32 * (int64_t)e->student.c.hidden_size;
    ok(stage_next(e, d, 0, 0));
    ok(send_batch(e, 0));
    e->mem.state[NJ_STEP_INV_VALID] = 1;
    teacher_forward(&w, &e->teacher, &e->mem.rows, 1);
    teacher_keep(&w, &e->teacher, &e->mem.rows);
    e->mem.student.lora.key = NULL;
    net_forward(&w, &e->student, &e->mem.student, &e->mem.rows);
    head_losses(&w, e, e->chunks_of[0], true);
    float *outputs = (float *)(void *)e->mem.student.branch;
    for (int64_t i = 0; i < half; i++)
        outputs[half + i] = factor * outputs[i];
    memset(e->mem.grad, 0, (size_t)e->student.p.count * sizeof(float));
    net_backward(&w, &e->student, &e->mem.student, &e->mem.rows);
    ok(w.rc);
    *out = malloc((size_t)e->student.p.count * sizeof(float));
    assert_non_null(*out);
    memcpy(*out, e->mem.grad, (size_t)e->student.p.count * sizeof(float));
    ok(params_layout(&e->student.c, PARAMS_ALL, p));
    batches_close(d);
    engine_destroy(e);
}

static void opposite_rows_cancel(void **state)
{
    static const char *const models[] = {"qwen2", "qwen3"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct params p, same;
        float *once, *none;
        backward_of_twins(models[k], 0, &once, &p);
        backward_of_twins(models[k], -1, &none, &same);
        for (size_t i = 0; i < p.specs; i++) {
            double left = 0, size = 0;
            if (p.first[i] == p.head && p.head != p.embed)
                continue; /* its gradient is computed earlier */
            for (int64_t j = 0; j < tensor_elements(&p.spec[i]); j++) {
                left += pow((double)none[p.first[i] + j], 2);
                size += pow((double)once[p.first[i] + j], 2);
            }
            if (!(size > 0) || !(sqrt(left / size) <= ROUNDING))
                fail_msg("%s: %s: %.3g of %.3g is left", models[k], p.spec[i].name, sqrt(left),
                         sqrt(size));
        }
        params_free(&p);
        params_free(&same);
        free(once);
        free(none);
    }
}

/* Three steps with adapters and dropout, which draw from the seed. */
static void the_seed_decides_the_bits(void **state)
{
    static const struct {
        uint64_t seed[2];
        bool same;
    } pairs[] = {{{5, 5}, true}, {{5, 6}, false}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        float *w[2];
        size_t bytes = 0;
        for (int i = 0; i < 2; i++) {
            struct train_options o = small_options;
            struct step_result r;
            o.seed = pairs[k].seed[i];
            o.lora = (struct lora_config){.rank = 4, .alpha = 8, .dropout = 0.2};
            ok(lora_targets_add(&o.lora, "all-linear"));
            struct batch_source *d = open_tokens("tokens.bin", &o, false);
            struct engine *e = open_engine("qwen2", "teacher", &o);
            for (int step = 0; step < 3; step++)
                ok(engine_step(e, d, &r));
            bytes = (size_t)engine_trained(e)->count * sizeof(float);
            w[i] = malloc(bytes);
            assert_non_null(w[i]);
            memcpy(w[i], e->mem.master, bytes);
            batches_close(d);
            engine_destroy(e);
        }
        assert_int_equal(memcmp(w[0], w[1], bytes) == 0, pairs[k].same);
        free(w[0]);
        free(w[1]);
    }
}

static int open_files(void **state)
{
    const int rc = fixture_open(state);
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++)
        write_file(files[i].name, files[i].count, files[i].document);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_do_not_depend_on_the_batch),
        cmocka_unit_test(old_gradients_are_gone),
        cmocka_unit_test(opposite_rows_cancel),
        cmocka_unit_test(the_seed_decides_the_bits),
    };
    return cmocka_run_group_tests(tests, open_files, fixture_close);
}
