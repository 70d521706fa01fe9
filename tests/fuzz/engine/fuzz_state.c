/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_state.c: state.bin of a checkpoint, read into an engine that trains the smallest adapters of
 * the smallest model. A layout or a hash of 0 in the file stands for the right one, so that what
 * lies behind it is reached.
 */
#include "engine/engine.h"
#include "fuzz.h"
#include "io/error.h"
#include "model/init.h"
#include "state/engine_struct.h"
#include "weights/model_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The header of version 1, by place: tests/fuzz/make_corpus.py has its fields. */
enum { LAYOUT_AT = 16, HASHES_AT = 120, HEADER_HASH_AT = 144, HEADER_BYTES = 152, SECTIONS = 3 };
/* The head of version 2 and its records: a tag, bytes, and their hash. */
enum { RECORDS_HASH_AT = 16, HEAD_BYTES = 24, TAG_BYTES = 16, RECORD_BYTES = 32 };

static const struct model_config smallest = {
    .model_type = "llama",
    .hidden_size = 8,
    CONFIG_PLAIN(1, 1, 64, 8, 0),
    .layers = 1,
    .vocab_size = 8,
    .max_positions = 8,
    .bos_id = -1,
    .eos_id = -1,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e4),
    .tied = true,
};
static const struct train_options options = {
    .batch_size = 1,
    .seq_len = 1,
    .grad_accum = 1,
    .steps = 4,
    .temperature = 1,
    .lr = 1,
    .beta1 = 0.9f,
    .beta2 = 0.9f,
    .eps = 1e-8f,
    .dtype = NJ_F32,
    .head_chunk = 1,
    .lora = {.rank = 1, .alpha = 1, .target = {[LORA_Q] = true}},
};

static void need(int rc)
{
    if (rc)
        fprintf(stderr, "%s\n", fail_text());
    FUZZ_CHECK(rc == 0);
}

/* The engine keeps its weights when the files are gone. */
static struct engine *open_engine(void)
{
    static const char *const files[] = {"config.json", "generation_config.json",
                                        "model.safetensors"};
    const struct nj_options cpu = {.device = NJ_DEVICE_CPU};
    char model[256], path[512];
    nj_context *ctx;
    struct engine *e;
    snprintf(model, sizeof model, "%s/model", fuzz_folder());
    need(nj_context_create(&ctx, &cpu));
    need(init_model(model, &smallest, 1, NJ_TYPE_F32, 1 << 20, NULL));
    need(engine_create(ctx, model, NULL, &options, NULL, NULL, &e));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", model, files[i]);
        unlink(path);
    }
    FUZZ_CHECK(rmdir(model) == 0);
    return e;
}

static void fill(uint8_t *file, size_t at, uint64_t value)
{
    const uint64_t none = 0;
    if (memcmp(file + at, &none, sizeof none) == 0)
        memcpy(file + at, &value, sizeof value);
}

static void fill_version_1(uint8_t *file, size_t bytes, size_t section_bytes, uint64_t layout)
{
    if (bytes < HEADER_BYTES)
        return;
    fill(file, LAYOUT_AT, layout);
    for (size_t i = 0; i < SECTIONS; i++)
        if (bytes - HEADER_BYTES >= (i + 1) * section_bytes)
            fill(file, HASHES_AT + 8 * i,
                 XXH3_64bits(file + HEADER_BYTES + i * section_bytes, section_bytes));
    fill(file, HEADER_HASH_AT, XXH3_64bits(file, HEADER_HASH_AT));
}

/* Call visit for each record whose bytes are there, then fill in the hash of all. */
static void each_record(uint8_t *file, size_t bytes,
                        void (*visit)(uint8_t *record, uint8_t *data, uint64_t size, void *user),
                        void *user)
{
    uint32_t count = 0;
    memcpy(&count, file + 12, sizeof count);
    if (count > (bytes - HEAD_BYTES) / RECORD_BYTES)
        return;
    size_t at = HEAD_BYTES + (size_t)count * RECORD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *record = file + HEAD_BYTES + (size_t)i * RECORD_BYTES;
        uint64_t size;
        memcpy(&size, record + TAG_BYTES, sizeof size);
        if (size > bytes - at)
            break;
        visit(record, file + at, size, user);
        at += size;
    }
    fill(file, RECORDS_HASH_AT, XXH3_64bits(file + HEAD_BYTES, (size_t)count * RECORD_BYTES));
}

static bool is_layout(const uint8_t *record, uint64_t size)
{
    return size == sizeof(uint64_t) && memcmp(record, "layout", sizeof "layout") == 0;
}

static void fill_record(uint8_t *record, uint8_t *data, uint64_t size, void *layout)
{
    if (is_layout(record, size))
        fill(data, 0, *(uint64_t *)layout);
    fill(record, TAG_BYTES + 8, XXH3_64bits(data, size));
}

static void take_layout(uint8_t *record, uint8_t *data, uint64_t size, void *layout)
{
    if (is_layout(record, size))
        memcpy(layout, data, sizeof(uint64_t));
}

/* Read the layout that the engine itself writes. */
static uint64_t read_layout(struct engine *e)
{
    const struct data_state at = {0};
    uint8_t file[4096];
    char path[512];
    uint64_t layout = 0;
    need(engine_save_state(e, fuzz_folder(), 0, &at));
    snprintf(path, sizeof path, "%s/state.bin", fuzz_folder());
    FILE *f = fopen(path, "rb");
    FUZZ_CHECK(f != NULL);
    const size_t bytes = fread(file, 1, sizeof file, f);
    fclose(f);
    FUZZ_CHECK(bytes > HEAD_BYTES && bytes < sizeof file);
    each_record(file, bytes, take_layout, &layout);
    FUZZ_CHECK(layout != 0);
    return layout;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct engine *e;
    static uint64_t layout;
    struct data_state at;
    int64_t step;
    if (!e) {
        e = open_engine();
        layout = read_layout(e);
    }
    uint8_t *file = malloc(bytes + 1);
    FUZZ_CHECK(file);
    memcpy(file, data, bytes);
    if (bytes >= HEAD_BYTES && file[8] == 2)
        each_record(file, bytes, fill_record, &layout);
    else
        fill_version_1(file, bytes, (size_t)engine_trained(e)->count * sizeof(float), layout);
    fuzz_file("state.bin", file, bytes);
    free(file);
    const int rc = engine_load_state(e, fuzz_folder(), &step, &at);
    FUZZ_CHECK(rc != 0 || (step >= 0 && e->step == step));
    fuzz_verdict(rc == 0, fail_text());
    return 0;
}
