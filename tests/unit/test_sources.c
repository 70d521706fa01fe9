/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sources.c: sources with weights: their shares of every epoch, the rows that are drawn, order and resuming.
 */
#include "batch/data.h"
#include "unit.h"

#include <math.h>

/* Row r of source s begins with the id 1000 s + S r; the ids of a source are consecutive. */
enum { S = 2, VOCAB = 20000, ROWS_MOST = 450 };

static const struct tokenizer ids_tokenizer = {.kind = "token files", .end_of_text = -1};

static const char *write_source(int source, int rows)
{
    uint16_t ids[S * ROWS_MOST + 1];
    char name[32];
    snprintf(name, sizeof name, "source-%d.u16", source);
    for (int i = 0; i <= S * rows; i++)
        ids[i] = (uint16_t)(1000 * source + i);
    write_bytes(at(name), ids, ((size_t)S * (size_t)rows + 1) * 2);
    return strdup(at(name));
}

/* Open sources of so many rows together, numbered from 0. */
static struct data *open_sources(const int *rows, const double *weights, size_t count, int B,
                                 uint64_t seed)
{
    const char *paths[8];
    for (size_t i = 0; i < count; i++)
        paths[i] = write_source((int)i, rows[i]);
    const struct data_options o = {.paths = paths,
                                   .path_count = count,
                                   .weights = weights,
                                   .seq_len = S,
                                   .batch_size = B,
                                   .vocab_size = VOCAB,
                                   .seed = seed};
    struct data *d = NULL;
    check_ok(data_open(&o, &ids_tokenizer, &d), "sources");
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)paths[i]);
    return d;
}

/* Return the source of the next row, and its number there; the row must be whole. */
static int next_row(struct data *d, int *row)
{
    struct batch b;
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    for (int i = 0; i < S; i++)
        assert_int_equal(b.target[i], b.ids[0] + i + 1);
    assert_int_equal(b.ids[0] % 1000 % S, 0);
    *row = b.ids[0] % 1000 / S;
    return b.ids[0] / 1000;
}

static void shares_are_exact(void **state)
{
    (void)state;
    static const int rows[] = {40, 10, 150};
    static const double weights[] = {0.7, 0.2, 0.1};
    static const int64_t draws[] = {140, 40, 20}; /* 200 in all */
    struct data *d = open_sources(rows, weights, 3, 1, 11);
    assert_int_equal(data_windows(d), 200);
    assert_int_equal(data_tokens(d), 2 * 200 + 3);
    assert_int_equal(data_sources(d), 3);
    for (size_t i = 0; i < 3; i++) {
        struct data_source s;
        data_source(d, i, &s);
        assert_non_null(strstr(s.name, "source-"));
        assert_true(fabs(s.weight - weights[i]) < 1e-12);
        assert_int_equal(s.tokens, S * rows[i] + 1);
        assert_int_equal(s.rows, rows[i]);
        assert_int_equal(s.draws, draws[i]);
    }
    int times[3][150] = {{0}};
    for (int epoch = 1; epoch <= 9; epoch++) {
        int from[3] = {0}, row, changes = 0, last = -1;
        for (int i = 0; i < 200; i++) {
            const int source = next_row(d, &row);
            assert_in_range(row, 0, rows[source] - 1);
            from[source]++;
            times[source][row]++;
            changes += source != last;
            last = source;
        }
        assert_true(changes > 40); /* mixed, not one after the other */
        for (int s = 0; s < 3; s++) {
            assert_int_equal(from[s], draws[s]);
            /* No row is repeated before all others have come. */
            const int64_t least = epoch * draws[s] / rows[s];
            for (int r = 0; r < rows[s]; r++)
                assert_in_range(times[s][r], least, least + (epoch * draws[s] % rows[s] > 0));
        }
    }
    data_close(d);
}

/* Find the rows of source 0 that an epoch of the run shows, as a set. */
static void rows_of_epoch(struct data *d, uint64_t epoch, int64_t total, bool *shown)
{
    int row;
    batches_seek(data_batches(d), &(struct data_state){epoch, 0});
    memset(shown, 0, 100);
    for (int64_t i = 0; i < total; i++)
        if (next_row(d, &row) == 0)
            shown[row] = true;
}

/* A light source gives different rows in each epoch, drawn anew in each pass over it. */
static void light_sources_are_spread(void **state)
{
    (void)state;
    static const int rows[] = {100, 25};
    static const double weights[] = {1, 4}; /* 25 of 125 rows: a pass takes 4 epochs */
    bool shown[8][100], again[100];
    struct data *d = open_sources(rows, weights, 2, 1, 3);
    for (uint64_t e = 0; e < 8; e++)
        rows_of_epoch(d, e, 125, shown[e]);
    for (int e = 0; e < 8; e++) {
        int first = 0, other_pass = 0, count = 0;
        for (int r = 0; r < 100; r++) {
            count += shown[e][r];
            first += shown[e][r] && r / 25 == e % 4; /* in the order of the file */
            other_pass += shown[e][r] && shown[(e + 4) % 8][r];
            for (int f = e / 4 * 4; f < e; f++)
                assert_false(shown[e][r] && shown[f][r]);
        }
        assert_int_equal(count, 25);
        assert_true(first < 15 && other_pass < 15);
    }
    data_close(d);
    d = open_sources(rows, weights, 2, 1, 4); /* another seed: other rows */
    rows_of_epoch(d, 0, 125, again);
    assert_memory_not_equal(again, shown[0], sizeof again);
    data_close(d);
}

static void check_same(struct data *a, struct data *b, int rows)
{
    for (int i = 0; i < rows; i++) {
        int of_a, of_b;
        assert_int_equal(next_row(a, &of_a), next_row(b, &of_b));
        assert_int_equal(of_a, of_b);
    }
    data_close(a);
    data_close(b);
}

static void weights_are_relative(void **state)
{
    (void)state;
    static const int rows[] = {30, 50};
    static const double small[] = {0.25, 0.75}, large[] = {100, 300}, alone[] = {5, 0}, one[] = {9};
    struct data_source s;
    check_same(open_sources(rows, small, 2, 1, 5), open_sources(rows, large, 2, 1, 5), 400);
    /* Weight 0 leaves a source out; a source alone is a stream without weights. */
    struct data *d = open_sources(rows, alone, 2, 1, 5);
    assert_int_equal(data_sources(d), 1);
    data_source(d, 0, &s);
    assert_true(s.weight == 1 && s.draws == 30);
    check_same(d, open_sources(rows, one, 1, 1, 5), 100);
    check_same(open_sources(rows, one, 1, 1, 5), open_sources(rows, NULL, 1, 1, 5), 100);
    d = open_sources(rows, NULL, 2, 1, 5);
    struct data *e = open_sources(rows, small, 2, 1, 5);
    assert_int_equal(data_sources(d), 0);
    assert_true(data_hash(d) != data_hash(e)); /* one stream, two sources */
    data_close(d);
    data_close(e);
}

/* Whatever the weights, the sum is the epoch, no source gets nothing, and each gets its share to within a row, unless
 * another was raised to one. */
static void rounding_keeps_the_sum(void **state)
{
    (void)state;
    uint32_t random = 1;
    int lifted = 0;
    for (int round = 0; round < 60; round++) {
        int rows[8];
        double weights[8], sum = 0, least = 1e9;
        const size_t count = 2 + (size_t)round % 7;
        int64_t total = 0, given = 0;
        for (size_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            rows[i] = 1 + (int)(random >> 16) % (round < 20 ? 3 : 60);
            weights[i] = round % 3 == 0 && i > 0 ? 1e-9 : (double)(random >> 20) + 300;
            total += rows[i];
            sum += weights[i];
        }
        for (size_t i = 0; i < count; i++)
            least = fmin(least, weights[i] / sum * (double)total);
        lifted += least < 1;
        struct data *d = open_sources(rows, weights, count, 1, 1);
        for (size_t i = 0; i < count; i++) {
            struct data_source s;
            data_source(d, i, &s);
            given += s.draws;
            const double due = weights[i] / sum * (double)total;
            assert_true(due < 1 ? s.draws == 1 : s.draws >= 1);
            assert_true(least < 1 || fabs((double)s.draws - due) < 1);
        }
        assert_int_equal(given, total);
        assert_int_equal(data_windows(d), total);
        data_close(d);
    }
    assert_in_range(lifted, 20, 40); /* both cases occurred */
    /* 1.5, 1.5 and 3 of 6: the half rows go to one of the two. */
    struct data *d = open_sources((const int[]){1, 2, 3}, (const double[]){1, 1, 2}, 3, 1, 1);
    struct data_source s[3];
    for (size_t i = 0; i < 3; i++)
        data_source(d, i, &s[i]);
    assert_int_equal(s[0].draws + s[1].draws, 3);
    assert_int_equal(s[2].draws, 3);
    data_close(d);
}

static void every_position_resumes(void **state)
{
    (void)state;
    enum { B = 3, STEPS = 40 };
    static const int rows[] = {12, 7, 20};
    static const double weights[] = {0.2, 0.5, 0.3};
    static int32_t ids[STEPS][B * S];
    static struct data_state here[STEPS];
    struct batch b;
    struct data *d = open_sources(rows, weights, 3, B, 21);
    for (int i = 0; i < STEPS; i++) {
        batches_tell(data_batches(d), &here[i]);
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        memcpy(ids[i], b.ids, sizeof ids[i]);
    }
    assert_int_equal(here[STEPS - 1].epoch, (STEPS - 1) * B / 39);
    data_close(d);
    d = open_sources(rows, weights, 3, B, 21);
    for (int i = STEPS - 1; i >= 0; i--) {
        batches_seek(data_batches(d), &here[i]);
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_memory_equal(b.ids, ids[i], sizeof ids[i]);
    }
    data_close(d);
    d = open_sources(rows, weights, 3, 1, 21); /* grouping does not matter */
    for (int i = 0; i < STEPS * B; i++) {
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_memory_equal(b.ids, ids[i / B] + i % B * S, S * sizeof(int32_t));
    }
    data_close(d);
}

/* Without a seed rows keep their order: source by source, each continuing where it stopped. */
static void seed_zero_keeps_the_order(void **state)
{
    (void)state;
    static const int rows[] = {4, 2};
    static const double weights[] = {1, 1}; /* 3 of 6 each */
    static const int want[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 0},
                                  {0, 3}, {0, 0}, {0, 1}, {1, 1}, {1, 0}, {1, 1}};
    struct data *d = open_sources(rows, weights, 2, 1, 0);
    for (int i = 0; i < 12; i++) {
        int row;
        assert_int_equal(next_row(d, &row), want[i][0]);
        assert_int_equal(row, want[i][1]);
    }
    data_close(d);
}

/* Each source is packed separately, and the reported padding is that of an epoch as it is drawn. */
static void sources_are_packed_apart(void **state)
{
    (void)state;
    /* Documents of 3 tokens, each ended by its file: one per row of 5, or, packed, two. */
    make_folder("short");
    make_folder("long");
    for (int i = 0; i < 6; i++) {
        char name[32];
        const uint16_t ids[4] = {(uint16_t)(2000 + 10 * i), (uint16_t)(2001 + 10 * i),
                                 (uint16_t)(2002 + 10 * i), (uint16_t)(2003 + 10 * i)};
        snprintf(name, sizeof name, "short/%d.u16", i);
        write_bytes(at(name), ids, 6);
        snprintf(name, sizeof name, "long/%d.u16", i);
        write_bytes(at(name), ids, 8);
    }
    const char *paths[] = {at("short"), at("long")};
    const double weights[] = {2, 1};
    struct data_options o = {.paths = paths,
                             .path_count = 2,
                             .weights = weights,
                             .packing = PACKING_BFD,
                             .seq_len = 5,
                             .batch_size = 1,
                             .vocab_size = VOCAB,
                             .seed = 1};
    struct data *d;
    struct batch b;
    check_ok(data_open(&o, &ids_tokenizer, &d), "packed");
    /* short: 3 rows of 2 + 2, 6 draws; long: 6 rows of 3, which 2 of the other would fill, 3 draws */
    assert_int_equal(data_windows(d), 9);
    int padding = 0;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_true(b.valid == 4 || b.valid == 3);
        padding += 5 - (int)b.valid;
    }
    assert_int_equal(padding, 6 * 1 + 3 * 2);
    assert_true(fabs(data_padding(d) - padding / 45.0) < 1e-12);
    data_close(d);

    const double bad[] = {0, 0};
    o.weights = bad;
    check_refused(data_open(&o, &ids_tokenizer, &d), NJ_E_ARG, "--data-weights: all are 0", "zero");
    o.weights = weights;
    o.packing = PACKING_WRAPPED;
    o.seq_len = 18;
    check_refused(data_open(&o, &ids_tokenizer, &d), NJ_E_FORMAT,
                  "short: 18 tokens, fewer than one sequence of 18 + 1", "a short source");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_exact),         cmocka_unit_test(light_sources_are_spread),
        cmocka_unit_test(weights_are_relative),     cmocka_unit_test(rounding_keeps_the_sum),
        cmocka_unit_test(every_position_resumes),   cmocka_unit_test(seed_zero_keeps_the_order),
        cmocka_unit_test(sources_are_packed_apart),
    };
    return cmocka_run_group_tests_name("sources", tests, scratch_begin, scratch_end);
}
