/* SPDX-License-Identifier: Apache-2.0
 *
 * test_threads.c: things that several threads may do at once without a lock: open and read files, encode with one
 * tokenizer and separate working memory, as the loops of tokenizer.c do, and fail, each with its own message. Threads
 * are pthreads, which a thread sanitizer can follow, unlike libgomp's.
 */
#include "formats/safetensors.h"
#include "model/config.h"
#include "text/bpe.h"
#include "tokenizer_fixture.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 3 };

static struct tokenizer shared;
static char weights_path[128];
static pthread_barrier_t start;

struct job {
    int number;
    char sentence[256];
    struct span span;
    uint64_t hash;
};

static const char text[] =
    "It's 12345 words, caf\xc3\xa9 cafe\xcc\x81 <left> word\n\n and <|endoftext|> more of them";

/* Open a tokenizer and weights, encode with the shared tokenizer, and ask for a folder that does not exist. */
static void *work(void *user)
{
    struct job *j = user;
    struct tokenizer own;
    struct tensors weights;
    struct model_config c;
    char missing[64];
    struct bpe_work *w = bpe_work_new();
    pthread_barrier_wait(&start);
    for (int round = 0; w && round < ROUNDS; round++) {
        j->span.count = 0;
        if (bpe_encode(shared.bpe, w, &j->span) != 0 || tokenizer_open(shared.dir, &own) != 0)
            break;
        j->hash = tokenizer_hash(&own);
        tokenizer_close(&own);
        if (st_open_file(weights_path, &weights) == 0)
            tensors_close(&weights);
        snprintf(missing, sizeof missing, "/nowhere/%d", j->number);
        config_read(missing, &c);
        snprintf(j->sentence, sizeof j->sentence, "%s", fail_text());
    }
    bpe_work_free(w);
    return NULL;
}

static void threads_of_readers_and_tokenizers_do_not_race(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    struct job job[THREADS] = {0};
    pthread_t thread[THREADS];
    char file[128] = {(char)(sizeof header - 1)}, wanted[64];
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    memcpy(file + 8, header, sizeof header - 1);
    snprintf(weights_path, sizeof weights_path, "%s", at("weights"));
    write_bytes(weights_path, file, 8 + sizeof header - 1 + 8);
    shared = open_golden("qwen2", NULL, NULL);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        job[i] = (struct job){.number = i, .span = {.text = text, .bytes = sizeof text - 1}};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &job[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    check_ok(tokenizer_encode(&shared, text, sizeof text - 1, &ids, &count, &capacity), "alone");
    for (int i = 0; i < THREADS; i++) {
        snprintf(wanted, sizeof wanted, "/nowhere/%d/config.json", i);
        assert_non_null(strstr(job[i].sentence, wanted));
        assert_int_equal(job[i].span.count, count);
        assert_memory_equal(job[i].span.ids, ids, count * sizeof *ids);
        assert_true(job[i].hash == tokenizer_hash(&shared));
        free(job[i].span.ids);
    }
    free(ids);
    tokenizer_close(&shared);
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_readers_and_tokenizers_do_not_race)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
