/* SPDX-License-Identifier: Apache-2.0
 *
 * test_packing.c: documents to rows: no token is lost, no document that fits is cut, no row mixes documents, and the
 * reported padding is correct.
 */
#include "batch/data.h"
#include "unit.h"

#include <math.h>

/* Every token of the made-up texts has its own id, from FIRST on, except the token that ends a text: an id gives its
 * position in the stream. */
enum { END = 256, FIRST = 1000, MOST = 20000, VOCAB = FIRST + MOST, X = IGNORED };

static const struct tokenizer ids_tokenizer = {.kind = "token files", .end_of_text = END};
static const enum packing kinds[] = {PACKING_WRAPPED, PACKING_BFD, PACKING_NONE};

/* The stream, and for each of its tokens the document and the place in it. */
static struct {
    uint16_t id[MOST];
    int document[MOST], place[MOST], length[MOST]; /* length of the document that contains it */
    int tokens, split;                             /* split: first token of the second file */
} text;

/* Write documents of given lengths. The last one of each file ends with the file, the others with END. */
static void write_documents(const int *length, int count, int first_file)
{
    int n = 0;
    for (int d = 0; d < count; d++)
        for (int k = 0; k < length[d]; k++, n++) {
            const bool ends = k == length[d] - 1 && d != first_file - 1 && d != count - 1;
            text.id[n] = (uint16_t)(ends ? END : FIRST + n);
            text.document[n] = d;
            text.place[n] = k;
            text.length[n] = length[d];
            text.split = d < first_file ? n + 1 : text.split;
        }
    text.tokens = n;
    assert_true(n <= MOST);
    write_bytes(at("packing-1.u16"), text.id, (size_t)text.split * 2);
    write_bytes(at("packing-2.u16"), text.id + text.split, (size_t)(n - text.split) * 2);
}

/* Write documents with lengths of all kinds: one token, about as many as a row holds, several rows. */
static void write_mixture(int S)
{
    int length[150];
    uint32_t random = 12345;
    for (int d = 0; d < 150; d++) {
        random = random * 1664525u + 1013904223u;
        length[d] = 1 + (int)(random >> 16) % (d % 5 == 0 ? 4 * S : S + 1);
    }
    length[3] = 1;
    length[4] = S;
    length[5] = S + 1;
    length[6] = S + 2;
    length[7] = 2 * S + 1;
    length[8] = 3 * S + 2;
    write_documents(length, 150, 70);
}

static struct data *open_text(enum packing kind, int S, int B, uint64_t seed, bool once)
{
    const char *paths[] = {at("packing-1.u16"), at("packing-2.u16")};
    const struct data_options o = {.paths = paths,
                                   .path_count = 2,
                                   .packing = kind,
                                   .seq_len = S,
                                   .batch_size = B,
                                   .vocab_size = VOCAB,
                                   .seed = seed,
                                   .once = once};
    struct data *d = NULL;
    check_ok(data_open(&o, &ids_tokenizer, &d), "packing");
    return d;
}

/* Check one row of whole documents and count its tokens in `seen`. Return how many it holds. */
static int check_row(const struct batch *b, enum packing kind, int *seen)
{
    int filled = 0, start = 0;
    for (int i = 0; i < b->S; i++) {
        const int t = b->ids[i] - FIRST;
        start = b->doc_start[i] == i ? i : start;
        assert_int_equal(b->doc_start[i], start);
        assert_int_equal(b->pos[i], i - start);
        /* padding: reaches to the end of the row, and is a separate document */
        if (b->target[i] == X) {
            assert_int_equal(b->ids[i], 0);
            assert_int_equal(start, filled);
            continue;
        }
        assert_int_equal(filled++, i);
        assert_in_range(t, 0, text.tokens - 2);
        seen[t]++;
        assert_int_equal(b->target[i], text.id[t + 1]);
        assert_int_equal(text.document[t], text.document[t + 1]);
        if (start == i) /* a document begins, or continues from a full row */
            assert_int_equal(text.place[t] % b->S, 0);
        else
            assert_int_equal(b->ids[i - 1], b->ids[i] - 1);
        if (kind == PACKING_NONE)
            assert_int_equal(start, 0);
    }
    return filled;
}

static void packing_loses_and_tears_nothing(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 7, 16, 33, 64};
    static int seen[MOST];
    for (size_t k = 0; k < 6; k++) {
        const int S = sizes[k];
        write_mixture(S);
        for (enum packing kind = PACKING_BFD; kind <= PACKING_NONE; kind++) {
            struct data *d = open_text(kind, S, 1, 3, false);
            int64_t filled = 0;
            for (int epoch = 1; epoch <= 2; epoch++) {
                for (int64_t r = 0; r < data_windows(d); r++) {
                    struct batch b;
                    assert_int_equal(batches_next(data_batches(d), &b), 0);
                    const int count = check_row(&b, kind, seen);
                    assert_true(count > 0 && count == b.valid);
                    filled += count;
                }
                /* All but the last token of each document, once per epoch. */
                for (int t = 0; t < text.tokens; t++)
                    if (seen[t] != (text.place[t] < text.length[t] - 1 ? epoch : 0))
                        fail_msg("S %d, packing %d: token %d came %d times in %d epochs", S, kind,
                                 t, seen[t], epoch);
            }
            const double all = 2.0 * S * (double)data_windows(d);
            assert_true(fabs(data_padding(d) - (1 - (double)filled / all)) < 1e-12);
            memset(seen, 0, sizeof seen);
            data_close(d);
        }
    }
}

/* Inputs of 2, 7, 3, 6 and 2 tokens fill two rows of 10 if each goes where it leaves the least room; choosing the
 * roomiest row, or the next one, would need three. */
static void the_best_fit_is_taken(void **state)
{
    (void)state;
    static const int length[] = {3, 8, 4, 7, 3};
    write_documents(length, 5, 4);
    struct data *d = open_text(PACKING_BFD, 10, 3, 0, true);
    static const int32_t ids[2][10] = {{0, 1, 15, 16, 17, 18, 19, 20, 22, 23},
                                       {3, 4, 5, 6, 7, 8, 9, 11, 12, 13}};
    static const int32_t starts[2][10] = {{0, 0, 2, 2, 2, 2, 2, 2, 8, 8},
                                          {0, 0, 0, 0, 0, 0, 0, 7, 7, 7}};
    struct batch b;
    assert_int_equal(data_windows(d), 2);
    assert_true(data_padding(d) == 0);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    assert_int_equal(b.valid, 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(b.ids[i], FIRST + ids[i / 10][i % 10]);
        assert_int_equal(b.doc_start[i], starts[i / 10][i % 10]);
    }
    for (int i = 0; i < 10; i++) /* no third row: padding, as one document */
        assert_true(b.target[20 + i] == X && b.doc_start[20 + i] == 0 && b.pos[20 + i] == i);
    assert_int_equal(batches_next(data_batches(d), &b), 1);
    data_close(d);
}

static void packed_rows_are_filled(void **state)
{
    (void)state;
    enum { S = 128, DOCUMENTS = 280 };
    int length[DOCUMENTS];
    uint32_t random = 99;
    int64_t inputs = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        random = random * 1664525u + 1013904223u;
        length[i] = 2 + (int)(random >> 16) % S;
        inputs += length[i] - 1;
    }
    write_documents(length, DOCUMENTS, 100);
    struct data *bfd = open_text(PACKING_BFD, S, 1, 1, false);
    struct data *none = open_text(PACKING_NONE, S, 1, 1, false);
    assert_int_equal(data_windows(none), DOCUMENTS);
    assert_true(fabs(data_padding(none) - (1 - (double)inputs / (S * DOCUMENTS))) < 1e-12);
    assert_true(data_padding(none) > 0.4);
    assert_true(data_padding(bfd) < 0.03);
    assert_true(data_windows(bfd) >= (inputs + S - 1) / S);
    assert_int_equal(data_tokens(bfd), data_tokens(none));
    assert_true(data_hash(bfd) == data_hash(none));
    data_close(bfd);
    data_close(none);
}

/* Each target of the text counts once with `once`, whatever the rows, masks and padding. */
static void one_pass_has_the_same_targets(void **state)
{
    (void)state;
    struct tokenizer bytes;
    make_folder("once");
    check_ok(tokenizer_open(at("once"), &bytes), "bytes");
    write_text(at("once/a.jsonl"), "{\"prompt\": \"0123456789\", \"completion\": \"abcd\"}\n"
                                   "{\"text\": \"xyz\"}\n{\"text\": \"\"}\n");
    write_text(at("once/b.txt"), "a longer one, of several rows");
    for (int S = 1; S <= 40; S += 3)
        for (size_t k = 0; k < 3; k++) {
            const char *paths[] = {at("once")};
            const struct data_options o = {.paths = paths,
                                           .path_count = 1,
                                           .packing = kinds[k],
                                           .seq_len = S,
                                           .batch_size = 3,
                                           .vocab_size = 257,
                                           .once = true};
            struct data *d;
            struct batch b;
            int64_t targets = 0;
            check_ok(data_open(&o, &bytes, &d), "once");
            while (batches_next(data_batches(d), &b) == 0)
                targets += b.valid;
            /* "abcd" and its end, "yz" and its end, and all of the last one but one token */
            assert_int_equal(targets, 5 + 3 + 29);
            data_close(d);
        }
    tokenizer_close(&bytes);
}

/* The same seed gives the same rows however they are grouped, and a position resumes exactly. */
static void the_order_of_packed_rows_is_the_seeds(void **state)
{
    (void)state;
    enum { S = 16, ROWS = 400 };
    static int32_t rows[2][ROWS][4 * S];
    write_mixture(S);
    for (size_t k = 0; k < 3; k++) {
        for (int seed = 0; seed < 2; seed++) {
            struct data *d = open_text(kinds[k], S, 1, 7 + (uint64_t)seed, false);
            for (int r = 0; r < ROWS; r++) {
                struct batch b;
                assert_int_equal(batches_next(data_batches(d), &b), 0);
                memcpy(rows[seed][r], b.ids, 4 * S * sizeof(int32_t)); /* all four arrays */
            }
            data_close(d);
        }
        assert_memory_not_equal(rows[0], rows[1], sizeof rows[0]);
        struct data *d = open_text(kinds[k], S, 3, 7, false);
        assert_true(data_windows(d) < ROWS);
        for (int r = 0; r + 3 <= ROWS; r += 3) {
            struct data_state here;
            struct batch b;
            batches_tell(data_batches(d), &here);
            /* seek elsewhere and back */
            batches_seek(data_batches(d), &(struct data_state){5, 1});
            assert_int_equal(batches_next(data_batches(d), &b), 0);
            batches_seek(data_batches(d), &here);
            assert_int_equal(batches_next(data_batches(d), &b), 0);
            const int32_t *arrays[] = {b.ids, b.target, b.pos, b.doc_start};
            for (int i = 0; i < 3; i++)
                for (int a = 0; a < 4; a++)
                    assert_memory_equal(arrays[a] + i * S, rows[0][r + i] + a * S,
                                        S * sizeof(int32_t));
        }
        data_close(d);
    }
}

static void rows_with_nothing_to_predict_are_refused(void **state)
{
    (void)state;
    static const int length[] = {1, 1, 1, 1};
    write_documents(length, 4, 2);
    for (enum packing kind = PACKING_BFD; kind <= PACKING_NONE; kind++) {
        const char *paths[] = {at("packing-1.u16"), at("packing-2.u16")};
        const struct data_options o = {.paths = paths,
                                       .path_count = 2,
                                       .packing = kind,
                                       .seq_len = 4,
                                       .batch_size = 1,
                                       .vocab_size = VOCAB};
        struct data *d;
        check_refused(data_open(&o, &ids_tokenizer, &d), NJ_E_FORMAT,
                      "packing-1.u16 and the others: no document has two tokens", "ends alone");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_loses_and_tears_nothing),
        cmocka_unit_test(the_best_fit_is_taken),
        cmocka_unit_test(packed_rows_are_filled),
        cmocka_unit_test(one_pass_has_the_same_targets),
        cmocka_unit_test(the_order_of_packed_rows_is_the_seeds),
        cmocka_unit_test(rows_with_nothing_to_predict_are_refused),
    };
    return cmocka_run_group_tests_name("packing", tests, scratch_begin, scratch_end);
}
