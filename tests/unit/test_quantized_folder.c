/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quantized_folder.c: the folders of tests/golden/quantized, whose matrices are quantized in formats of
 * safetensors: every weight, as described in tests/golden/make_quantized_folders.py; and folders with false statements.
 */
#include "formats/safetensors.h"
#include "hash_tensors.h"
#include "model/model_open.h"
#include "ref/blocks.h"
#include "unit.h"
#include "weights/block_scales.h"

#define FOLDERS "tests/golden/quantized/"
#define DOWN "model.layers.0.mlp.down_proj."
#define QUERY "model.layers.0.self_attn.q_proj."

/* Types of matrices with 64 and with 128 columns. */
static const struct format {
    const char *name;
    enum nj_tensor_type narrow, wide;
} formats[] = {
    {"nf4", NJ_TYPE_NF4, NJ_TYPE_NF4},
    {"nf4-nested", NJ_TYPE_NF4, NJ_TYPE_NF4},
    {"gptq", NJ_TYPE_I4_64, NJ_TYPE_I4_64},
    {"gptq-v2", NJ_TYPE_I4_64, NJ_TYPE_I4_128},
    {"awq", NJ_TYPE_I4_32, NJ_TYPE_I4_32},
    {"packed", NJ_TYPE_I4_32, NJ_TYPE_I4_32},
    {"packed-zeros", NJ_TYPE_I4_64, NJ_TYPE_I4_128},
    {"packed-bytes", NJ_TYPE_I4_64, NJ_TYPE_I4_64},
    {"float-tensor", NJ_TYPE_F8_32, NJ_TYPE_F8_128},
    {"float-channel", NJ_TYPE_F8_32, NJ_TYPE_F8_128},
    {"fp8", NJ_TYPE_F8_32, NJ_TYPE_F8_32},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static uint32_t crc_32(const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static char *folder(const char *name, const char *rest)
{
    static char path[256];
    snprintf(path, sizeof path, FOLDERS "%s%s", name, rest);
    return path;
}

/* Check that reading rows of blocks and reading elements agree. */
static void check_rows(const struct tensor *t)
{
    const int64_t rows = t->shape[0], columns = t->shape[1], first = 5;
    const size_t each = tensor_type_bytes(t->dtype, tensor_type_block(t->dtype));
    unsigned char *blocks = malloc(t->bytes);
    float *x = malloc((size_t)columns * sizeof *x), y[BLOCK_ELEMENTS_MOST];
    assert_true(blocks && x);
    tensor_rows(t, first, rows - first, blocks);
    for (int64_t r = first; r < rows; r++) {
        const unsigned char *b = blocks + tensor_type_bytes(t->dtype, (r - first) * columns);
        tensor_to_f32(t, r * columns + 3, columns - 3, x + 3);
        for (int64_t c = 0; c < columns; c += tensor_type_block(t->dtype), b += each) {
            block_of[t->dtype](b, y);
            const int skip = c == 0 ? 3 : 0;
            assert_memory_equal(x + c + skip, y + skip,
                                (size_t)(tensor_type_block(t->dtype) - skip) * sizeof *y);
        }
    }
    free(blocks);
    free(x);
}

static void weights_are_those_of_the_format(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        char name[128];
        unsigned crc;
        size_t count = 0;
        struct tensors w;
        check_ok(source_tensors(folder(formats[f].name, ""), &w), formats[f].name);
        FILE *table = fopen(folder(formats[f].name, ".crc"), "r");
        assert_non_null(table);
        while (fscanf(table, "%127s %x", name, &crc) == 2) {
            uint16_t x[64 * 128];
            const struct tensor *t = tensors_find(&w, name);
            assert_non_null(t);
            const int64_t elements = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
            assert_true(elements <= (int64_t)(sizeof x / sizeof *x));
            tensor_to_16(t, 0, elements, 0, x);
            if (crc_32(x, (size_t)elements * sizeof *x) != crc)
                fail_msg("%s: %s", formats[f].name, name);
            if (t->dtype != NJ_TYPE_BF16) {
                assert_int_equal(t->dtype,
                                 t->shape[1] == 128 ? formats[f].wide : formats[f].narrow);
                check_rows(t);
            }
            count++;
        }
        assert_int_equal(count, w.count);
        fclose(table);
        tensors_close(&w);
    }
}

/* A matrix takes the bytes that the files hold, no more: 4 or 8 bits per weight, and the scales. */
static void weights_keep_their_size(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        struct tensors w;
        check_ok(source_tensors(folder(formats[f].name, ""), &w), formats[f].name);
        const struct tensor *t = tensors_find(&w, DOWN "weight");
        const size_t numbers = t->dtype >= NJ_TYPE_F8_32 ? 8192 : 4096;
        assert_true(t->bytes > numbers && t->bytes <= numbers + 1024);
        tensors_close(&w);
    }
}

/* Copy a folder, replacing each `from` in a file by `to`; in the header of weights both have the same length. */
static void copy_file(const char *format, const char *file, const char *from, const char *to)
{
    char path[300];
    snprintf(path, sizeof path, FOLDERS "%s/%s", format, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = malloc(1 << 20), *end = data;
    assert_non_null(data);
    end += fread(data, 1, 1 << 20, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/%s", at("folder"), file);
    f = fopen(path, "wb");
    assert_non_null(f);
    const size_t n = from ? strlen(from) : 0;
    bool found = !from;
    for (char *p = data; p < end;) {
        if (n && (size_t)(end - p) >= n && memcmp(p, from, n) == 0) {
            fwrite(to, 1, strlen(to), f);
            p += n;
            found = true;
        } else {
            fputc(*p++, f);
        }
    }
    fclose(f);
    free(data);
    if (!found)
        fail_msg("%s: no %s", format, from);
}

static void copy_folder(const char *format, const char *file, const char *from, const char *to)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    mkdir(at("folder"), 0777);
    for (int i = 0; i < 2; i++) {
        const bool changed = file && strcmp(files[i], file) == 0;
        copy_file(format, files[i], changed ? from : NULL, to);
    }
}

static const struct lie {
    const char *format, *file, *from, *to;
    int code;
    const char *sentence;
} lies[] = {
#define CONFIG(format, from, to, sentence)                                                         \
    {                                                                                              \
        format, "config.json", from, to, NJ_E_UNSUPPORTED, sentence                                \
    }
    CONFIG("nf4", "\"nf4\"", "\"fp4\"", "bnb_4bit_quant_type is \"fp4\"; of bitsandbytes nf4"),
    CONFIG("nf4", "\"load_in_4bit\": true", "\"load_in_4bit\": false", "load_in_4bit is false"),
    CONFIG("gptq", "\"bits\": 4", "\"bits\": 8", "bits is 8; 4 bits are read"),
    CONFIG("gptq", "\"group_size\": 64", "\"group_size\": 0", "group_size is 0; it must be -1"),
    CONFIG("gptq", "\"group_size\": 64", "\"group_size\": \"all\"", "group_size is \"all\""),
    CONFIG("gptq", "\"group_size\": 64", "\"group_size\": 16",
           "64 columns and a scale for each 16; both must be multiples of 32"),
    CONFIG("gptq-v2", "gptq_v2", "marlin", "checkpoint_format is \"marlin\"; gptq and gptq_v2"),
    CONFIG("awq", "gemm", "gemv", "version is \"gemv\"; of AWQ the version gemm"),
    CONFIG("awq", "\"quant_method\": \"awq\"", "\"quant_method\": \"hqq\"",
           "quant_method is \"hqq\"; bitsandbytes (NF4), gptq, awq, compressed-tensors, fp8 "),
    CONFIG("packed", "pack-quantized", "nvfp4-pack-quantized", "is \"nvfp4-pack-quantized\"; of"),
    CONFIG("packed", "\"num_bits\": 4", "\"num_bits\": 3", "num_bits is 3; 4 bits are read"),
    CONFIG("packed", "\"type\": \"int\"", "\"type\": \"float\"", "type is \"float\"; of this"),
    CONFIG("packed", "\"config_groups\"", "\"config_group\"", "config_groups is missing"),
    CONFIG("float-tensor", "\"type\": \"float\"", "\"type\": \"int\"",
           "type is \"int\"; of this format float"),
    CONFIG("float-tensor", "\"num_bits\": 8", "\"num_bits\": 4", "num_bits is 4; 8 bits"),
    CONFIG("fp8", "e4m3", "e5m2", "fmt is \"e5m2\"; e4m3 is read"),
    CONFIG("fp8", "48,", "0,", "weight_block_size is [0,64]; it must be a list of two"),
#undef CONFIG
    {"gptq", "config.json", "\"group_size\": 64", "\"group_size\": 32", NJ_E_FORMAT,
     QUERY "qzeros is not what quantized weights of 64 rows and 64 columns come with"},
    {"gptq", "config.json", "\"quantization_config\"", "\"task_specific_params\"", NJ_E_UNSUPPORTED,
     "is I32; F32, BF16 and F16 are supported"},
    {"gptq", "config.json", "\"desc_act\": false", "\"dynamic\": {\"x\": 1}", NJ_E_UNSUPPORTED,
     "dynamic is {\"x\":1}; one scheme"},
    {"packed", "config.json", "\"type\": \"int\"", "\"type\": \"int\", \"actorder\": \"group\"",
     NJ_E_FORMAT, "its part weight_g_idx is missing"},
    {"packed", "config.json", "\"type\": \"int\"", "\"type\": \"int\", \"actorder\": \"last\"",
     NJ_E_UNSUPPORTED, "actorder is \"last\""},
    {"packed", "config.json", "\"type\": \"int\"", "\"type\": \"int\", \"symmetric\": false",
     NJ_E_FORMAT, "its part weight_zero_point is missing"},
    {"packed", "config.json", "\"format\"",
     "\"transform_config\": {\"config_groups\": {}}, \"format\"", NJ_E_UNSUPPORTED,
     "weights that were transformed are not read"},
    {"packed", "config.json", "\"format\"",
     "\"sparsity_config\": {\"format\": \"sparse-24\"}, \"format\"", NJ_E_UNSUPPORTED,
     "sparsity_config is "},
    {"packed-zeros", "config.json", "\"group_size\": null", "\"group_size\": 64", NJ_E_FORMAT,
     DOWN "weight_scale is not what"},
    {"fp8", "config.json", "48,", "16,", NJ_E_FORMAT, "weight_scale_inv is not what"},
    {"gptq", "config.json", "\"gptq\"", "\"fp8\"", NJ_E_UNSUPPORTED,
     "g_idx is not part of weights that are quantized as config.json says"},
#define HEADER(format, from, to, code, sentence)                                                   \
    {                                                                                              \
        format, "model.safetensors", from, to, code, sentence                                      \
    }
    HEADER("nf4", QUERY "weight.absmax", QUERY "weight.absmix", NJ_E_FORMAT,
           QUERY "weight is quantized, and its part absmax is missing"),
    HEADER("nf4", "\"quant_type\": \"nf4\"", "\"quant_type\": \"nf5\"", NJ_E_FORMAT,
           "quant_state.bitsandbytes__nf4 is not what"),
    HEADER("nf4", "\"blocksize\": 64", "\"blocksize\": 32", NJ_E_UNSUPPORTED,
           "a scale for each 32; both must be multiples of 64"),
    HEADER("nf4", "\"blocksize\": 64", "\"blocksize\": 99", NJ_E_UNSUPPORTED, "multiples of 64"),
    HEADER("nf4", "\"shape\": [64, 128]}", "\"shape\": [64, 129]}", NJ_E_FORMAT, "is not what"),
    HEADER("nf4", "\"shape\": [64, 64]}", "\"shape\": [64, 64)}", NJ_E_FORMAT,
           "weight.quant_state.bitsandbytes__nf4"),
    HEADER("nf4-nested", "\"nested_blocksize\": 16", "\"nested_blocksize\": 32", NJ_E_FORMAT,
           "nested_absmax is not what"),
    HEADER("nf4-nested", "\"nested_blocksize\": 16", "\"nested_blocksize\": -6", NJ_E_FORMAT,
           "quant_state.bitsandbytes__nf4 is not what"),
    HEADER("nf4-nested", "\"nested_offset\": 0.06", "\"nested_offset\": 9e99", NJ_E_FORMAT,
           "weight.quant_state.bitsandbytes__nf4"),
    HEADER("gptq", QUERY "qzeros", QUERY "qqeros", NJ_E_FORMAT, "its part qzeros is missing"),
    HEADER("gptq", QUERY "scales", QUERY "scale2", NJ_E_FORMAT, "its part scales is missing"),
    HEADER("packed", QUERY "weight_shape", QUERY "weight_g_idx", NJ_E_UNSUPPORTED,
           "weight_g_idx spreads the columns of a group (actorder)"),
    HEADER("packed", QUERY "weight_packed", QUERY "weight_picked", NJ_E_UNSUPPORTED,
           "weight_picked is not part of weights that are quantized"),
    HEADER("packed-bytes", "\"I8\"", "\"U8\"", NJ_E_FORMAT, "weight_zero_point is not what"),
    HEADER("float-channel", QUERY "weight_scale", QUERY "weight_scalf", NJ_E_FORMAT,
           "its part weight_scale is missing"),
#undef HEADER
};

static void lying_quantized_folders_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct lie *l = &lies[i];
        struct tensors w;
        copy_folder(l->format, l->file, l->from, l->to);
        check_refused(source_tensors(at("folder"), &w), l->code, l->sentence, l->from);
    }
}

/* Copy a folder with one byte of a tensor changed. */
static void copy_broken(const char *format, const char *name, size_t byte, unsigned char value)
{
    struct tensors w;
    copy_folder(format, NULL, NULL, NULL);
    check_ok(st_open_parts(at("folder"), &w), format);
    const struct tensor *t = tensors_find(&w, name);
    assert_true(t && byte < t->bytes);
    const long place = (const char *)t->data - (const char *)w.map[0].base;
    tensors_close(&w);
    FILE *f = fopen(at("folder/model.safetensors"), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, place + (long)byte, SEEK_SET), 0);
    fputc(value, f);
    fclose(f);
}

static void columns_of_a_group_must_lie_together(void **state)
{
    (void)state;
    struct tensors w;
    copy_broken("gptq", DOWN "g_idx", (size_t)4 * 63, 1);
    check_refused(source_tensors(at("folder"), &w), NJ_E_UNSUPPORTED,
                  DOWN "g_idx spreads the columns of a group (desc_act)", "g_idx");
}

static void codes_other_than_nf4_are_refused(void **state)
{
    (void)state;
    struct tensors w;
    copy_broken("nf4", DOWN "weight.quant_map", (size_t)4 * 3, 0);
    check_refused(source_tensors(at("folder"), &w), NJ_E_UNSUPPORTED,
                  DOWN "weight.quant_map is not the code of NF4", "quant_map");
}

/* Only the scale of a block can be NaN. */
static void nan_in_a_quantized_folder_is_found(void **state)
{
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        unsigned char rows[64 * 132];
        struct tensors w;
        copy_broken("float-tensor", DOWN "weight", 5 * 128 + 77, broken ? 0xff : 0x7e);
        check_ok(source_tensors(at("folder"), &w), "folder");
        const struct tensor *t = tensors_find(&w, DOWN "weight");
        tensor_rows(t, 0, 64, rows);
        assert_int_equal(block_scales_finite(t->dtype, rows, t->bytes), !broken);
        tensors_close(&w);
    }
}

/* A bias that is not zero is kept, so that the loader of the model refuses it. */
static void only_biases_of_zeros_are_dropped(void **state)
{
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        struct tensors w;
        copy_broken("gptq", DOWN "bias", 1, broken ? 0x3c : 0);
        check_ok(source_tensors(at("folder"), &w), "folder");
        assert_int_equal(tensors_find(&w, DOWN "bias") != NULL, broken);
        tensors_close(&w);
    }
}

static uint64_t hash_of(void)
{
    struct tensors w;
    check_ok(source_tensors(at("folder"), &w), "folder");
    const uint64_t hash = hash_tensors(&w);
    tensors_close(&w);
    return hash;
}

static void every_part_of_a_quantized_folder_is_hashed(void **state)
{
    (void)state;
    static const char *const parts[] = {"qweight", "qzeros", "scales"};
    copy_folder("gptq", NULL, NULL, NULL);
    const uint64_t whole = hash_of();
    for (int i = 0; i < 3; i++) {
        char name[128];
        snprintf(name, sizeof name, DOWN "%s", parts[i]);
        copy_broken("gptq", name, 0, 0x55);
        assert_true(hash_of() != whole);
    }
    copy_folder("gptq", "config.json", "\"bits\"", "\"checkpoint_format\": \"gptq_v2\", \"bits\"");
    assert_true(hash_of() != whole);
}

/* compressed-tensors calls it naive-quantized if inputs are not quantized. */
static void fp8_of_weights_alone_is_read(void **state)
{
    (void)state;
    copy_folder("float-tensor", NULL, NULL, NULL);
    const uint64_t whole = hash_of();
    copy_folder("float-tensor", "config.json", "float-quantized", "naive-quantized");
    assert_true(hash_of() == whole);
}

#define FUSED                                                                                      \
    "\"model_type\":\"phi3\",\"hidden_size\":128,\"intermediate_size\":64,"                        \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,"                 \
    "\"vocab_size\":64,\"quantization_config\":{\"quant_method\":\"fp8\"}"

/* A matrix that holds queries, keys and values, as Phi-3 has it, in FP8 with a scale of its inputs, as Ministral 3. */
static void fused_matrices_are_quantized_as_one(void **state)
{
    (void)state;
    enum { ROWS = 256, COLUMNS = 128, WEIGHTS = ROWS * COLUMNS };
    static unsigned char data[WEIGHTS + 2 * sizeof(float)];
    const float scale = 0.5f;
    char header[512];
    float x[2];
    struct tensors w;
    mkdir(at("folder"), 0777);
    write_text(at("folder/config.json"), "{" FUSED "}");
#define PART "\"model.layers.0.self_attn.qkv_proj."
    snprintf(header, sizeof header,
             "{" PART
             "weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}," PART
             "weight_scale_inv\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[%d,%d]}," PART
             "activation_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[%d,%d]}}",
             ROWS, COLUMNS, WEIGHTS, WEIGHTS, WEIGHTS + 4, WEIGHTS + 4, WEIGHTS + 8);
#undef PART
    const uint64_t bytes = strlen(header);
    data[WEIGHTS - 1] = 0x38; /* 1 */
    memcpy(data + WEIGHTS, &scale, sizeof scale);
    FILE *f = fopen(at("folder/model.safetensors"), "wb");
    assert_non_null(f);
    fwrite(&bytes, sizeof bytes, 1, f);
    fwrite(header, 1, bytes, f);
    fwrite(data, 1, sizeof data, f);
    assert_int_equal(fclose(f), 0);
    check_ok(source_tensors(at("folder"), &w), "fused");
    assert_int_equal(w.count, 1);
    const struct tensor *t = tensors_find(&w, "model.layers.0.self_attn.qkv_proj.weight");
    assert_true(t && t->dtype == NJ_TYPE_F8_128 && t->shape[0] == ROWS);
    tensor_to_f32(t, WEIGHTS - 2, 2, x);
    assert_true(x[0] == 0 && x[1] == scale);
    tensors_close(&w);
    /* a model of text and images, whose language model says so */
    write_text(at("folder/config.json"),
               "{\"model_type\":\"mistral3\",\"text_config\":{" FUSED "}}");
    check_ok(source_tensors(at("folder"), &w), "nested");
    assert_int_equal(tensors_find(&w, "model.layers.0.self_attn.qkv_proj.weight")->dtype,
                     NJ_TYPE_F8_128);
    tensors_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_format),
        cmocka_unit_test(weights_keep_their_size),
        cmocka_unit_test(lying_quantized_folders_are_refused),
        cmocka_unit_test(columns_of_a_group_must_lie_together),
        cmocka_unit_test(codes_other_than_nf4_are_refused),
        cmocka_unit_test(nan_in_a_quantized_folder_is_found),
        cmocka_unit_test(only_biases_of_zeros_are_dropped),
        cmocka_unit_test(every_part_of_a_quantized_folder_is_hashed),
        cmocka_unit_test(fp8_of_weights_alone_is_read),
        cmocka_unit_test(fused_matrices_are_quantized_as_one),
    };
    return cmocka_run_group_tests_name("quantized_folder", tests, scratch_begin, scratch_end);
}
