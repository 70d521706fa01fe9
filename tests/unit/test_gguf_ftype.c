/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_ftype.c: types of tensors against those that llama.cpp's quantizer chose for models of the same shapes
 * (tests/golden/gguf_ftypes.txt; make_gguf_ftypes.py, which writes it, describes it).
 */
#include "formats/quantize.h"
#include "formats/tensors.h"
#include "model/gguf_ftype.h"
#include "plain_layers.h"
#include "unit.h"

enum { ROLES = 9 };
static const enum tensor_role roles[ROLES] = {ROLE_EMBED,       ROLE_HEAD,      ROLE_Q_WEIGHT,
                                              ROLE_K_WEIGHT,    ROLE_V_WEIGHT,  ROLE_O_WEIGHT,
                                              ROLE_GATE_WEIGHT, ROLE_UP_WEIGHT, ROLE_DOWN_WEIGHT};

static const struct {
    char letter;
    enum nj_tensor_type type;
} letters[] = {
    {'f', NJ_TYPE_F32},  {'h', NJ_TYPE_F16},  {'b', NJ_TYPE_BF16},
    {'0', NJ_TYPE_Q8_0}, {'s', NJ_TYPE_Q5_0}, {'t', NJ_TYPE_Q5_1},
    {'4', NJ_TYPE_Q4_K}, {'5', NJ_TYPE_Q5_K}, {'6', NJ_TYPE_Q6_K},
};

struct line {
    struct model_config c;
    int file_type;
    char ftype[16], types[ROLES][128];
};

static bool next_line(FILE *table, struct line *l)
{
    int tied;
    memset(l, 0, sizeof *l);
    struct model_config *c = &l->c;
    struct block b = {0};
    int ffn_size;
    char model_type[32];
    if (fscanf(table, "%31s %d %d %d %d %d %d %d %15s %d", model_type, &c->hidden_size, &ffn_size,
               &b.head_dim, &b.heads, &b.kv_heads, &c->layers, &tied, l->ftype,
               &l->file_type) != 10)
        return false;
    c->tied = tied;
    c->vocab_size = 64;
    config_plain_layers(c, model_type);
    b.kind = ATTENTION(c).kind;
    b.features = ATTENTION(c).features;
    ATTENTION(c) = b;
    GLU(c).ffn_size = ffn_size;
    for (int r = 0; r < ROLES; r++)
        assert_int_equal(fscanf(table, "%127s", l->types[r]), 1);
    return true;
}

/* Return the type of a tensor in the table; norms and biases, which the table omits, are F32. */
static enum nj_tensor_type type_of(const struct line *l, const struct tensor_spec *spec)
{
    const enum tensor_role role = spec->role == ROLE_QKV_WEIGHT       ? ROLE_Q_WEIGHT
                                  : spec->role == ROLE_GATE_UP_WEIGHT ? ROLE_UP_WEIGHT
                                                                      : spec->role;
    for (int r = 0; r < ROLES; r++) {
        if (roles[r] != role)
            continue;
        const char *types = l->types[r];
        const char letter = types[types[1] ? spec->layer : 0];
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
            if (letters[i].letter == letter)
                return letters[i].type;
        fail_msg("%c: no such type", letter);
    }
    return NJ_TYPE_F32;
}

static void types_are_llama_cpps(void **state)
{
    (void)state;
    FILE *table = fopen("tests/golden/gguf_ftypes.txt", "r");
    assert_non_null(table);
    int lines = 0;
    for (struct line l; next_line(table, &l); lines++) {
        const struct gguf_ftype *m = gguf_ftype_find(l.ftype);
        assert_non_null(m);
        assert_int_equal(m->file_type, l.file_type);
        struct tensor_spec *specs;
        size_t count;
        assert_int_equal(tensor_specs(&l.c, &specs, &count), 0);
        for (size_t i = 0; i < count; i++) {
            const enum nj_tensor_type got = gguf_ftype_type(m, &l.c, &specs[i]);
            if (got != type_of(&l, &specs[i]))
                fail_msg("%s, %d layers, %s: %s is %s", l.c.model_type, l.c.layers, l.ftype,
                         specs[i].name, tensor_type_name(got));
        }
        free(specs);
    }
    assert_true(lines > 200);
    fclose(table);
}

/* quantize_rows() can make every chosen type from such rows, also where llama.cpp finds no type. */
static void every_type_can_be_made(void **state)
{
    (void)state;
    for (int columns = 8; columns <= 1024; columns += 8)
        for (int i = 0; i < GGUF_FTYPES; i++) {
            const struct model_config c = {.model_type = "qwen2", .layers = 2, .tied = true};
            const struct tensor_spec spec = {
                .rank = 2, .shape = {64, columns}, .role = i % 2 ? ROLE_EMBED : ROLE_DOWN_WEIGHT};
            const enum nj_tensor_type type = gguf_ftype_type(&gguf_ftypes[i], &c, &spec);
            assert_true(quantize_supports(type));
            assert_int_equal(columns % tensor_type_block(type), 0);
            assert_true(columns % 32 == 0 || type == gguf_ftypes[i].type || type == NJ_TYPE_F16);
        }
    assert_null(gguf_ftype_find("q4_k"));
    assert_null(gguf_ftype_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_llama_cpps),
        cmocka_unit_test(every_type_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
