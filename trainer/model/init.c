/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c: new models. A random element is a function of seed, tensor name and its own number, so
 * threads may fill any part in any order and sharding changes nothing. Weights that are taken over go
 * from the mapped file to the new one, a tensor at a time.
 */
#include "model/init.h"

#include "base/float16.h"
#include "base/try.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/path.h"
#include "io/random.h"
#include "model/file_rows.h"
#include "model/model_open.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Number of elements filled between two writes. */
#define BLOCK ((int64_t)1 << 22)

/* ---- random numbers ---- */

/* Compute two normal numbers with deviation 0.02 (Box and Muller 1958), a function of (key, i). */
static void normal_pair(uint64_t key, uint64_t i, float out[2])
{
    const uint64_t bits = random_mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
    const double u = ((double)(bits >> 32) + 0.5) * 0x1p-32; /* in (0, 1) */
    const double angle = (double)(bits & 0xffffffffu) * (0x1p-32 * 6.283185307179586);
    const double radius = 0.02 * sqrt(-2.0 * log(u));
    out[0] = (float)(radius * cos(angle));
    out[1] = (float)(radius * sin(angle));
}

/* Compute the logarithms of two rates of decay between 0.01 and 16, as transformers chooses them. */
static void decay_pair(uint64_t key, uint64_t i, float out[2])
{
    const uint64_t bits = random_mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
    for (int k = 0; k < 2; k++)
        out[k] = (float)log(0.01 + 15.99 * (double)(bits >> 32 * k & 0xffffffffu) * 0x1p-32);
}

/* ---- filling ---- */

enum fill { FILL_NORMAL, FILL_GAIN, FILL_ZERO, FILL_ONE, FILL_DECAY };

static const enum fill fills[ROLE_COUNT] = {
    [ROLE_INPUT_NORM] = FILL_GAIN,       [ROLE_ATTENTION_POST_NORM] = FILL_GAIN,
    [ROLE_FFN_NORM] = FILL_GAIN,         [ROLE_FFN_POST_NORM] = FILL_GAIN,
    [ROLE_FINAL_NORM] = FILL_GAIN,       [ROLE_Q_NORM] = FILL_GAIN,
    [ROLE_K_NORM] = FILL_GAIN,           [ROLE_Q_BIAS] = FILL_ZERO,
    [ROLE_K_BIAS] = FILL_ZERO,           [ROLE_V_BIAS] = FILL_ZERO,
    [ROLE_O_BIAS] = FILL_ZERO,           [ROLE_SINKS] = FILL_ZERO,
    [ROLE_GATE_BIAS] = FILL_ZERO,        [ROLE_UP_BIAS] = FILL_ZERO,
    [ROLE_DOWN_BIAS] = FILL_ZERO,        [ROLE_EXPERTS_NORM] = FILL_GAIN,
    [ROLE_ROUTER_BIAS] = FILL_ZERO,      [ROLE_CORRECTION] = FILL_ZERO,
    [ROLE_EXPERT_GATE_BIAS] = FILL_ZERO, [ROLE_EXPERT_UP_BIAS] = FILL_ZERO,
    [ROLE_EXPERT_DOWN_BIAS] = FILL_ZERO, [ROLE_EXPERTS_POST_NORM] = FILL_GAIN,
    [ROLE_CONV_NORM] = FILL_GAIN,        [ROLE_CONV_POST_NORM] = FILL_GAIN,
    [ROLE_DELTA_NORM] = FILL_GAIN,       [ROLE_DELTA_POST_NORM] = FILL_GAIN,
    [ROLE_DELTA_GAIN] = FILL_ONE,        [ROLE_DELTA_STEP] = FILL_ONE,
    [ROLE_DELTA_LOG] = FILL_DECAY,
};

/* Return what the model adds to the gain that a tensor holds. */
static float offset_of(const struct model_config *c, const struct tensor_spec *spec)
{
    return spec->layer < 0
               ? c->gain_offset
               : arch_block(&c->arch, spec->layer, tensor_block(spec->role))->gain_offset;
}

static void store(void *block, int64_t i, enum nj_tensor_type dtype, float x)
{
    if (dtype == NJ_TYPE_F32)
        ((float *)block)[i] = x;
    else
        ((uint16_t *)block)[i] = dtype == NJ_TYPE_BF16 ? bf16_from_f32(x) : f16_from_f32(x);
}

/* Fill elements first..first + count - 1 of a tensor, whose gains are `one`; first is even. */
static void fill_block(void *block, int64_t first, int64_t count, enum fill fill, float one,
                       uint64_t key, enum nj_tensor_type dtype)
{
    const float constant = fill == FILL_GAIN ? one : fill == FILL_ONE ? 1 : 0;
    const int64_t pairs = (count + 1) / 2;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < pairs; p++) {
        float pair[2] = {constant, constant};
        if (fill == FILL_NORMAL)
            normal_pair(key, (uint64_t)(first / 2 + p), pair);
        if (fill == FILL_DECAY)
            decay_pair(key, (uint64_t)(first / 2 + p), pair);
        store(block, 2 * p, dtype, pair[0]);
        if (2 * p + 1 < count)
            store(block, 2 * p + 1, dtype, pair[1]);
    }
}

/* ---- sources of weights ---- */

struct source {
    const struct model_config *c;
    enum nj_tensor_type dtype;  /* type in the file */
    bool as_they_are;           /* whether weights that are taken over keep their own type */
    uint64_t seed;              /* seed of random weights */
    const struct tensors *from; /* tensors that are taken over; NULL: random weights */
    const char *dir;            /* folder of these tensors */
    const int *layers;          /* layer of `from` that each layer becomes */
    int experts;                /* number of experts of each layer of `from`; 0: as many as c has */
    struct tensor_spec *spec;   /* tensors of the model */
};

/* Find the tensor that becomes spec. */
static int find_taken(const struct source *s, const struct tensor_spec *spec,
                      const struct tensor **out)
{
    struct tensor_spec old = *spec;
    if (spec->layer >= 0) {
        const char *part = strchr(spec->name + strlen("model.layers."), '.');
        snprintf(old.name, sizeof old.name, "model.layers.%d%s", s->layers[spec->layer], part);
    }
    if (s->experts > 0 && (spec->role == ROLE_ROUTER_WEIGHT || spec->role == ROLE_ROUTER_BIAS ||
                           spec->role == ROLE_CORRECTION))
        old.shape[0] = s->experts; /* the first rows are taken over */
    *out = tensors_find(s->from, old.name);
    return weights_check(s->dir, &old, *out);
}

static int declare(const struct source *s, const struct file_tensor *file, size_t count,
                   struct st_declared *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct tensor_spec *spec = &file[i].spec;
        const struct tensor *t = NULL;
        if (s->from)
            TRY(find_taken(s, &s->spec[file[i].part[0]], &t));
        const enum nj_tensor_type dtype = tensor_is_wide(spec->role) ? NJ_TYPE_F32 : s->dtype;
        out[i] = (struct st_declared){spec->name,
                                      t && s->as_they_are ? tensor_expanded(t) : dtype,
                                      spec->rank,
                                      {spec->shape[0], spec->shape[1], spec->shape[2]}};
    }
    return 0;
}

static void convert_block(void *block, const struct tensor *t, int64_t first, int64_t count,
                          enum nj_tensor_type dtype)
{
    if (dtype == NJ_TYPE_F32)
        tensor_to_f32(t, first, count, block);
    else
        tensor_to_16(t, first, count, dtype == NJ_TYPE_F16, block);
}

/* Write elements of a tensor that is taken over; block: room for BLOCK elements. */
static int write_elements(struct st_folder_writer *w, const struct tensor *t, int64_t first,
                          int64_t count, enum nj_tensor_type dtype, void *block)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        convert_block(block, t, first + at, n, dtype);
        TRY(st_folder_data(w, block, tensor_type_bytes(dtype, n)));
    }
    return 0;
}

/* Write a tensor that is taken over. */
static int write_taken(struct st_folder_writer *w, const struct source *s,
                       const struct file_tensor *file, enum nj_tensor_type dtype, void *block)
{
    const int64_t columns = file_columns(&file->spec);
    const struct tensor *t;
    struct file_run run;
    TRY(find_taken(s, &s->spec[file->part[0]], &t));
    if (t->dtype == dtype && tensor_is_as_stored(t))
        return st_folder_data(w, t->data, tensor_type_bytes(dtype, tensor_elements(&file->spec)));
    for (int64_t row = 0; row < file->spec.shape[0]; row += run.count) {
        run = file_run(s->c, file, s->spec, row);
        TRY(find_taken(s, &s->spec[run.spec], &t));
        TRY(write_elements(w, t, run.row * columns, run.count * columns, dtype, block));
    }
    return 0;
}

/* Write a tensor of random elements. */
static int write_random(struct st_folder_writer *w, const struct source *s,
                        const struct tensor_spec *spec, enum nj_tensor_type dtype, void *block)
{
    const uint64_t key = XXH3_64bits_withSeed(spec->name, strlen(spec->name), s->seed);
    const int64_t elements = tensor_elements(spec);
    for (int64_t at = 0; at < elements; at += BLOCK) {
        const int64_t n = elements - at < BLOCK ? elements - at : BLOCK;
        fill_block(block, at, n, fills[spec->role], 1 - offset_of(s->c, spec), key, dtype);
        TRY(st_folder_data(w, block, tensor_type_bytes(dtype, n)));
    }
    return 0;
}

static int write_weights(const char *dir, const struct source *s, const struct file_tensor *file,
                         const struct st_declared *declared, size_t count, int64_t max_shard_bytes)
{
    struct st_folder_writer *w = NULL;
    void *block = malloc((size_t)BLOCK * sizeof(float));
    if (!block)
        return fail(NJ_E_NOMEM, "%s: out of memory for a block of weights", dir);
    int rc = st_folder_begin(dir, declared, count, max_shard_bytes, &w);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = s->from ? write_taken(w, s, &file[i], declared[i].dtype, block)
                     : write_random(w, s, &file[i].spec, declared[i].dtype, block);
    if (rc == 0) {
        rc = st_folder_end(w);
        w = NULL;
    }
    st_folder_abort(w);
    free(block);
    return rc;
}

/* Write generation_config.json, unless another model's was copied. */
static int write_generation_config(const char *dir, const struct model_config *c)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    if (access(path, F_OK) == 0)
        return 0;
    FILE *file = fopen(path, "w");
    if (!file)
        return fail(NJ_E_IO, "%s: cannot write it: %s", path, strerror(errno));
    fputs("{\n", file);
    if (c->bos_id >= 0)
        fprintf(file, "  \"bos_token_id\": %d,\n", c->bos_id);
    if (c->eos_id >= 0)
        fprintf(file, "  \"eos_token_id\": %d,\n", c->eos_id);
    fputs("  \"do_sample\": false\n}\n", file);
    int bad = ferror(file);
    if (fclose(file) != 0 || bad)
        return fail(NJ_E_IO, "%s: cannot write it: %s; check the free space", path,
                    strerror(errno));
    return 0;
}

static int write_model(const char *dir, const struct model_config *c, struct source *s,
                       int64_t max_shard_bytes, const char *tokenizer)
{
    struct file_tensor *file = NULL;
    struct st_declared *declared = NULL;
    size_t specs = 0, count = 0;
    struct folder folder;
    int rc = config_check(c, dir);
    if (rc != 0 || (rc = tensor_specs(c, &s->spec, &specs)))
        return rc;
    if ((rc = file_tensors(c, s->spec, specs, &file, &count)))
        goto done;
    declared = calloc(count, sizeof *declared);
    rc = declared ? declare(s, file, count, declared)
                  : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", dir, count);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        bytes += st_declared_bytes(&declared[i]);
    if (rc != 0 || (rc = folder_check_model_space(dir, bytes)) || (rc = folder_begin(&folder, dir)))
        goto done;
    const char *dtype = tensor_type_torch(declared[0].dtype);
    if ((rc = s->from ? source_write_config(s->dir, folder.temp, c, dtype)
                      : config_write(folder.temp, c, dtype)) ||
        (tokenizer && (rc = source_side_files(tokenizer, folder.temp))) ||
        (rc = write_generation_config(folder.temp, c)) ||
        (rc = write_weights(folder.temp, s, file, declared, count, max_shard_bytes)))
        folder_abort(&folder);
    else
        rc = folder_commit(&folder);
done:
    free(declared);
    free(file);
    free(s->spec);
    return rc;
}

int init_model(const char *dir, const struct model_config *c, uint64_t seed,
               enum nj_tensor_type dtype, int64_t max_shard_bytes, const char *tokenizer)
{
    struct source s = {.c = c, .seed = seed, .dtype = dtype};
    return write_model(dir, c, &s, max_shard_bytes, tokenizer);
}

int init_from_layers(const char *dir, const struct model_config *c, const char *from,
                     const int *layers, int experts, const enum nj_tensor_type *dtype,
                     int64_t max_shard_bytes)
{
    struct tensors w;
    int rc = source_tensors(from, &w);
    if (rc != 0)
        return rc;
    struct source s = {.c = c,
                       .dtype = dtype ? *dtype : NJ_TYPE_F32,
                       .as_they_are = !dtype,
                       .from = &w,
                       .dir = from,
                       .layers = layers,
                       .experts = experts};
    rc = write_model(dir, c, &s, max_shard_bytes, from);
    tensors_close(&w);
    return rc;
}
