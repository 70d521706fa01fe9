/* SPDX-License-Identifier: Apache-2.0
 *
 * test_golden_families.c: every family of models against PyTorch and transformers in float64 (tests/golden/families,
 * written by tests/golden/make_families.py, which describes the files), as student and as teacher: logits, losses,
 * every gradient, five optimizer steps, texts that the decoder continues, and configurations in the form of published
 * files. golden_case.h has the comparison. transformers wrote the configurations; weights are made here.
 */
#include "base/float16.h"
#include "decode/decode.h"
#include "golden_case.h"

enum { TEXTS = 4, TEXT_POSITIONS = 128 };

static const struct golden_set families = {"tests/golden/families/", 40, 64, {5}};

/* ---- models ---- */

static uint64_t seed_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* Return whether a tensor stays float32: a bias that decides on the choice of experts. */
static bool is_wide(const char *name)
{
    return strstr(name, "expert_bias") || strstr(name, "e_score_correction_bias");
}

/* Write a tensor as make_families.py makes it, in bfloat16 unless it is wide. */
static void write_tensor(struct st_writer *w, const struct st_declared *t, double mean,
                         double deviation)
{
    const bool wide = t->dtype == NJ_TYPE_F32;
    const size_t bytes = st_declared_bytes(t);
    const size_t count = bytes / (wide ? sizeof(float) : sizeof(uint16_t));
    const uint64_t seed = seed_of(t->name);
    void *x = malloc(bytes);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = random_mix(seed + (i + 1) * 0x9e3779b97f4a7c15u);
        double sum = 0;
        for (int part = 0; part < 4; part++)
            sum += (double)(bits >> 16 * part & 0xffff);
        const float value = (float)(mean + deviation * ((sum - 131070) / 37837));
        if (wide)
            ((float *)x)[i] = value;
        else
            ((uint16_t *)x)[i] = bf16_from_f32(value);
    }
    check_ok(st_write_data(w, x, bytes), t->name);
    free(x);
}

/* Write the weights of a model whose tensors cases.json lists. */
static void write_weights(const char *folder, const json_t *tensors)
{
    enum { TENSORS_MOST = 192 };
    struct st_declared declared[TENSORS_MOST] = {0};
    double mean[TENSORS_MOST], deviation[TENSORS_MOST];
    char path[600];
    struct st_writer *w;
    json_t *entry;
    size_t i, d;
    assert_in_range(json_array_size(tensors), 1, TENSORS_MOST);
    json_array_foreach(tensors, i, entry)
    {
        const json_t *shape = json_array_get(entry, 1);
        declared[i].name = json_string_value(json_array_get(entry, 0));
        declared[i].dtype = is_wide(declared[i].name) ? NJ_TYPE_F32 : NJ_TYPE_BF16;
        declared[i].rank = (int)json_array_size(shape);
        for (d = 0; d < json_array_size(shape); d++)
            declared[i].shape[d] = json_integer_value(json_array_get(shape, d));
        mean[i] = json_number_value(json_array_get(entry, 2));
        deviation[i] = json_number_value(json_array_get(entry, 3));
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    check_ok(st_write_begin(path, declared, i, &w), path);
    for (d = 0; d < i; d++)
        write_tensor(w, &declared[d], mean[d], deviation[d]);
    check_ok(st_write_end(w), path);
}

static void write_model(const char *name, const json_t *tensors)
{
    char from[128], to[600];
    size_t bytes;
    const char *folder = make_folder(name);
    snprintf(from, sizeof from, "%s%s.json", families.folder, name);
    snprintf(to, sizeof to, "%s/config.json", folder);
    char *said = read_bytes(from, &bytes);
    write_bytes(to, said, bytes);
    free(said);
    write_weights(folder, tensors);
}

static int begin(void **state)
{
    static char folder[sizeof scratch + 1];
    const char *name;
    json_t *value;
    if (scratch_begin(state) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/", scratch);
    if (golden_begin(&families, folder) != 0)
        return -1;
    const json_t *tensors = json_object_get(golden, "models");
    json_object_foreach((json_t *)(uintptr_t)tensors, name, value) write_model(name, value);
    json_object_foreach(json_object_get(golden, "forms"), name, value)
        write_model(name, json_object_get(tensors, json_string_value(value)));
    return 0;
}

static int end(void **state)
{
    scratch_end(state);
    return golden_end(state);
}

/* ---- texts ---- */

struct text {
    int32_t ids[TEXT_POSITIONS], written[TEXT_POSITIONS];
    struct decode_prompt prompt;
    int count; /* number of tokens written */
};

struct shelf {
    struct text text[TEXTS];
    int next, end; /* texts that are still to be begun */
};

static int next_text(void *user, struct decode_prompt *out)
{
    struct shelf *s = user;
    if (s->next == s->end)
        return 0;
    *out = s->text[s->next].prompt;
    out->user = &s->text[s->next++];
    return 1;
}

static int text_goes_on(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                        enum decode_end end)
{
    struct text *t = p->user;
    (void)user;
    (void)end;
    assert_in_range(t->count + count, 1, p->most);
    memcpy(&t->written[t->count], ids, (size_t)count * sizeof *ids);
    t->count += count;
    return 0;
}

static int read_text(const json_t *ids, int32_t *out)
{
    const int count = (int)json_array_size(ids);
    assert_in_range(count, 1, TEXT_POSITIONS);
    for (int i = 0; i < count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    return count;
}

/* Continue the texts from `first` to before `end`, and compare them with those of the case. */
static void continue_texts(struct golden *g, const json_t *texts, int first, int end)
{
    static struct shelf s;
    const struct decode_io io = {.next = next_text, .generated = text_goes_on, .user = &s};
    s = (struct shelf){.next = first, .end = end};
    for (int i = first; i < end; i++) {
        const json_t *text = json_array_get(texts, (size_t)i);
        struct text *t = &s.text[i];
        t->prompt = (struct decode_prompt){.ids = t->ids, .number = i};
        t->prompt.count = read_text(json_object_get(text, "prompt"), t->ids);
        t->prompt.most = (int)json_array_size(json_object_get(text, "continued"));
    }
    check_ok(engine_decode(g->e, &io), g->name);
    for (int i = first; i < end; i++) {
        int32_t want[TEXT_POSITIONS];
        const json_t *text = json_array_get(texts, (size_t)i);
        const int count = read_text(json_object_get(text, "continued"), want);
        assert_int_equal(s.text[i].count, count);
        for (int k = 0; k < count; k++)
            if (s.text[i].written[k] != want[k])
                fail_msg("%s: token %d after text %d of %d is %d, expected %d", g->name, k, i,
                         s.text[i].prompt.count, s.text[i].written[k], want[k]);
    }
}

/* Compare the logits that the last token of a text was drawn from. */
static void check_last_logits(struct golden *g, int text)
{
    const struct tensor *t = find(g, "text.logits");
    float raw[VOCAB], got[VOCAB], want[VOCAB];
    double largest = 0;
    char what[32], part[32];
    assert_true(t->shape[0] == TEXTS && t->shape[1] == VOCAB);
    tensor_to_f32(t, (int64_t)text * VOCAB, VOCAB, want);
    const enum nj_tensor_type type = limits->dtype == NJ_F32 ? NJ_TYPE_F32 : weights_dtype(g->e);
    const struct tensor row = {.dtype = type, .data = raw};
    download(g->e, raw, g->e->mem.decoder.logits, VOCAB * dtype_bytes(limits->dtype));
    tensor_to_f32(&row, 0, VOCAB, got);
    for (int v = 0; v < VOCAB; v++)
        largest = fmax(largest, fabs((double)want[v]));
    snprintf(what, sizeof what, "after text %d", text);
    for (int v = 0; v < VOCAB; v++) {
        snprintf(part, sizeof part, "token %d", v);
        check(g, what, part, (double)got[v], (double)want[v], limits->logits * largest);
    }
}

/* Feed all tokens of a text but the last one, of which the decoder's step takes one. */
static void feed_text(struct golden *g, const json_t *text)
{
    static struct shelf s;
    const struct decode_io io = {.next = next_text, .generated = text_goes_on, .user = &s};
    struct text *t = &s.text[0];
    int32_t more[TEXT_POSITIONS];
    s = (struct shelf){.end = 1};
    const int count = read_text(json_object_get(text, "prompt"), t->ids);
    const int continued = read_text(json_object_get(text, "continued"), more);
    assert_in_range(count + continued, 1, TEXT_POSITIONS);
    memcpy(t->ids + count, more, (size_t)(continued - 1) * sizeof *more);
    t->prompt = (struct decode_prompt){.ids = t->ids, .count = count + continued - 1, .most = 1};
    check_ok(engine_decode(g->e, &io), g->name);
}

/* Return the model that continues the texts of a case: its student, unless it names another. */
static const char *writer_of(const json_t *entry)
{
    const json_t *writer = json_object_get(entry, "writer");
    return json_string_value(writer ? writer : json_object_get(entry, "student"));
}

/* The texts are chosen so that rounding to float32 changes no token. Rounding to 16 bits may, so there the logits
 * alone are compared; in bfloat16, those of transformers are within half of the bound. Without graphs, the decoder does
 * not go on after a text has ended, and leaves its last logits. */
static void texts(void **state)
{
    struct golden g = {.name = *state};
    const json_t *entry = find_case(g.name), *wanted = json_object_get(entry, "texts");
    const bool exact = limits->dtype == NJ_F32;
    char path[128];
    assert_int_equal(json_array_size(wanted), TEXTS);
    read_options(json_object_get(entry, "options"), &g.o);
    g.o.steps = g.o.use_graph = 0;
    g.o.batch_size = g.o.grad_accum = 1;
    g.o.decode_positions = TEXT_POSITIONS;
    snprintf(path, sizeof path, "%s%s.safetensors", families.folder, g.name);
    check_ok(st_open_file(path, &g.want), path);
    for (g.o.decode_rows = 1; g.o.decode_rows <= (exact ? 3 : 1); g.o.decode_rows += 2) {
        check_ok(engine_create(ctx, folder_of(writer_of(entry)), NULL, &g.o, NULL, NULL, &g.e),
                 g.name);
        for (int i = 0; i < TEXTS && g.o.decode_rows == 1; i++) {
            if (exact)
                continue_texts(&g, wanted, i, i + 1);
            else
                feed_text(&g, json_array_get(wanted, (size_t)i));
            check_last_logits(&g, i);
        }
        if (g.o.decode_rows > 1)
            continue_texts(&g, wanted, 0, TEXTS);
        engine_destroy(g.e);
    }
    print_message("%s: at worst %.2f of its bound, %s\n", g.name, g.worst, g.worst_at);
    tensors_close(&g.want);
}

/* ---- forms ---- */

/* Check the logits of the first batch of a model that is published in another form. */
static void logits_of_form(void **state)
{
    const char *form = *state;
    const json_t *model = json_object_get(json_object_get(golden, "forms"), form);
    struct golden g = open_form(json_string_value(model), form);
    check_ok(stage_next(g.e, g.d, 0, 0), "first batch");
    check_ok(send_batch(g.e, 0), "first batch");
    check_logits(&g, is_teacher(find_case(g.name), g.name));
    close_case(&g);
}

#define OF_FAMILY(name)                                                                            \
    OF_CASE(name),                                                                                 \
    {                                                                                              \
        name " texts", texts, NULL, NULL, (void *)(uintptr_t)name                                  \
    }

#define OF_FORM(name)                                                                              \
    {                                                                                              \
        name " logits", logits_of_form, NULL, NULL, (void *)(uintptr_t)name                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_FAMILY("gemma3"),
        OF_FAMILY("gemma3_wide"),
        OF_FAMILY("smollm3"),
        OF_FAMILY("olmo2"),
        OF_FAMILY("olmo3"),
        OF_FAMILY("granite"),
        OF_FAMILY("granite_hybrid"),
        OF_FAMILY("granite_nope"),
        OF_FAMILY("granite_swa"),
        OF_FAMILY("granite_swa_two"),
        OF_FAMILY("muse"),
        OF_CASE("muse_distance"),
        OF_FAMILY("phi3"),
        OF_FAMILY("phi3_long"),
        OF_FAMILY("glm4"),
        OF_FAMILY("ministral"),
        OF_FAMILY("ministral3"),
        OF_FAMILY("exaone4"),
        OF_FAMILY("exaone4_full"),
        OF_FAMILY("llama_biases"),
        OF_FAMILY("hunyuan"),
        OF_FAMILY("qwen3_moe"),
        OF_FAMILY("qwen3_moe_tied"),
        OF_FAMILY("qwen3_moe_student"),
        OF_FAMILY("qwen3_moe_balanced"),
        OF_FAMILY("gpt_oss"),
        OF_FAMILY("lfm2"),
        OF_FAMILY("lfm2_taps"),
        OF_FAMILY("qwen3_5"),
        OF_FAMILY("qwen3_5_tied"),
        OF_FAMILY("qwen3_5_moe"),
        OF_FAMILY("qwen3_5_moe_tied"),
        OF_FAMILY("qwen3_next"),
        OF_FAMILY("qwen3_next_tied"),
        OF_FAMILY("lfm2_moe"),
        OF_FAMILY("lfm2_moe_taps"),
        OF_FAMILY("glm4_moe"),
        OF_FAMILY("glm4_moe_tied"),
        OF_FAMILY("minicpm"),
        OF_FAMILY("minicpm_tied"),
        OF_FORM("gemma3_published"),
        OF_FORM("smollm3_published"),
        OF_FORM("olmo3_published"),
        OF_FORM("granite_hybrid_published"),
        OF_FORM("phi3_published"),
        OF_FORM("glm4_published"),
        OF_FORM("exaone4_published"),
        OF_FORM("hunyuan_published"),
        OF_FORM("lfm2_published"),
        OF_FORM("qwen3_5_published"),
        OF_FORM("qwen3_5_moe_published"),
        OF_FORM("qwen3_next_published"),
        OF_FORM("lfm2_moe_published"),
        OF_FORM("glm4_moe_published"),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
