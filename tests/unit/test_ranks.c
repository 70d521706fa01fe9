/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranks.c: a step shared by several ranks gives the sum of what each rank computes alone, added in their order.
 */
#include "engine/engine.h"
#include "state/ranks.h"

#include "engine_fixture.h"
#include "model/lora_config.h"
#include "step/micro_batch.h"
#include "step/step.h"

#include <errno.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { STEPS = 3, RANKS_MOST = 5 };
extern char **environ;

static struct train_options shared(int ranks, int micro)
{
    struct train_options o = small_options;
    o.ranks = ranks;
    o.rank = RANKS_VIRTUAL;
    o.grad_accum = ranks * micro;
    return o;
}

static size_t gradient_bytes(const struct engine *e)
{
    return (size_t)engine_trained(e)->count * sizeof(float);
}

/* Fetch the micro-batches of a step that belong to a rank, into the slots of an engine without ranks. *valid is the
 * number of targets of the step, counted if it is 0. */
static void stage_rank(struct engine *e, struct batch_source *d, int rank, int ranks,
                       int64_t *valid)
{
    int64_t all = 0;
    struct batch b;
    batches_seek(d, &(struct data_state){0});
    for (int micro = 0; micro < ranks * e->o.grad_accum; micro++) {
        if (micro % ranks == rank) {
            ok(stage_next(e, d, micro, micro / ranks));
        } else {
            ok(batches_next(d, &b));
            all += b.valid;
        }
    }
    all += e->valid;
    *valid = *valid ? *valid : all;
    e->valid = *valid;
}

/* Add gradients and losses of all ranks, in the order of ranks, with an engine that computes one of them at a time. */
static void sum_of_ranks(const char *teacher, int ranks, int micro, float **grad, float *sums)
{
    const struct train_options o = shared(1, micro);
    struct engine *e = open_engine("qwen2", teacher, &o);
    struct batch_source *d = open_tokens("masked.bin", &o, false);
    const int64_t count = engine_trained(e)->count;
    int64_t valid = 0;
    *grad = calloc((size_t)count, sizeof **grad);
    assert_non_null(*grad);
    for (int rank = 0; rank < ranks; rank++) {
        e->valid = 0;
        stage_rank(e, d, rank, ranks, &valid);
        ok(step_gradients(e));
        ok(nj_stream_sync(e->stream));
        for (int64_t i = 0; i < count; i++)
            (*grad)[i] = rank == 0 ? e->mem.grad[i] : (*grad)[i] + e->mem.grad[i];
        const float *here = (const float *)e->mem.sums;
        for (int i = 0; i < LOSS_SUMS; i++)
            sums[i] = rank == 0 ? here[i] : sums[i] + here[i];
    }
    batches_close(d);
    engine_destroy(e);
}

/* The teacher runs over one micro-batch per rank, and over several at once. */
static void gradients_are_added_in_order(void **state)
{
    (void)state;
    static const struct {
        int ranks, micro;
        const char *teacher;
    } cases[] = {{2, 1, NULL}, {3, 1, "teacher"}, {3, 2, "teacher"}, {4, 3, "teacher"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct train_options o = shared(cases[k].ranks, cases[k].micro);
        struct engine *e = open_engine("qwen2", cases[k].teacher, &o);
        struct batch_source *d = open_tokens("masked.bin", &o, false);
        float *grad, sums[LOSS_SUMS];
        sum_of_ranks(cases[k].teacher, cases[k].ranks, cases[k].micro, &grad, sums);
        e->valid = 0;
        for (int micro = 0; micro < o.grad_accum; micro++)
            ok(stage_next(e, d, micro, ranks_slot(&e->shape, micro)));
        ok(step_gradients(e));
        ok(nj_stream_sync(e->stream));
        assert_memory_equal(e->mem.total, grad, gradient_bytes(e));
        assert_memory_equal(e->mem.total_sums, sums, sizeof sums);
        free(grad);
        batches_close(d);
        engine_destroy(e);
    }
}

/* The random numbers of a micro-batch do not depend on the rank that computes it. */
static void micro_batches_are_the_same(void **state)
{
    (void)state;
    const struct train_options one = shared(1, 6), three = shared(3, 2);
    struct engine *a = open_engine("qwen2", NULL, &one), *b = open_engine("qwen2", NULL, &three);
    struct batch_source *d = open_tokens("masked.bin", &one, false);
    const size_t bytes = a->mem.rows_bytes;
    bool used[6] = {false};
    for (int k = 0; k < 2; k++) {
        batches_seek(d, &(struct data_state){0});
        for (int micro = 0; micro < 6; micro++) {
            struct engine *e = k == 0 ? a : b;
            ok(stage_next(e, d, micro, ranks_slot(&e->shape, micro)));
        }
    }
    for (int micro = 0; micro < 6; micro++) {
        const int slot = ranks_slot(&b->shape, micro);
        assert_int_equal(slot / 2, micro % 3);
        assert_int_equal(ranks_micro(&b->shape, slot), micro);
        assert_false(used[slot]);
        used[slot] = true;
        assert_memory_equal(b->mem.batches + (size_t)slot * bytes,
                            a->mem.batches + (size_t)micro * bytes, bytes);
    }
    batches_close(d);
    engine_destroy(a);
    engine_destroy(b);
}

/* Train; `empty` counts last micro-batches of a rank that have no target. */
static struct step_result train_on(struct engine *e, const char *tokens, int *empty)
{
    struct batch_source *d = open_tokens(tokens, &e->o, false);
    struct step_result r;
    for (int i = 0; i < STEPS; i++) {
        ok(engine_step(e, d, &r));
        for (int slot = e->shape.micro - 1; slot < e->shape.slots; slot += e->shape.micro)
            *empty += e->chunks_of[slot] == 0;
    }
    batches_close(d);
    return r;
}

static struct step_result train(struct engine *e)
{
    int unused = 0;
    return train_on(e, "masked.bin", &unused);
}

/* Only the order of sums differs: losses and norm agree to rounding, for any number of shards. */
static void ranks_change_rounding_alone(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks = ranks < 4 ? ranks + 1 : 3 * ranks) {
        struct train_options o = shared(ranks, 12 / ranks), plain = shared(0, 1);
        plain.grad_accum = 12;
        struct engine *a = open_engine("qwen3", "teacher", &o);
        struct engine *b = open_engine("qwen3", "teacher", &plain);
        const struct step_result x = train(a), y = train(b);
        assert_int_equal(x.valid_tokens, y.valid_tokens);
        assert_true(fabs(x.loss - y.loss) < 1e-6 * y.loss);
        assert_true(fabs(x.grad_norm - y.grad_norm) < 1e-5 * y.grad_norm);
        if (ranks == 1)
            assert_memory_equal(a->mem.master, b->mem.master, gradient_bytes(a));
        engine_destroy(a);
        engine_destroy(b);
    }
}

/* The chunks of logits are those of a single rank. */
static void shapes_are_those_of_a_rank(void **state)
{
    (void)state;
    struct model_config c = qwen3;
    struct net n = {.T = NJ_LP};
    struct lora lora = {0};
    struct train_options o = small_options, all = shared(4, 1);
    struct shape a, b;
    struct plan alone, shared_out;
    c.hidden_size = GLU(&c).ffn_size = 1024;
    o.batch_size = all.batch_size = 4;
    o.seq_len = all.seq_len = 1024;
    o.head_chunk = all.head_chunk = 0;
    n.c = c;
    ok(net_layout(&n, &o.lora, NULL, &lora));
    plan_shape(&n, NULL, &o, &a);
    plan_shape(&n, NULL, &all, &b);
    assert_int_equal(a.chunk, 4096);
    assert_int_equal(b.chunk, a.chunk);
    ok(plan_make(&c, NULL, &o, &alone));
    ok(plan_make(&c, NULL, &all, &shared_out));
    assert_int_equal(region_bytes(&alone, "head.logits"), 0);
    assert_int_equal(region_bytes(&shared_out, "head.logits"), 0);
    net_free(&n);
    lora_free(&lora);
}

/* A process has a shard of master weights and moments; the gradients of other ranks arrive in the memory of
 * activations. */
static void a_process_plans_its_shard(void **state)
{
    (void)state;
    static const char *const shards[] = {"student.master", "student.moment1", "student.moment2"};
    struct model_config c = qwen3;
    struct train_options o = shared(4, 1);
    struct plan alone, apart;
    c.hidden_size = GLU(&c).ffn_size = 1024;
    c.layers = 9; /* eight groups, the last with two layers */
    o.dtype = NJ_LP;
    o.batch_size = 16;
    o.seq_len = 1024;
    ok(plan_make(&c, NULL, &o, &alone));
    o.rank = 3;
    ok(plan_make(&c, NULL, &o, &apart));
    for (int i = 0; i < 3; i++) {
        const size_t whole = region_bytes(&alone, shards[i]),
                     held = region_bytes(&apart, shards[i]);
        assert_true(held >= whole / 4 && held < whole / 4 + 1024);
    }
    assert_int_equal(region_bytes(&apart, "student.gradients.received"), 0);
    const size_t layer = (size_t)(6 * 64 + 128 + 3 * 1024) * 1024 * sizeof(float);
    assert_int_equal(region_bytes(&apart, "student.gradients.early"), 2 * layer);
    assert_int_equal(region_bytes(&alone, "student.gradients.early"), SIZE_MAX);
    assert_int_equal(region_bytes(&apart, "student.gradients.sum"), SIZE_MAX);
    assert_int_equal(region_bytes(&alone, "student.gradients.received"), SIZE_MAX);
    assert_int_equal(region_bytes(&alone, "student.gradients.sum"),
                     region_bytes(&alone, "student.gradients"));
}

/* Every element is in one shard, even with more shards than elements need. */
static void shards_hold_everything(void **state)
{
    (void)state;
    for (int64_t count = 1; count < 3000; count += 61)
        for (int ranks = 1; ranks < 40; ranks++) {
            const int64_t shard = pieces_shard(count, ranks);
            assert_true(shard * ranks >= count && shard % 64 == 0);
            assert_true(shard - 64 < (count + ranks - 1) / ranks);
        }
}

/* Check that every element is in one shard of one piece, and that no piece holds gradients that are finished after its
 * group. */
static void check_pieces(const struct params *p, int layers, int ranks)
{
    struct pieces s;
    int64_t at = 0, decayed = 0;
    pieces_cut(p, layers, ranks, &s);
    assert_int_equal(s.groups, ranks == 1 ? 0 : layers < PIECE_GROUPS ? layers : PIECE_GROUPS);
    for (int i = 0; i < s.count; i++)
        for (int rank = 0; rank < ranks; rank++) {
            const struct shard held = pieces_held(&s, p, i, rank);
            assert_true(held.count == 0 || held.first == at);
            assert_true(held.each % 64 == 0 && held.each * ranks == pieces_elements(&s, i));
            assert_int_equal(held.kept * ranks, s.first[i]);
            at += held.count;
            decayed += held.decayed;
        }
    assert_int_equal(at, p->count);
    assert_int_equal(decayed, p->decayed);
    assert_int_equal(s.layer[0], 0);
    assert_int_equal(s.layer[s.groups], s.groups > 0 ? layers : 0);
    assert_true(s.groups == 0 || s.layer[1] == 1);
    for (int i = 0; i < s.count; i++)
        assert_true(!pieces_overlapped(&s, i) ||
                    pieces_elements(&s, i) <= pieces_largest_group(&s));
    for (int g = 0; g < s.groups; g++)
        assert_true(pieces_overlapped(&s, 1 + g));
    assert_false(pieces_overlapped(&s, 0));
    for (int g = 0; g < s.groups; g++) {
        const int64_t first = params_layer(p, s.layer[g]);
        assert_true(s.layer[g + 1] > s.layer[g]);
        assert_true(s.first[1 + g] < first + 64 * ranks);
        assert_true(s.first[1 + g] >= first || s.first[1 + g] == s.first[1 + s.groups]);
    }
    const int64_t end = params_layer(p, layers);
    assert_true(s.groups == 0 || s.first[1 + s.groups] <= end);
    assert_true(s.groups == 0 || s.first[1 + s.groups] > end - 64 * ranks);
}

static void pieces_hold_everything(void **state)
{
    (void)state;
    for (int layers = 1; layers < 30; layers += 7)
        for (int tied = 0; tied < 2; tied++) {
            struct model_config c = qwen3;
            struct params p;
            c.layers = layers;
            c.tied = tied;
            c.vocab_size = 40000; /* a head is larger than a group */
            ok(params_layout(&c, PARAMS_ALL, &p));
            for (int ranks = 1; ranks < 40; ranks++)
                check_pieces(&p, layers, ranks);
            params_free(&p);
        }
}

/* ---- ranks that are processes: this program once more, with arguments ---- */

/* Cases by number: what is trained, and in what state. */
enum { EMPTY_CASE = 4, CASES };
static struct train_options case_options(int number)
{
    struct train_options o = shared(number == 3 ? RANKS_MOST : 2 + number % 2, 1 + number % 2);
    if (number == EMPTY_CASE)
        o = shared(3, 2);
    if (number == 1)
        o.optimizer_state = STATE_BF16;
    if (number == 2) {
        o.lora = (struct lora_config){.rank = 2, .alpha = 4, .dropout = 0.1};
        ok(lora_targets_add(&o.lora, "all-linear"));
    }
    return o;
}

/* Write the tokens of masked.bin, of which three rows of four have no target. */
static void write_sparse(void)
{
    enum { HEAD = 1024, MASK = HEAD + TOKENS * 4, ROW = 16 };
    unsigned char all[MASK + TOKENS / 8 + 1];
    FILE *f = fopen(path_of("masked.bin"), "rb");
    assert_non_null(f);
    assert_int_equal(fread(all, 1, sizeof all, f), sizeof all);
    fclose(f);
    for (int i = 0; i < TOKENS - 1; i++)
        if (i / ROW % 4 != 0)
            all[MASK + i / 8] &= (unsigned char)~(1 << i % 8);
    f = fopen(path_of("sparse.bin"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(all, 1, sizeof all, f), sizeof all);
    assert_int_equal(fclose(f), 0);
}

/* Write the state, which rank 0 saves; the other ranks only take part, and write their weights. */
static bool write_state(struct engine *e, int rank, FILE *out)
{
    const size_t bytes = (size_t)engine_trained(e)->count * dtype_bytes(e->o.dtype);
    char dir[256], path[288], block[4096];
    bool written = fwrite(e->mem.trained, 1, bytes, out) == bytes;
    if (rank > 0)
        return written && engine_collect_state(e) == 0;
    snprintf(dir, sizeof dir, "%s/state-%ld", base, (long)getpid());
    snprintf(path, sizeof path, "%s/state.bin", dir);
    ok(mkdir(dir, 0700) != 0 && errno != EEXIST ? NJ_E_IO : 0);
    ok(engine_save_state(e, dir, 1, &(struct data_state){0}));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (size_t n; written && (n = fread(block, 1, sizeof block, f)) > 0;)
        written = fwrite(block, 1, n, out) == n;
    fclose(f);
    return written;
}

/* Write evaluations of data whose batches are no multiple of the ranks, with several numbers of batches, the least
 * smaller than the ranks. */
static bool write_evaluations(struct engine *e, FILE *out)
{
    struct batch_source *d = open_tokens("masked.bin", &e->o, true);
    bool written = true;
    for (e->o.eval_batches = 0; written && e->o.eval_batches < RANKS_MOST; e->o.eval_batches++) {
        struct eval_result r;
        ok(engine_eval(e, d, &r));
        written = fwrite(&r, sizeof r, 1, out) == 1;
    }
    e->o.eval_batches = 0;
    batches_close(d);
    return written;
}

/* Train, and write the results on which all ranks must agree. A teacher that runs over several micro-batches at once
 * has no empty ones. */
static int train_case(int number, const struct train_options *o, FILE *out)
{
    const bool some_empty = number == EMPTY_CASE;
    struct engine *e =
        some_empty ? open_engine("qwen3", NULL, o) : open_engine("qwen2", "teacher", o);
    const bool evaluated = write_evaluations(e, out);
    int empty = 0;
    const struct step_result r = train_on(e, some_empty ? "sparse.bin" : "masked.bin", &empty);
    if (o->rank == RANKS_VIRTUAL)
        assert_true(!some_empty || (empty > 0 && empty < STEPS * o->ranks));
    const double results[] = {r.loss, r.kd_loss, r.agreement, r.grad_norm, (double)r.valid_tokens};
    bool written = evaluated && fwrite(results, sizeof results, 1, out) == 1;
    written = written && write_state(e, o->rank, out);
    engine_destroy(e);
    return fclose(out) == 0 && written ? 0 : 1;
}

static int number_of(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* Run as a rank. Arguments: case, rank, folder, identifier in hexadecimal. */
static int run_as_rank(char **argument)
{
    struct train_options o = case_options(number_of(argument[1]));
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    unsigned char id[NJ_COMM_ID_BYTES];
    snprintf(base, sizeof base, "%s", argument[3]);
    for (int i = 0; i < NJ_COMM_ID_BYTES; i++) {
        const char digits[] = {argument[4][2 * i], argument[4][2 * i + 1], '\0'};
        id[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    o.rank = number_of(argument[2]);
    if (nj_context_create(&ctx, &options) != 0 ||
        nj_comm_create(ctx, id, o.rank, o.ranks, &o.comm) != 0)
        return 1;
    char path[256];
    snprintf(path, sizeof path, "%s/rank-%d", base, o.rank);
    const int rc = train_case(number_of(argument[1]), &o, fopen(path, "wb"));
    nj_comm_destroy(o.comm);
    nj_context_destroy(ctx);
    return rc;
}

static pid_t start_rank(int number, int rank, char *id)
{
    char numbers[2][16];
    pid_t pid;
    snprintf(numbers[0], sizeof numbers[0], "%d", number);
    snprintf(numbers[1], sizeof numbers[1], "%d", rank);
    char *const arguments[] = {"test_ranks", numbers[0], numbers[1], base, id, NULL};
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    return pid;
}

static size_t read_file(const char *name, char *out, size_t most)
{
    FILE *f = fopen(path_of(name), "rb");
    assert_non_null(f);
    const size_t bytes = fread(out, 1, most, f);
    assert_true(bytes > 0 && bytes < most);
    fclose(f);
    return bytes;
}

static void check_case(int number)
{
    enum { MOST = 4 << 20 };
    const struct train_options o = case_options(number);
    unsigned char id[NJ_COMM_ID_BYTES];
    char hex[2 * NJ_COMM_ID_BYTES + 1];
    pid_t pid[RANKS_MOST];
    assert_int_equal(nj_comm_id(ctx, id), 0);
    for (int i = 0; i < NJ_COMM_ID_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    for (int rank = 0; rank < o.ranks; rank++)
        pid[rank] = start_rank(number, rank, hex);
    for (int rank = 0; rank < o.ranks; rank++) {
        int status;
        assert_int_equal(waitpid(pid[rank], &status, 0), pid[rank]);
        assert_int_equal(status, 0);
    }
    char *want = malloc(MOST), *got = malloc(MOST);
    assert_true(want && got);
    assert_int_equal(train_case(number, &o, fopen(path_of("here"), "wb")), 0);
    const size_t bytes = read_file("here", want, MOST);
    for (int rank = 0; rank < o.ranks; rank++) {
        char name[16];
        snprintf(name, sizeof name, "rank-%d", rank);
        const size_t its = read_file(name, got, MOST);
        assert_true(rank == 0 ? its == bytes : its < bytes);
        assert_memory_equal(got, want, its);
    }
    free(want);
    free(got);
}

static void processes_give_the_same_bits(void **state)
{
    (void)state;
    for (int number = 0; number < EMPTY_CASE; number++)
        check_case(number);
}

/* An empty last micro-batch computes nothing, so pieces are exchanged during the micro-batch before. */
static void a_last_micro_batch_may_be_empty(void **state)
{
    (void)state;
    write_sparse();
    check_case(EMPTY_CASE);
}

static int count_call(void *calls)
{
    ++*(int *)calls;
    return 0;
}
static int refuse(void *calls)
{
    ++*(int *)calls;
    return NJ_E_IO;
}
static void read_nothing(void *calls, double bytes, double total)
{
    (void)bytes, (void)total;
    assert_int_equal(*(int *)calls, 1);
}

/* The choice is reported before models are read: another rank may wait for it. */
static void products_are_told_once_they_are_chosen(void **state)
{
    int calls = 0;
    struct engine *e;
    struct train_options o = shared(2, 1);
    (void)state;
    o.prepared = count_call;
    o.loaded = read_nothing;
    o.prepared_user = o.loaded_user = &calls;
    engine_destroy(open_engine("qwen2", NULL, &o));
    assert_int_equal(calls, 1);
    o.prepared = refuse;
    assert_int_equal(engine_create(ctx, path_of("qwen2"), NULL, &o, NULL, NULL, &e), NJ_E_IO);
    assert_int_equal(calls, 2);
}

static void a_tensor_that_breaks_is_named(void **state)
{
    (void)state;
    const struct train_options o = shared(2, 1);
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct batch_source *d = open_tokens("masked.bin", &o, false);
    struct step_result r;
    e->mem.master[e->student.p.first[0]] = NAN;
    assert_int_equal(engine_step(e, d, &r), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "weight of the student"));
    batches_close(d);
    engine_destroy(e);
}

static void uneven_shares_are_refused(void **state)
{
    (void)state;
    struct train_options o = shared(4, 1);
    struct plan p;
    o.grad_accum = 6;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
    assert_non_null(strstr(fail_text(), "gradient accumulation is 6 and 4 ranks"));
    o.ranks = o.grad_accum = NJ_COMM_RANKS_MOST + 1;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
    o.ranks = -1;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
}

int main(int count, char **argument)
{
    if (count == 5)
        return run_as_rank(argument);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_added_in_order),
        cmocka_unit_test(micro_batches_are_the_same),
        cmocka_unit_test(ranks_change_rounding_alone),
        cmocka_unit_test(shards_hold_everything),
        cmocka_unit_test(pieces_hold_everything),
        cmocka_unit_test(shapes_are_those_of_a_rank),
        cmocka_unit_test(a_process_plans_its_shard),
        cmocka_unit_test(processes_give_the_same_bits),
        cmocka_unit_test(a_last_micro_batch_may_be_empty),
        cmocka_unit_test(products_are_told_once_they_are_chosen),
        cmocka_unit_test(a_tensor_that_breaks_is_named),
        cmocka_unit_test(uneven_shares_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
