/* SPDX-License-Identifier: Apache-2.0
 *
 * test_no_memory.c: every loader, with its first allocation refused, then its second, and so on until it succeeds. Each
 * time it must return NJ_E_NOMEM with a sentence, and free what it had.
 */
#include "batch/data.h"
#include "engine_fixture.h"
#include "gguf_fixture.h"
#include "internal.h"
#include "model/config.h"
#include "model/lora_config.h"
#include "model/model_open.h"
#include "no_memory_answers.h"
#include "no_memory_ranks.h"
#include "no_memory_rows.h"
#include "no_memory_tensors.h"
#include "options/options.h"
#include "record/metrics.h"
#include "refused_memory.h"
#include "report/report.h"
#include "task_fixture.h"
#include "text/chat.h"
#include "text/generation.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_split.h"

#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the loop ---- */

/* Refuse each allocation of load() in turn. load() opens and, if that succeeds, closes. */
static void refuse_each(int (*load)(void), const char *what, bool stays_so)
{
    enum { MOST = 20000 };
    ok(load()); /* allocate now what the program allocates only once */
    for (long n = 0; n < MOST; n++) {
        (fail)(0, "%s", "(no sentence)");
        refuse_from(n, stays_so);
        const int rc = load();
        armed = false;
        if (live != 0)
            fail_msg("%s: without allocation %ld: %ld blocks are left (%d: %s)", what, n + 1, live,
                     rc, fail_text());
        if (rc == 0 && until >= 0) {
            print_message("%s: %ld allocations\n", what, n);
            assert_true(n > 0);
            return;
        }
        if (rc != NJ_E_NOMEM || !strstr(fail_text(), "memory"))
            fail_msg("%s: without allocation %ld: got %d \"%s\"", what, n + 1, rc, fail_text());
    }
    fail_msg("%s: more than %d allocations", what, MOST);
}

/* A chat template that a JSON string can hold. */
#define TURNS                                                                                      \
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content.split('>')[-1] | trim }}"        \
    "<|im_end|>{% endfor %}"

/* ---- loaders ---- */

static int load_gguf_model(void)
{
    struct tensors w;
    const int rc = source_tensors(path_of("teacher.gguf"), &w);
    if (rc == 0)
        tensors_close(&w);
    return rc;
}

#define GEMMA_FILE "tests/fuzz/corpus/gguf_tokenizer/valid_gemma_spaces"
#define APR_FILE "tests/fuzz/corpus/apr/valid_tokenizer"

static int load_apr_model(void)
{
    struct tensors w;
    const int rc = source_tensors(APR_FILE, &w);
    if (rc == 0)
        tensors_close(&w);
    return rc;
}

static int load_apr_tokenizer(void)
{
    struct tokenizer t;
    const int rc = tokenizer_open(APR_FILE, &t);
    tokenizer_close(&t);
    return rc;
}

static int load_quantized(void)
{
    struct tensors w;
    const int rc = source_tensors("tests/golden/quantized/nf4-nested", &w);
    if (rc == 0)
        tensors_close(&w);
    return rc;
}

static int load_gguf_parts(void)
{
    struct gguf g;
    const int rc = gguf_open(path_of("parts-00001-of-00002.gguf"), &g);
    if (rc == 0)
        gguf_close(&g);
    return rc;
}

static int write_gguf(const char *path)
{
    static const struct gguf_text texts[] = {{"one", 3}, {"two", 3}};
    static const int32_t ints[] = {1, 2, 3};
    const struct st_declared tensor = {"second", NJ_TYPE_F32, 1, {2}};
    struct gguf_writer *w;
    int rc = gguf_write_begin(path, &w);
    if (rc != 0)
        return rc;
    gguf_put_u32(w, "split.no", 1);
    gguf_put_strings(w, "texts", texts, 2);
    gguf_put_i32s(w, "ints", ints, 3);
    rc = gguf_write_tensors(w, &tensor, 1);
    if (rc == 0)
        rc = gguf_write_data(w, (float[2]){1, 2}, 8);
    if (rc == 0)
        return gguf_write_end(w);
    gguf_write_abort(w);
    return rc;
}

static int save_gguf(void)
{
    return write_gguf(path_of("new.gguf"));
}

static int load_gguf_values(void)
{
    struct gguf g;
    struct gguf_text *texts = NULL;
    int32_t *ints = NULL;
    size_t count;
    int rc = gguf_open(path_of("parts-00002-of-00002.gguf"), &g);
    if (rc != 0)
        return rc;
    rc = gguf_strings(&g, "texts", &texts, &count);
    if (rc == 0)
        rc = gguf_ints(&g, "ints", &ints, &count);
    free(texts);
    free(ints);
    gguf_close(&g);
    return rc;
}

static int load_config(void)
{
    struct model_config c;
    return config_read(path_of("qwen2"), &c);
}

static int load_lora_config(void)
{
    struct lora_config c;
    return lora_config_read(base, &c);
}

static int load_tokenizer(void)
{
    static const char text[] = "cafe\xcc\x81 12 <left> x";
    struct tokenizer t;
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    int rc = tokenizer_open(path_of("small"), &t);
    if (rc == 0)
        rc = tokenizer_encode(&t, text, sizeof text - 1, &ids, &count, &capacity);
    free(ids);
    tokenizer_close(&t);
    return rc;
}

static void remove_folder(const char *path)
{
    assert_true(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

static int load_gguf_tokenizer(void)
{
    struct tokenizer t;
    const int rc = tokenizer_open(path_of("small.gguf"), &t);
    tokenizer_close(&t);
    return rc;
}

static int load_split(void)
{
    struct split s;
    TRY(split_from_text("a.b", 3, (struct split_rule){BEHAVIOR_NEXT, false}, &s));
    split_free(&s);
    return 0;
}

static int copy_gguf_tokenizer(void)
{
    remove_folder(path_of("copied"));
    assert_int_equal(mkdir(path_of("copied"), 0777), 0);
    return gguf_tokenizer_copy(path_of("small.gguf"), path_of("copied"));
}

static int put_gguf_tokenizer(const char *from, const char *to)
{
    struct tokenizer t;
    struct gguf_writer *w = NULL;
    int rc = tokenizer_open(from, &t);
    if (rc == 0)
        rc = gguf_write_begin(path_of(to), &w);
    if (rc == 0)
        rc = gguf_put_tokenizer(w, &t, 300);
    if (rc == 0)
        rc = gguf_write_tensors(w, NULL, 0);
    if (rc == 0)
        rc = gguf_write_end(w);
    else
        gguf_write_abort(w);
    tokenizer_close(&t);
    return rc;
}

static int write_gguf_tokenizer(void)
{
    char small[PATH_BYTES];
    snprintf(small, sizeof small, "%s", path_of("small"));
    TRY(put_gguf_tokenizer(small, "out.gguf"));
    snprintf(small, sizeof small, "%s", path_of("small.gguf"));
    return put_gguf_tokenizer(small, "out.gguf");
}

/* Read and write tokens of spaces, which are spelled anew. */
static int write_gemma_tokenizer(void)
{
    return put_gguf_tokenizer(GEMMA_FILE, "out.gguf");
}

static int load_data(const char *name, const struct tokenizer *t, enum packing packing)
{
    const char *path = path_of(name);
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .packing = packing,
                                   .seq_len = 16,
                                   .batch_size = 2,
                                   .vocab_size = t && t->bpe ? t->vocab_size : 257};
    struct data *d;
    const int rc = data_open(&o, t, &d);
    if (rc == 0)
        data_close(d);
    return rc;
}

static int load_token_file(void)
{
    return load_data("masked.bin", NULL, PACKING_BFD);
}

static int load_text(void)
{
    const struct tokenizer bytes = {.kind = "bytes", .vocab_size = 257, .end_of_text = 256};
    return load_data("text.txt", &bytes, PACKING_WRAPPED);
}

/* Opened before allocations fail. */
static struct tokenizer chat;

static int load_jsonl(void)
{
    int rc = load_data("lines.jsonl.gz", &chat, PACKING_NONE);
    rc = rc != 0 ? rc : load_data("lines.jsonl.zst", &chat, PACKING_NONE);
    return rc != 0 ? rc : load_data("lines.jsonl", &chat, PACKING_NONE);
}

static int load_prompts(void)
{
    return read_prompts(path_of("prompts.jsonl"), &chat);
}

static int load_tasks(void)
{
    return read_tasks(path_of("tasks.jsonl"), &chat);
}

static int ask_chat(void)
{
    int32_t *ids;
    size_t count;
    const int rc = prompt_of_chat(&chat, "caf\u00e9", "one", &ids, &count);
    free(ids);
    return rc;
}

static int load_generation(void)
{
    struct generation g;
    return generation_read(path_of("chat"), &chat, chat.vocab_size, &g);
}

static int find_chat(const char *dir)
{
    struct chat found;
    const int rc = chat_find(path_of(dir), &chat, &found);
    chat_free(&found);
    return rc;
}

static int load_chat(void)
{
    return find_chat("chat");
}

static int load_chat_template(void)
{
    return find_chat("jinja");
}

static int load_options(void)
{
    struct settings s = {0};
    const int rc = option_file_read(&commands[0], path_of("options.yaml"), &s);
    settings_free(&s);
    return rc;
}

static int load_report(void)
{
    json_t *run;
    const int rc = report_read(path_of("run"), &run);
    if (rc == 0)
        json_decref(run);
    return rc;
}

static int load_gemm_table(void)
{
    nj_context *c = NULL;
    const struct nj_options o = {.device = NJ_DEVICE_CPU};
    int rc = nj_context_create(&c, &o);
    if (rc == 0)
        rc = nj_gemm_table_read(c, path_of("table"));
    if (rc < 0)
        (fail)(rc, "%s", c ? nj_context_error(c) : "out of memory");
    nj_context_destroy(c);
    return rc < 0 ? rc : 0;
}

static int load_engine(void)
{
    struct engine *e;
    struct data_state at;
    int64_t step;
    int rc =
        engine_create(ctx, path_of("qwen2"), path_of("teacher"), &small_options, NULL, NULL, &e);
    if (rc == 0)
        rc = engine_load_state(e, base, &step, &at);
    engine_destroy(e);
    return rc;
}

/* Made before allocations fail. */
static struct engine *saved;
static const struct lora_config saved_lora = {.rank = 2, .alpha = 4, .target = {[LORA_Q] = true}};

static int save_model(void)
{
    remove_folder(path_of("saved"));
    assert_int_equal(mkdir(path_of("saved"), 0777), 0);
    return engine_save_model(saved, path_of("saved"));
}

static int save_shards(void)
{
    remove_folder(path_of("new"));
    return init_model(path_of("new"), &qwen2, 2, NJ_TYPE_BF16, 60000, NULL);
}

static int take_layers(void)
{
    static const int layers[] = {1};
    struct model_config c = qwen3;
    remove_folder(path_of("new"));
    c.layers = 1;
    return init_from_layers(path_of("new"), &c, path_of("sharded"), layers, 0, NULL, 20000);
}

static int save_adapters(void)
{
    return lora_config_write(path_of("saved"), &saved_lora, &qwen3, "base");
}

static const struct {
    const char *name;
    int (*load)(void);
} loaders[] = {
    {"safetensors", load_safetensors},
    {"shards", load_shards},
    {"a cache of hidden states", load_cache},
    {"a shard of a cache", write_cache},
    {"a GGUF file as a model", load_gguf_model},
    {"an APR file as a model", load_apr_model},
    {"quantized folder", load_quantized},
    {"a GGUF file in parts", load_gguf_parts},
    {"values of a GGUF file", load_gguf_values},
    {"config", load_config},
    {"adapter config", load_lora_config},
    {"tokenizer", load_tokenizer},
    {"tokenizer of a GGUF file", load_gguf_tokenizer},
    {"split at a text", load_split},
    {"tokenizer of an APR file", load_apr_tokenizer},
    {"tokenizer.json of a GGUF file", copy_gguf_tokenizer},
    {"GGUF file of a tokenizer", write_gguf_tokenizer},
    {"GGUF file of tokens of spaces", write_gemma_tokenizer},
    {"token file", load_token_file},
    {"text", load_text},
    {"jsonl", load_jsonl},
    {"parquet", load_parquet},
    {"prompts", load_prompts},
    {"rows of answers", load_answer_rows},
    {"answers.bin", load_answers},
    {"tasks", load_tasks},
    {"a question to a chat model", ask_chat},
    {"generation settings", load_generation},
    {"chat template in JSON", load_chat},
    {"chat template", load_chat_template},
    {"options", load_options},
    {"run of a report", load_report},
    {"GEMM table", load_gemm_table},
    {"engine and state", load_engine},
    {"saved model", save_model},
    {"new model in shards", save_shards},
    {"new model of layers", take_layers},
    {"saved adapter config", save_adapters},
    {"new GGUF file", save_gguf},
    {"exchange of ranks", meet_ranks},
    {"what rank 0 shares", take_shared},
    {"what rank 0 shares", take_shared},
};
enum { LOADERS = sizeof loaders / sizeof *loaders };

static void refusals_are_told_and_leak_nothing(void **state)
{
    const int i = (int)(intptr_t)*state;
    refuse_each(loaders[i].load, loaders[i].name, true);
    /* the engine takes long, and is loaded in both ways elsewhere */
    if (loaders[i].load != load_engine)
        refuse_each(loaders[i].load, loaders[i].name, false);
}

/* A resumed run cuts off rows of later steps, but no row that it lacks the memory to read. */
static void unread_rows_stay(void **state)
{
    (void)state;
    struct stat before, after;
    const char *path = path_of("run/metrics.jsonl");
    assert_int_equal(stat(path, &before), 0);
    struct rows_done done;
    int rc = -1;
    for (int i = 0; rc != 0; i++) {
        refuse_from(i, false);
        rc = rows_open(path, 100, NULL, NULL, &done, NULL);
        armed = false;
        assert_true(i < 20);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
    }
}

/* ---- files ---- */

static void put(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void copy(const char *from, const char *name)
{
    char data[1 << 12];
    FILE *f = fopen(from, "rb"), *to = fopen(path_of(name), "wb");
    assert_true(f && to);
    const size_t bytes = fread(data, 1, sizeof data, f);
    assert_int_equal(fwrite(data, 1, bytes, to), bytes);
    assert_int_equal(fclose(f) | fclose(to), 0);
}

/* Write a folder with the tokenizer in a file of the tree. */
static void write_tokenizer(const char *name, const char *from)
{
    static char text[1 << 16];
    char path[64];
    FILE *f = fopen(from, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_int_equal(mkdir(path_of(name), 0777), 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", name);
    put(path, text);
}

static void write_table(void)
{
    const unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    assert_int_equal(nj_gemm_choose(ctx, "NN two", choice), 0);
    assert_int_equal(nj_gemm_table_write(ctx, path_of("table")), 0);
    nj_gemm_choices_free(ctx);
}

static void write_state(void)
{
    struct data_state at = {0};
    struct engine *e = open_engine("qwen2", "teacher", &small_options);
    ok(engine_save_state(e, base, 3, &at));
    engine_destroy(e);
}

static int open_files(void **state)
{
    const int rc = fixture_open(state);
    omp_set_num_threads(1);
    ok(init_model(path_of("sharded"), &qwen3, 2, NJ_TYPE_F32, 20000, NULL));
    const struct gguf_form form = {.dtype = NJ_TYPE_F32};
    ok(gguf_of(path_of("teacher"), path_of("teacher.gguf"), &form));
    copy("tests/fuzz/corpus/gguf/valid_first_of_two", "parts-00001-of-00002.gguf");
    ok(write_gguf(path_of("parts-00002-of-00002.gguf")));
    put("adapter_config.json",
        "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4,\"target_modules\":[\"q_proj\"]}");
    put("text.txt", "A text of a few lines,\nthat is long enough for a row of the batch.\n");
    put_rows();
    put("prompts.jsonl", "{\"prompt\":\"caf\u00e9 one\",\"completion\":\"two\",\"id\":\"three\"}\n"
                         "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}],\"teacher_"
                         "prompt\":\"one two\"}\n");
    put("tasks.jsonl", TASK_LINES);
    put("options.yaml", "steps: 20\ndata: [a.txt, b.txt]\nout: run\n");
    assert_int_equal(mkdir(path_of("run"), 0777), 0);
    assert_int_equal(mkdir(path_of("cache"), 0777), 0);
    ok(write_cache());
    put("run/metrics.jsonl", "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2.25}\n");
    put("run/samples.jsonl", "{\"step\":1,\"text\":\"a\"}\n");
    put("run/receipt.json", "{\"version\":1}");
    write_tokenizer("small", "tests/fuzz/corpus/tokenizer/valid");
    put("small/config.json", "{\"eos_token_id\":[5, 6]}");
    put("small/tokenizer_config.json", "{\"chat_template\":\"{{ m }}\"}");
    ok(put_gguf_tokenizer("small", "small.gguf"));
    write_tokenizer("chat", "tests/golden/tokenizer-qwen2.json");
    put("chat/tokenizer_config.json", "{\"eos_token\":{\"content\":\"<|im_end|>\"},"
                                      "\"chat_template\":\"" TURNS "\"}");
    put("chat/generation_config.json", "{\"eos_token_id\":[1,2],\"top_k\":20}");
    ok(tokenizer_open(path_of("chat"), &chat));
    assert_int_equal(mkdir(path_of("jinja"), 0777), 0);
    put("jinja/chat_template.jinja", "{{ '<|im_start|>' }}");
    assert_int_equal(mkdir(path_of("saved"), 0777), 0);
    saved = open_engine("qwen2", NULL, &small_options);
    greeting = greeting_make(&(struct place){.rank = 1, .size = 2}, "run", NULL, 0, &greeting_size);
    assert_non_null(greeting);
    write_table();
    write_answers();
    write_state();
    return rc;
}

static int close_files(void **state)
{
    free(greeting);
    tokenizer_close(&chat);
    engine_destroy(saved);
    return fixture_close(state);
}

int main(void)
{
    struct CMUnitTest tests[LOADERS + 1];
    for (intptr_t i = 0; i < LOADERS; i++)
        tests[i] = (struct CMUnitTest){loaders[i].name, refusals_are_told_and_leak_nothing, NULL,
                                       NULL, (void *)i};
    tests[LOADERS] = (struct CMUnitTest)cmocka_unit_test(unread_rows_stay);
    return cmocka_run_group_tests(tests, open_files, close_files);
}
