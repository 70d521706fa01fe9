/* SPDX-License-Identifier: Apache-2.0
 *
 * test_teacher_cache.c: passages and their keys, and caches of hidden states: what is written is read back bit for bit,
 * and what is not whole, damaged or not understood is refused by name.
 */
#include "io/json_text.h"
#include "teacher/cache_shard.h"
#include "unit.h"

#include <dirent.h>
#include <sys/wait.h>

enum { S = 8, C = 4, ROWS = 2 * S };

/* Two sequences of documents; a target follows every token but a document's last. */
struct example {
    int32_t ids[ROWS], doc_start[ROWS], valid[ROWS];
    int targets;
};

/* Put a document of n tokens from `first` on, which are numbered from `word`. */
static void put_document(struct example *e, int at, int n, int word)
{
    for (int i = 0; i < n; i++) {
        e->ids[at + i] = word + i;
        e->doc_start[at + i] = at % S;
        if (i + 1 < n)
            e->valid[e->targets++] = at + i;
    }
}

static struct passage_rows rows_of(const struct example *e)
{
    return (struct passage_rows){e->ids, e->doc_start, e->valid, e->targets, S};
}

/* List the passages. Return how many there are. */
static int list(const struct example *e, struct passage *out)
{
    const struct passage_rows rows = rows_of(e);
    struct passage p = {0};
    int count = 0;
    while (passage_next(&rows, &p))
        out[count++] = p;
    return count;
}

static bool equal(const struct passage *a, const struct passage *b)
{
    return a->key.low == b->key.low && a->key.high == b->key.high;
}

/* ---- passages ---- */

static void passages_are_documents_up_to_their_last_target(void **state)
{
    (void)state;
    struct example e = {0};
    struct passage p[ROWS];
    put_document(&e, 0, 5, 100);
    put_document(&e, 5, 3, 200);
    put_document(&e, S + 2, 4, 300); /* positions 8 and 9 have no target, and are in no passage */
    assert_int_equal(list(&e, p), 3);
    assert_int_equal(p[0].start, 0);
    assert_int_equal(p[0].tokens, 4);
    assert_int_equal(p[0].first, 0);
    assert_int_equal(p[0].targets, 4);
    assert_int_equal(p[1].start, 5);
    assert_int_equal(p[1].tokens, 2);
    assert_int_equal(p[2].start, S + 2);
    assert_int_equal(p[2].first, 6);
    assert_int_equal(p[2].targets, 3);
    e.valid[e.targets] = -1; /* padding of the staged rows ends the list, too */
    struct passage_rows padded = rows_of(&e);
    padded.targets = ROWS;
    struct passage last = p[2];
    assert_false(passage_next(&padded, &last));
}

static void keys_do_not_depend_on_the_neighbours(void **state)
{
    (void)state;
    struct example a = {0}, b = {0};
    struct passage of_a[ROWS], of_b[ROWS];
    put_document(&a, 0, 3, 100);
    put_document(&a, 3, 5, 200);
    put_document(&b, 0, 2, 500);
    put_document(&b, S + 1, 5, 200);
    assert_int_equal(list(&a, of_a), 2);
    assert_int_equal(list(&b, of_b), 2);
    assert_true(equal(&of_a[1], &of_b[1]));
    assert_false(equal(&of_a[0], &of_b[0]));
}

static void keys_depend_on_tokens_and_targets(void **state)
{
    (void)state;
    struct example plain = {0}, other;
    struct passage p, q;
    put_document(&plain, 0, 6, 100);
    list(&plain, &p);
    for (int i = 0; i < 5; i++) { /* each token that the teacher reads */
        other = plain;
        other.ids[i]++;
        assert_int_equal(list(&other, &q), 1);
        assert_false(equal(&p, &q));
    }
    other = plain; /* the last token is a target only, which is no matter of the teacher */
    other.ids[5]++;
    list(&other, &q);
    assert_true(equal(&p, &q));
    for (int i = 0; i < 5; i++) { /* each target */
        other = plain;
        other.targets--;
        memmove(other.valid + i, plain.valid + i + 1, sizeof *plain.valid * (size_t)(4 - i));
        assert_int_equal(list(&other, &q), 1);
        assert_false(equal(&p, &q));
    }
}

static void sets_number_passages(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    struct passage_set s = {0};
    assert_int_equal(passage_set_find(&s, (struct passage_key){0, 0}), -1);
    for (int i = 0; i < MANY; i++) /* many share their slot at first */
        assert_int_equal(passage_set_add(&s, (struct passage_key){(uint64_t)i * 512, 7}), 1);
    for (int i = 0; i < MANY; i++) {
        const struct passage_key key = {(uint64_t)i * 512, 7};
        assert_int_equal(passage_set_find(&s, key), i);
        assert_int_equal(passage_set_add(&s, key), 0);
        assert_int_equal(passage_set_find(&s, (struct passage_key){key.low, 8}), -1);
    }
    assert_int_equal(s.count, MANY);
    passage_set_free(&s);
}

/* ---- caches ---- */

static const struct cache_facts facts = {.type = NJ_TYPE_F32,
                                         .hidden_size = C,
                                         .vocab_size = 1000,
                                         .teacher = 0x123456789abcdef0,
                                         .head = 1,
                                         .config = 2,
                                         .rotation = UINT64_MAX,
                                         .source = "a \"teacher\""};

static struct example example(void)
{
    struct example e = {0};
    put_document(&e, 0, 5, 100);
    put_document(&e, 5, 3, 200);
    put_document(&e, S, 7, 300);
    return e;
}

static float element(int target, int channel)
{
    return (float)(target * C + channel) / 7;
}

/* Write the cache of the example, in shards of one passage each, or in one. */
static void write_cache(const char *name, bool each)
{
    const struct example e = example();
    const struct passage_rows rows = rows_of(&e);
    struct passage p[ROWS];
    struct cache_shard s;
    float hidden[ROWS][C];
    const int count = list(&e, p);
    for (int i = 0; i < e.targets; i++)
        for (int c = 0; c < C; c++)
            hidden[i][c] = element(i, c);
    make_folder(name);
    check_ok(cache_facts_write(at(name), &facts), "facts");
    cache_shard_begin(&s, at(name), &facts);
    for (int i = 0; i < count; i++) {
        check_ok(cache_shard_add(&s, &rows, &p[i], (const char *)hidden[p[i].first]), "add");
        if (each)
            check_ok(cache_shard_write(&s), "each");
    }
    check_ok(cache_shard_write(&s), "write");
    check_ok(cache_shard_write(&s), "an empty one");
    assert_int_equal(s.written, each ? count : 1);
    cache_shard_free(&s);
}

static void check_rows(const char *name)
{
    const struct example e = example();
    struct teacher_cache *c;
    struct passage p[ROWS];
    const int count = list(&e, p);
    check_ok(cache_open(at(name), &c), name);
    assert_int_equal(cache_passages(c), count);
    for (int i = 0; i < count; i++) {
        float hidden[ROWS][C] = {{0}};
        check_ok(cache_read(c, &p[i], hidden), name);
        for (int row = 0; row < p[i].targets; row++)
            for (int channel = 0; channel < C; channel++)
                assert_true(hidden[row][channel] == element(p[i].first + row, channel));
    }
    cache_close(c);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    write_cache("one", false);
    write_cache("each", true);
    check_rows("one");
    check_rows("each");
}

static void the_facts_are_read_as_written(void **state)
{
    (void)state;
    struct cache_facts read;
    make_folder("facts");
    assert_false(cache_is_there(at("facts")));
    check_ok(cache_facts_write(at("facts"), &facts), "write");
    assert_true(cache_is_there(at("facts")));
    check_ok(cache_facts_read(at("facts"), &read), "read");
    assert_int_equal(read.type, facts.type);
    assert_int_equal(read.hidden_size, facts.hidden_size);
    assert_int_equal(read.vocab_size, facts.vocab_size);
    assert_true(read.teacher == facts.teacher && read.head == facts.head);
    assert_true(read.config == facts.config && read.rotation == facts.rotation);
    assert_string_equal(read.source, facts.source);
    assert_int_equal(cache_row_bytes(&read), C * sizeof(float));
}

/* Write cache.json with another value of a field; NULL: without it. */
static void write_changed(const char *field, json_t *value)
{
    json_t *root;
    char path[600];
    snprintf(path, sizeof path, "%s/cache.json", at("changed"));
    check_ok(cache_facts_write(at("changed"), &facts), "write");
    check_ok(json_read_file(path, "", &root), "read");
    if (value)
        json_object_set_new(root, field, value);
    else
        json_object_del(root, field);
    json_memory_begin();
    check_ok(json_write_file(path, root, 0), "write again");
}

static void facts_that_are_not_understood_are_refused(void **state)
{
    (void)state;
    static const char *const fields[] = {"format",  "store", "dtype",  "hidden_size", "vocab_size",
                                         "teacher", "head",  "config", "rotation",    "source"};
    struct cache_facts read;
    make_folder("changed");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        write_changed(fields[i], NULL);
        check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, fields[i], fields[i]);
        write_changed(fields[i], json_real(0.5));
        check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, fields[i], fields[i]);
    }
    write_changed("format", json_string("nojit-cache/2"));
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_UNSUPPORTED,
                  "\"format\" is \"nojit-cache/2\"", "format");
    write_changed("store", json_string("logits"));
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_UNSUPPORTED, "\"store\"", "store");
    write_changed("dtype", json_string("Q4_K"));
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, "\"dtype\"", "dtype");
    write_changed("hidden_size", json_integer(0));
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, "\"hidden_size\"", "size");
    write_changed("teacher", json_string("123456789abcdefg"));
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, "\"teacher\"", "hash");
    write_text(at("changed/cache.json"), "{");
    check_refused(cache_facts_read(at("changed"), &read), NJ_E_FORMAT, "cache.json", "text");
}

/* Find the only shard of a cache. */
static const char *shard_of(const char *name)
{
    static char path[1100];
    DIR *d = opendir(at(name));
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (cache_is_shard(e->d_name))
            snprintf(path, sizeof path, "%s/%s", at(name), e->d_name);
    closedir(d);
    return path;
}

/* Open a cache and read all passages of the example. */
static int read_all(const char *name)
{
    const struct example e = example();
    struct teacher_cache *c;
    struct passage p[ROWS];
    float hidden[ROWS][C];
    const int count = list(&e, p);
    int rc = cache_open(at(name), &c);
    if (rc != 0)
        return rc;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = cache_read(c, &p[i], hidden);
    cache_close(c);
    return rc;
}

static void a_shard_that_is_cut_short_is_refused(void **state)
{
    (void)state;
    write_cache("short", false);
    const char *path = shard_of("short");
    size_t bytes;
    char *whole = read_bytes(path, &bytes);
    for (size_t n = 0; n < bytes; n++) {
        write_bytes(path, whole, n);
        check_refused(read_all("short"), NJ_E_FORMAT, "remove this file", path);
    }
    write_bytes(path, whole, bytes);
    check_ok(read_all("short"), "whole");
    free(whole);
}

/* A bit of the keys hides passages, one of a check sum or a row makes the rows differ from it; ids and places are for
 * other readers. */
static void a_flipped_bit_changes_no_row_that_is_read(void **state)
{
    (void)state;
    write_cache("flipped", false);
    const char *path = shard_of("flipped");
    size_t bytes, refused = 0;
    char *whole = read_bytes(path, &bytes);
    for (size_t i = 0; i < bytes; i++) {
        whole[i] ^= 1;
        write_bytes(path, whole, bytes);
        const int rc = read_all("flipped");
        if (rc == 0)
            check_rows("flipped");
        refused += rc != 0;
        whole[i] ^= 1;
    }
    assert_true(refused > C * sizeof(float) * 12);
    whole[bytes - 1] ^= 4; /* in the last row */
    write_bytes(path, whole, bytes);
    check_refused(read_all("flipped"), NJ_E_FORMAT, "do not have their hash", path);
    free(whole);
}

static void a_shard_of_another_kind_is_refused(void **state)
{
    (void)state;
    struct cache_facts other = facts;
    write_cache("kind", false);
    other.type = NJ_TYPE_BF16;
    check_ok(cache_facts_write(at("kind"), &other), "type");
    check_refused(read_all("kind"), NJ_E_FORMAT, "not those that cache.json describes", "type");
    other = facts;
    other.hidden_size = C + 1;
    check_ok(cache_facts_write(at("kind"), &other), "size");
    check_refused(read_all("kind"), NJ_E_FORMAT, "not those that cache.json describes", "size");
}

static void passages_that_are_missing_are_named(void **state)
{
    (void)state;
    struct example other = {0};
    struct teacher_cache *c;
    struct passage p;
    float hidden[ROWS][C];
    write_cache("lacks", false);
    put_document(&other, 0, 5, 900);
    list(&other, &p);
    check_ok(cache_open(at("lacks"), &c), "open");
    assert_false(cache_has(c, p.key));
    check_refused(cache_read(c, &p, hidden), NJ_E_ARG,
                  "has no hidden states for a passage of 4 tokens", "absent");
    check_ok(cache_note(c, p.key), "note");
    assert_true(cache_has(c, p.key));
    check_refused(cache_read(c, &p, hidden), NJ_E_ARG, "has no hidden states for a passage",
                  "noted");
    cache_close(c);
}

/* ---- what killed processes leave ---- */

static long dead_process(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return (long)pid;
}

static void partial_shards_are_not_read_and_go(void **state)
{
    (void)state;
    char dead[1200], living[1300];
    write_cache("killed", false);
    const char *path = shard_of("killed");
    size_t bytes;
    char *whole = read_bytes(path, &bytes);
    snprintf(dead, sizeof dead, "%s.tmp-%ld", path, dead_process());
    snprintf(living, sizeof living, "%s.tmp-%ld", path, (long)getppid());
    for (size_t n = 0; n <= bytes; n++) { /* killed at each byte */
        write_bytes(dead, whole, n);
        write_bytes(living, whole, n);
        check_rows("killed");
        cache_remove_partial(at("killed"));
        assert_int_equal(access(dead, F_OK), -1);
        assert_int_equal(access(living, F_OK), 0);
    }
    snprintf(dead, sizeof dead, "%s.tmp-%ld", at("killed/config"), dead_process());
    assert_int_equal(mkdir(dead, 0777), 0);
    snprintf(living, sizeof living, "%s/config.json", dead);
    write_text(living, "{}");
    write_text(at("killed/other.tmp-1"), "");
    cache_remove_partial(at("killed"));
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(at("killed/other.tmp-1"), F_OK), 0);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passages_are_documents_up_to_their_last_target),
        cmocka_unit_test(keys_do_not_depend_on_the_neighbours),
        cmocka_unit_test(keys_depend_on_tokens_and_targets),
        cmocka_unit_test(sets_number_passages),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(the_facts_are_read_as_written),
        cmocka_unit_test(facts_that_are_not_understood_are_refused),
        cmocka_unit_test(a_shard_that_is_cut_short_is_refused),
        cmocka_unit_test(a_flipped_bit_changes_no_row_that_is_read),
        cmocka_unit_test(a_shard_of_another_kind_is_refused),
        cmocka_unit_test(passages_that_are_missing_are_named),
        cmocka_unit_test(partial_shards_are_not_read_and_go),
    };
    return cmocka_run_group_tests_name("teacher_cache", tests, scratch_begin, scratch_end);
}
