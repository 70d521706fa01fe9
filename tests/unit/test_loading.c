/* SPDX-License-Identifier: Apache-2.0
 *
 * test_loading.c: weights that several threads read, hash, convert and send. The bytes on the device, the hash and the
 * tensor that is refused do not depend on the number of threads.
 */
#include "engine_fixture.h"
#include "formats/safetensors.h"
#include "hash_tensors.h"
#include "run/teacher_types.h"

#include <omp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A model with matrices of 5.5 MiB and 11 MiB: several chunks of the hash, and not a whole number of them. */
static const struct model_config large = {
    .model_type = "llama",
    .hidden_size = 1024,
    CONFIG_PLAIN(8, 2, 128, 1408, 0),
    .layers = 2,
    .vocab_size = VOCAB,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-5f,
    CONFIG_ROPE(1e4),
    .tied = true,
};
static const int threads[] = {1, 2, 3, 40};
enum { COUNTS = sizeof threads / sizeof *threads };

static int open_all(void **state)
{
    const int rc = fixture_open(state);
    ok(init_model(path_of("large"), &large, 4, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("half"), &large, 4, NJ_TYPE_BF16, 1 << 24, NULL));
    return rc;
}

/* Return a hash of all device memory of the teacher, whatever its format. */
static uint64_t on_device(const struct engine *e)
{
    return XXH3_64bits(e->teacher.weights, region_bytes(&e->plan, "teacher.weights"));
}

static uint64_t hash_of_files(const char *name)
{
    struct tensors w;
    ok(st_open(path_of(name), &w));
    const uint64_t hash = hash_tensors(&w);
    tensors_close(&w);
    return hash;
}

static void check_arena(const struct engine *e, const char *name)
{
    const struct params *p = &e->teacher.net.p;
    struct tensors w;
    ok(st_open(path_of(name), &w));
    for (size_t i = 0; i < p->specs; i++) {
        const int64_t count = tensor_elements(&p->spec[i]);
        const float *here = (const float *)(const void *)e->teacher.weights + p->first[i];
        float *wanted = malloc((size_t)count * sizeof *wanted);
        assert_non_null(wanted);
        tensor_to_f32(tensors_find(&w, p->spec[i].name), 0, count, wanted);
        if (memcmp(here, wanted, (size_t)count * sizeof *wanted) != 0)
            fail_msg("%s: tensor %s is not what its file says", name, p->spec[i].name);
        free(wanted);
    }
    tensors_close(&w);
}

static void threads_change_nothing_in_loaded_weights(void **state)
{
    static const char *const folders[] = {"large", "half"};
    (void)state;
    unsigned char *types;
    ok(teacher_types_as(&large, TEACHER_Q8_0, &types));
    for (int k = 0; k < 6; k++) {
        const char *name = folders[k % 2];
        const uint64_t hash = hash_of_files(name);
        uint64_t first = 0;
        struct train_options o = small_options;
        o.steps = 0;
        o.teacher_fp8 = k / 2 == 1;
        o.teacher_types = k / 2 == 2 ? types : NULL;
        for (int n = 0; n < COUNTS; n++) {
            omp_set_num_threads(threads[n]);
            struct engine *e = open_engine("qwen2", name, &o);
            first = n == 0 ? on_device(e) : first;
            assert_true(on_device(e) == first);
            assert_true(engine_teacher_hash(e) == hash);
            assert_true(engine_student_hash(e) == hash_of_files("qwen2"));
            if (k < 2)
                check_arena(e, name);
            engine_destroy(e);
        }
    }
    free(types);
}

/* Put an infinity in the middle of a tensor. */
static void break_tensor(const char *folder, const char *name)
{
    static const float infinite = INFINITY;
    struct tensors w;
    char path[160];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    ok(st_open(folder, &w));
    const struct tensor *t = tensors_find(&w, name);
    const long at = (const char *)t->data - (const char *)w.map[0].base + (long)(t->bytes / 8) * 4;
    tensors_close(&w);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(&infinite, sizeof infinite, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static void the_first_broken_tensor_is_named(void **state)
{
    static const char *const broken[] = {"model.layers.1.mlp.down_proj.weight",
                                         "model.layers.1.mlp.up_proj.weight",
                                         "model.layers.0.mlp.gate_proj.weight"};
    (void)state;
    struct train_options o = small_options;
    unsigned char *types;
    ok(teacher_types_as(&large, TEACHER_Q8_0, &types));
    o.teacher_types = types;
    ok(init_model(path_of("broken"), &large, 4, NJ_TYPE_F32, 1 << 30, NULL));
    for (int b = 0; b < 3; b++) {
        break_tensor(path_of("broken"), broken[b]);
        for (int n = 0; n < 4 * COUNTS; n++) {
            struct engine *e;
            omp_set_num_threads(threads[n % COUNTS]);
            assert_int_equal(
                engine_create(ctx, path_of("qwen2"), path_of("broken"), &o, NULL, NULL, &e),
                NJ_E_FORMAT);
            if (!strstr(fail_text(), broken[b]) || !strstr(fail_text(), "use another release"))
                fail_msg("%d threads: %s; wanted: %s", threads[n % COUNTS], fail_text(), broken[b]);
        }
    }
    free(types);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing_in_loaded_weights),
        cmocka_unit_test(the_first_broken_tensor_is_named),
    };
    return cmocka_run_group_tests_name("loading", tests, open_all, fixture_close);
}
