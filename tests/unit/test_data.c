/* SPDX-License-Identifier: Apache-2.0
 *
 * test_data.c: files to batches: documents, positions, targets, order, resuming, refusals.
 */
#include "batch/data.h"
#include "unit.h"

static struct tokenizer bytes_tokenizer;

static int begin(void **state)
{
    int rc = scratch_begin(state);
    return rc ? rc : tokenizer_open(scratch, &bytes_tokenizer);
}

static struct data_options options(const char *const *paths, size_t count, int seq_len, int batch)
{
    return (struct data_options){.paths = paths,
                                 .path_count = count,
                                 .seq_len = seq_len,
                                 .batch_size = batch,
                                 .vocab_size = 264};
}

/* Open one path with the byte tokenizer. */
static struct data *open_one(const char *path, int seq_len, int batch, uint64_t seed, bool once)
{
    struct data *d = NULL;
    const char *paths[] = {path};
    struct data_options o = options(paths, 1, seq_len, batch);
    o.seed = seed;
    o.once = once;
    check_ok(data_open(&o, &bytes_tokenizer, &d), path);
    return d;
}

static void check_row(const char *what, const int32_t *got, const int32_t *want, int n)
{
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s[%d] is %d, expected %d", what, i, got[i], want[i]);
}

enum { X = IGNORED, E = 256 };

static void documents_end_where_texts_end(void **state)
{
    (void)state;
    make_folder("docs");
    write_text(at("docs/1.txt"), "ab");
    write_text(at("docs/2.txt"), "cde");
    write_text(at("docs/3.txt"), ""); /* no document */
    write_text(at("docs/ignored.md"), "zzz");
    write_text(at("docs/.hidden.txt"), "zzz");
    /* a b E | c d e E: 7 tokens, one window of 6 + 1 */
    struct data *d = open_one(at("docs"), 6, 1, 0, false);
    struct batch b;
    assert_int_equal(data_tokens(d), 7);
    assert_int_equal(data_windows(d), 1);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("ids", b.ids, (const int32_t[]){'a', 'b', E, 'c', 'd', 'e'}, 6);
    check_row("target", b.target, (const int32_t[]){'b', E, X, 'd', 'e', E}, 6);
    check_row("pos", b.pos, (const int32_t[]){0, 1, 2, 0, 1, 2}, 6);
    check_row("doc_start", b.doc_start, (const int32_t[]){0, 0, 0, 3, 3, 3}, 6);
    assert_int_equal(b.valid, 5);
    data_close(d);
}

static void windows_overlap_by_the_target(void **state)
{
    (void)state;
    write_text(at("w.txt"), "abcdefgh"); /* 9 tokens: windows of 4 at 0 and 4 */
    struct data *d = open_one(at("w.txt"), 4, 2, 0, false);
    struct batch b;
    assert_int_equal(data_windows(d), 2);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("ids", b.ids, (const int32_t[]){'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}, 8);
    check_row("target", b.target, (const int32_t[]){'b', 'c', 'd', 'e', 'f', 'g', 'h', E}, 8);
    check_row("pos", b.pos, (const int32_t[]){0, 1, 2, 3, 0, 1, 2, 3}, 8);
    check_row("doc_start", b.doc_start, (const int32_t[]){0, 0, 0, 0, 0, 0, 0, 0}, 8);
    assert_int_equal(b.valid, 8);
    data_close(d);
}

static void evaluation_reads_every_target_once(void **state)
{
    (void)state;
    write_text(at("e.txt"), "abcdef"); /* 7 tokens, 6 targets: windows of 4 with 4 and 2 */
    struct data *d = open_one(at("e.txt"), 4, 3, 0, true);
    struct batch b;
    assert_int_equal(data_windows(d), 2);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        check_row("ids", b.ids, (const int32_t[]){'a', 'b', 'c', 'd', 'e', 'f', E, 0, 0, 0, 0, 0},
                  12);
        check_row("target", b.target,
                  (const int32_t[]){'b', 'c', 'd', 'e', 'f', E, X, X, X, X, X, X}, 12);
        check_row("pos", b.pos, (const int32_t[]){0, 1, 2, 3, 0, 1, 2, 0, 0, 1, 2, 3}, 12);
        check_row("doc_start", b.doc_start, (const int32_t[]){0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0},
                  12);
        assert_int_equal(b.valid, 6);
        assert_int_equal(batches_next(data_batches(d), &b), 1);
        assert_int_equal(batches_next(data_batches(d), &b), 1);
        batches_seek(data_batches(d), &(struct data_state){0, 0});
    }
    data_close(d);
}

/* ---- token files ---- */

static size_t llmc_file(unsigned char *to, int32_t version, int32_t count, const uint16_t *ids,
                        size_t n)
{
    const int32_t head[3] = {20240520, version, count};
    memset(to, 0, 1024);
    memcpy(to, head, sizeof head);
    memcpy(to + 1024, ids, 2 * n);
    return 1024 + 2 * n;
}

static size_t llmq_file(unsigned char *to, const int32_t head[5], const int32_t *ids, size_t n)
{
    memset(to, 0, 1024);
    memcpy(to, "BIN.TOK\n", 8);
    memcpy(to + 8, head, 20);
    memcpy(to + 1024, ids, 4 * n);
    return 1024 + 4 * n;
}

static void token_files_are_read(void **state)
{
    (void)state;
    static const uint16_t ids16[6] = {5, 6, 256, 7, 8, 9};
    static const int32_t ids32[6] = {5, 6, 256, 7, 8, 9};
    unsigned char file[2048];
    make_folder("tokens");
    write_bytes(at("tokens/a.bin"), file, llmc_file(file, 1, 6, ids16, 6));
    const int32_t head[5] = {2, 4, 6, 264, 0};
    write_bytes(at("tokens/b.bin"), file, llmq_file(file, head, ids32, 6));
    write_bytes(at("tokens/c.u16"), ids16, sizeof ids16);
    write_bytes(at("tokens/d.u32"), ids32, sizeof ids32);

    uint64_t hash = 0;
    static const char *const names[] = {"a.bin", "b.bin", "c.u16", "d.u32"};
    for (int i = 0; i < 4; i++) {
        char name[32];
        struct batch b;
        snprintf(name, sizeof name, "tokens/%s", names[i]);
        struct data *d = open_one(at(name), 5, 1, 0, false);
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        check_row("ids", b.ids, ids32, 5);
        check_row("target", b.target, (const int32_t[]){6, 256, X, 8, 9}, 5);
        check_row("doc_start", b.doc_start, (const int32_t[]){0, 0, 0, 3, 3}, 5);
        assert_true(i == 0 || hash == data_hash(d));
        hash = data_hash(d);
        data_close(d);
    }
    /* The files form one stream: each file starts a document. */
    struct data *d = open_one(at("tokens"), 23, 1, 0, false);
    struct batch b;
    assert_int_equal(data_tokens(d), 24);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    assert_int_equal(b.target[5], X);
    assert_int_equal(b.doc_start[6], 6);
    assert_int_equal(b.doc_start[8], 6);
    assert_int_equal(b.doc_start[9], 9);
    assert_int_equal(b.valid, 23 - 7);
    data_close(d);
}

static void masks_ignore_targets(void **state)
{
    (void)state;
    unsigned char file[2048];
    const int32_t head[5] = {2, 4, 10, 264, 1};
    const int32_t ids[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    size_t n = llmq_file(file, head, ids, 10);
    file[n++] = 0x38; /* tokens 3, 4, 5 */
    file[n++] = 0x02; /* token 9 */
    write_bytes(at("mask.bin"), file, n);
    struct data *d = open_one(at("mask.bin"), 9, 1, 0, false);
    struct batch b;
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("target", b.target, (const int32_t[]){X, X, 4, 5, 6, X, X, X, 10}, 9);
    assert_int_equal(b.valid, 4);
    data_close(d);
}

/* ---- order ---- */

/* Write a text whose window i starts with the letter 'A' + i. */
static void write_letters(const char *path, int windows, int seq_len)
{
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < windows * seq_len; i++)
        fputc(i % seq_len == 0 ? 'A' + i / seq_len : '.', file);
    fclose(file);
}

static void each_epoch_is_a_permutation(void **state)
{
    (void)state;
    enum { W = 37 };
    write_letters(at("p.txt"), W, 3);
    char order[4][W + 1] = {{0}};
    for (int seed = 1; seed <= 2; seed++) {
        struct data *d = open_one(at("p.txt"), 3, 1, (uint64_t)seed, false);
        assert_int_equal(data_windows(d), W);
        for (int epoch = 0; epoch < 2; epoch++) {
            int seen[W] = {0};
            for (int i = 0; i < W; i++) {
                struct batch b;
                assert_int_equal(batches_next(data_batches(d), &b), 0);
                int window = b.ids[0] - 'A';
                assert_in_range(window, 0, W - 1);
                assert_int_equal(seen[window]++, 0);
                order[2 * (seed - 1) + epoch][i] = (char)b.ids[0];
            }
        }
        data_close(d);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(order[i], order[j]);
}

/* The order of a seed never changes, so that a later version can resume a checkpoint of an earlier one. */
static void order_is_a_promise(void **state)
{
    (void)state;
    static const char *const want[] = {"JLYUGOKXEFD`VPcdReaBQbWS\\T]NZCIH[M^_A",
                                       "NGR`OdB\\HAPWU^LS]KXIbZEMVT_QJcFDeCa[Y"};
    write_letters(at("o.txt"), 37, 3);
    struct data *d = open_one(at("o.txt"), 3, 1, 1, false);
    for (int i = 0; i < 2 * 37; i++) {
        struct batch b;
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_int_equal(b.ids[0], want[i / 37][i % 37]);
    }
    data_close(d);
}

static void every_size_is_permuted(void **state)
{
    (void)state;
    for (int windows = 1; windows <= 70; windows++) {
        int seen[70] = {0};
        write_letters(at("s.txt"), windows, 2);
        struct data *d = open_one(at("s.txt"), 2, 1, 99, false);
        for (int i = 0; i < windows; i++) {
            struct batch b;
            assert_int_equal(batches_next(data_batches(d), &b), 0);
            assert_int_equal(seen[b.ids[0] - 'A']++, 0);
        }
        data_close(d);
    }
}

/* Batches do not end with the epoch, and a position resumes exactly. */
static void positions_resume(void **state)
{
    (void)state;
    enum { S = 3, B = 4, STEPS = 12 };
    write_letters(at("r.txt"), 7, S);
    int32_t ids[STEPS][B * S];
    struct data_state mark = {0, 0};
    struct data *d = open_one(at("r.txt"), S, B, 5, false);
    struct batch b;
    for (int i = 0; i < STEPS; i++) {
        if (i == 5)
            batches_tell(data_batches(d), &mark);
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        memcpy(ids[i], b.ids, sizeof ids[i]);
    }
    data_close(d);
    assert_int_equal(mark.epoch, 5 * B / 7);
    assert_int_equal(mark.window, 5 * B % 7);

    d = open_one(at("r.txt"), S, B, 5, false);
    batches_seek(data_batches(d), &mark);
    for (int i = 5; i < STEPS; i++) {
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_memory_equal(b.ids, ids[i], sizeof ids[i]);
    }
    /* The grouping of windows into batches does not change their order. */
    data_close(d);
    d = open_one(at("r.txt"), S, 1, 5, false);
    for (int i = 0; i < STEPS * B; i++) {
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_memory_equal(b.ids, ids[i / B] + i % B * S, S * sizeof(int32_t));
    }
    data_close(d);
}

/* ---- paths ---- */

static void folders_and_globs_are_sorted(void **state)
{
    (void)state;
    make_folder("tree");
    make_folder("tree/b");
    write_text(at("tree/c.txt"), "3");
    write_text(at("tree/a.txt"), "1");
    write_text(at("tree/b/z.txt"), "2");
    write_text(at("tree/[x].txt"), "4");
    struct batch b;
    /* '[' sorts before 'a' */
    struct data *d = open_one(at("tree"), 7, 1, 0, false);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("ids", b.ids, (const int32_t[]){'4', E, '1', E, '2', E, '3'}, 7);
    data_close(d);
    d = open_one(at("tree/?.txt"), 3, 1, 0, false);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("ids", b.ids, (const int32_t[]){'1', E, '3'}, 3);
    data_close(d);
    d = open_one(at("tree/[x].txt"), 1, 1, 0, false);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    assert_int_equal(b.ids[0], '4');
    data_close(d);
}

/* ---- refusals ---- */

static const struct {
    const char *path;
    int code;
    const char *part;
} refused[] = {
    {"missing.txt", NJ_E_IO, "missing.txt: No such file"},
    {"none*.txt", NJ_E_IO, "no file matches"},
    {"nothing", NJ_E_FORMAT, "the folder holds no .txt"},
    {"empty.txt", NJ_E_FORMAT, "there is no token in it"},
    {"short.txt", NJ_E_FORMAT,
     "4 tokens, fewer than one sequence of 4 + 1; give more data or at "
     "most --seq-len 3"},
    {"x.parquet", NJ_E_FORMAT, "x.parquet: it is too short for Parquet"},
    {"x.apr", NJ_E_UNSUPPORTED, "an .apr file is not read; export"},
    {"x.JSONL", NJ_E_FORMAT, "x.JSONL:1: the row has neither text"},
    {"mixed", NJ_E_FORMAT, "mixed/x.jsonl:2: column"},
    {"x.dat", NJ_E_UNSUPPORTED, "neither a token file of llm.c or LLM.Q nor text in UTF-8"},
    {"nul.dat", NJ_E_UNSUPPORTED, "neither a token file of llm.c or LLM.Q nor text in UTF-8"},
    {"text.bin", NJ_E_UNSUPPORTED, "rename a file of bare ids to end in .u16"},
    {"x.jsonl.gz", NJ_E_FORMAT,
     "x.jsonl.gz: cannot be unpacked: it is damaged, or not what its name says"},
    {"saved", NJ_E_UNSUPPORTED, "saved/data-00000-of-00001.arrow: Arrow files are not read"},
    {"x.feather", NJ_E_UNSUPPORTED, "Arrow files are not read; write the data set as Parquet"},
    {"x.csv", NJ_E_UNSUPPORTED, "not read as it is; write a line of .jsonl for each row"},
    {"docs-only", NJ_E_FORMAT,
     "holds no .txt, .jsonl, .parquet, .bin, .u16 or .u32 file; 3 files skipped (.MD 2, "
     "without an ending 1); name a file to have it read as text"},
    {"-", NJ_E_ARG, "-: standard input is not read"},
    {"large.u16", NJ_E_FORMAT, "large.u16: token 2 is 264, the vocabulary of this run ends at 263"},
    {"negative.u32", NJ_E_FORMAT, "token 1 is -1"},
    {"odd.u16", NJ_E_FORMAT, "3 bytes are not a whole number of 2-byte ids"},
    {"version.bin", NJ_E_FORMAT, "llm.c token file of version 7"},
    {"cut.bin", NJ_E_FORMAT, "7 tokens are declared, which makes 1038 bytes; the file has 1036"},
    {"long.bin", NJ_E_FORMAT, "5 tokens are declared, which makes 1034 bytes; the file has 1036"},
    {"minus.bin", NJ_E_FORMAT, "minus.bin: -1 tokens are declared; make it again"},
    {"header.bin", NJ_E_FORMAT, "llm.c token file"},
    {"old.bin", NJ_E_FORMAT, "LLM.Q token file of version 1 with 4 bytes"},
    {"wide.bin", NJ_E_FORMAT, "LLM.Q token file of version 2 with 2 bytes"},
    {"nomask.bin", NJ_E_FORMAT, "6 tokens are declared, which makes 1049 bytes; the file has 1048"},
    {"stub.bin", NJ_E_FORMAT, "LLM.Q token file of version 0"},
    {"pipe.txt", NJ_E_IO, "pipe.txt: not a regular file"},
};

static void write_refused(void)
{
    static const uint16_t ids[6] = {1, 2, 3, 4, 5, 6}, large[3] = {1, 2, 264};
    static const int32_t ids32[6] = {1, 2, 3, 4, 5, 6}, negative[2] = {1, -1};
    unsigned char file[2048];
    make_folder("nothing");
    make_folder("mixed");
    write_text(at("mixed/a.txt"), "hello");
    write_text(at("mixed/x.jsonl"), "{\"text\": \"a\"}\n{");
    write_text(at("empty.txt"), "");
    write_text(at("short.txt"), "abc");
    write_text(at("x.parquet"), "PAR1");
    write_text(at("x.apr"), "APR");
    write_text(at("x.feather"), "ARROW1");
    make_folder("saved");
    write_text(at("saved/data-00000-of-00001.arrow"), "text");
    write_text(at("saved/state.json"), "{}");
    write_text(at("x.JSONL"), "{}");
    write_text(at("x.dat"), "0123456789\xff"
                            "012345");
    write_bytes(at("nul.dat"), "a\0", 2);
    write_text(at("text.bin"), "0123456789012345");
    write_text(at("x.jsonl.gz"), "{}");
    write_text(at("x.csv"), "a,b");
    make_folder("docs-only");
    write_text(at("docs-only/1.MD"), "a");
    write_text(at("docs-only/2.md"), "a");
    write_text(at("docs-only/LICENSE"), "a");
    write_text(at("docs-only/.hidden"), "a");
    write_bytes(at("large.u16"), large, sizeof large);
    write_bytes(at("negative.u32"), negative, sizeof negative);
    write_text(at("odd.u16"), "abc");
    write_bytes(at("version.bin"), file, llmc_file(file, 7, 6, ids, 6));
    write_bytes(at("cut.bin"), file, llmc_file(file, 1, 7, ids, 6));
    write_bytes(at("long.bin"), file, llmc_file(file, 1, 5, ids, 6));
    write_bytes(at("minus.bin"), file, llmc_file(file, 1, -1, ids, 6));
    llmc_file(file, 1, 6, ids, 6);
    write_bytes(at("header.bin"), file, 500);
    write_bytes(at("old.bin"), file, llmq_file(file, (const int32_t[]){1, 4, 6, 264, 0}, ids32, 6));
    write_bytes(at("wide.bin"), file,
                llmq_file(file, (const int32_t[]){2, 2, 6, 264, 0}, ids32, 6));
    write_bytes(at("nomask.bin"), file,
                llmq_file(file, (const int32_t[]){2, 4, 6, 264, 1}, ids32, 6));
    write_text(at("stub.bin"), "BIN.TOK\n    ");
    assert_int_equal(mkfifo(at("pipe.txt"), 0666), 0);
}

static void bad_data_is_refused(void **state)
{
    (void)state;
    write_refused();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const bool input = strcmp(refused[i].path, "-") == 0;
        const char *paths[] = {input ? "-" : at(refused[i].path)};
        struct data_options o = options(paths, 1, 4, 1);
        struct data *d;
        check_refused(data_open(&o, &bytes_tokenizer, &d), refused[i].code, refused[i].part,
                      refused[i].path);
        assert_null(d);
    }
    struct data *d;
    struct data_options o = options(NULL, 0, 4, 1);
    check_refused(data_open(&o, &bytes_tokenizer, &d), NJ_E_FORMAT, "no token", "no path");
    o.batch_size = 0;
    check_refused(data_open(&o, &bytes_tokenizer, &d), NJ_E_ARG, "--batch-size", "no batch");
}

static void text_needs_a_tokenizer(void **state)
{
    (void)state;
    struct tokenizer t;
    struct data *d;
    make_folder("hf");
    write_text(at("hf/tokenizer.json"), "{}");
    write_text(at("hf/config.json"), "{\"eos_token_id\": [6, 7]}");
    check_ok(tokenizer_open(at("hf"), &t), "tokenizer");
    assert_int_equal(t.end_of_text, 6);
    assert_int_equal(t.vocab_size, 0);
    write_text(at("t.txt"), "hello");
    const char *paths[] = {at("t.txt")};
    struct data_options o = options(paths, 1, 4, 1);
    check_refused(data_open(&o, &t, &d), NJ_E_UNSUPPORTED, "t.txt: text needs a tokenizer", "text");

    /* Token files work, and their end of text ends documents. */
    static const uint16_t ids[6] = {5, 6, 7, 8, 9, 10};
    struct batch b;
    write_bytes(at("t.u16"), ids, sizeof ids);
    paths[0] = at("t.u16");
    check_ok(data_open(&o, &t, &d), "tokens");
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("doc_start", b.doc_start, (const int32_t[]){0, 0, 2, 2}, 4);
    data_close(d);
}

static void bytes_are_their_own_ids(void **state)
{
    (void)state;
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    char all[256];
    size_t bytes;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (int round = 0; round < 3; round++)
        check_ok(tokenizer_encode(&bytes_tokenizer, all, 256, &ids, &count, &capacity), "encode");
    assert_int_equal(count, 768);
    for (int i = 0; i < 768; i++) {
        assert_int_equal(ids[i], i % 256);
        const char *text = tokenizer_decode(&bytes_tokenizer, ids[i], &bytes);
        assert_int_equal(bytes, 1);
        assert_int_equal((unsigned char)text[0], i % 256);
    }
    assert_string_equal(tokenizer_decode(&bytes_tokenizer, 256, &bytes), "");
    assert_int_equal(bytes, 0);
    assert_string_equal(tokenizer_decode(&bytes_tokenizer, -1, &bytes), "");
    assert_int_equal(bytes, 0);
    free(ids);
}

/* A file with any name is read as text if it is named; a character may cross the end of the bytes that are examined. */
static void named_files_are_text(void **state)
{
    static char text[(1 << 16) + 8];
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text + (1 << 16) - 1, "\xe2\x82\xac", 3);
    write_bytes(at("README.md"), text, sizeof text);
    write_text(at("b.py"), "print(1)");
    struct data *d = open_one(at("README.md"), 4, 1, 0, false);
    assert_int_equal(data_tokens(d), sizeof text + 1);
    data_close(d);
    d = open_one(at("b.py"), 4, 1, 0, false);
    assert_int_equal(data_tokens(d), 9);
    assert_int_equal(data_passed_over(d)->files, 0);
    data_close(d);
}

/* The text is longer than the pieces in which it is encoded. */
/* A model's end of text may be larger than its tokenizer's table, and than 16 bits; a number that does not fit 32 bits
 * is no id. */
static void end_of_text_keeps_its_value(void **state)
{
    (void)state;
    struct tokenizer t = bytes_tokenizer;
    struct data *d;
    struct batch b;
    t.end_of_text = 70000;
    write_text(at("end.txt"), "abcd");
    const char *paths[] = {at("end.txt")};
    struct data_options o = options(paths, 1, 4, 1);
    o.vocab_size = 70001;
    check_ok(data_open(&o, &t, &d), "text");
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    check_row("target", b.target, (const int32_t[]){'b', 'c', 'd', 70000}, 4);
    data_close(d);
    make_folder("wide");
    write_text(at("wide/tokenizer.json"), "{}");
    write_text(at("wide/config.json"), "{\"eos_token_id\": 4294967297}");
    check_ok(tokenizer_open(at("wide"), &t), "tokenizer");
    assert_int_equal(t.end_of_text, -1);
}

static void long_texts_keep_every_byte(void **state)
{
    (void)state;
    const size_t n = ((size_t)1 << 21) + 12345;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(i * 7 + i / 256);
    write_bytes(at("long.txt"), text, n);
    struct data *d = open_one(at("long.txt"), (int)n, 1, 0, false);
    struct batch b;
    assert_int_equal(data_tokens(d), n + 1);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    for (size_t i = 0; i < n; i++)
        if (b.ids[i] != (unsigned char)text[i])
            fail_msg("byte %zu", i);
    free(text);
    data_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_end_where_texts_end),
        cmocka_unit_test(end_of_text_keeps_its_value),
        cmocka_unit_test(windows_overlap_by_the_target),
        cmocka_unit_test(evaluation_reads_every_target_once),
        cmocka_unit_test(token_files_are_read),
        cmocka_unit_test(masks_ignore_targets),
        cmocka_unit_test(each_epoch_is_a_permutation),
        cmocka_unit_test(order_is_a_promise),
        cmocka_unit_test(every_size_is_permuted),
        cmocka_unit_test(positions_resume),
        cmocka_unit_test(folders_and_globs_are_sorted),
        cmocka_unit_test(bad_data_is_refused),
        cmocka_unit_test(text_needs_a_tokenizer),
        cmocka_unit_test(bytes_are_their_own_ids),
        cmocka_unit_test(long_texts_keep_every_byte),
        cmocka_unit_test(named_files_are_text),
    };
    return cmocka_run_group_tests_name("data", tests, begin, scratch_end);
}
