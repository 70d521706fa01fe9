/* SPDX-License-Identifier: Apache-2.0
 *
 * apr_model.c: see apr_model.h. Metadata is translated into the config.json that Hugging Face would have for it, so
 * that there is one reader; keys that APR does not define stay in it, and are refused by that reader.
 */
#include "model/apr_model.h"

#include "base/families.h"
#include "base/try.h"
#include "formats/apr.h"
#include "io/error.h"
#include "io/json_text.h"
#include "model/config_from.h"
#include "model/gguf_names.h"
#include "model/gguf_rope.h"
#include "model/tensor_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHERWISE "use the model's Hugging Face folder or GGUF file"

enum { KNOWN_MOST = 4 };

/* Fields of config.json, and their names in APR files, the usual name first. */
static const struct {
    const char *name, *known[KNOWN_MOST];
} fields[] = {
    {"hidden_size", {"hidden_size", "hidden_dim", "d_model", "n_embd"}},
    {"intermediate_size", {"intermediate_size", "ffn_dim", "intermediate_dim", "n_inner"}},
    {"num_hidden_layers", {"num_layers", "n_layers", "num_hidden_layers", "n_layer"}},
    {"num_attention_heads", {"num_heads", "n_heads", "num_attention_heads", "n_head"}},
    {"num_key_value_heads", {"num_kv_heads", "n_kv_heads", "num_key_value_heads"}},
    {"vocab_size", {"vocab_size", "n_vocab"}},
    {"max_position_embeddings",
     {"max_position_embeddings", "max_seq_len", "context_length", "n_ctx"}},
    {"rms_norm_eps", {"rms_norm_eps", "layer_norm_eps", "norm_eps"}},
    {"bos_token_id", {"bos_token_id", "tokenizer.bos_token_id"}},
    {"eos_token_id", {"eos_token_id", "tokenizer.eos_token_id"}},
};

/* ---- tensors by their roles ---- */

/* Find a tensor by Hugging Face's name, also without "model.", or by GGUF's. */
static const struct tensor *find(const struct apr *a, const struct tensor_spec *spec)
{
    static const char prefix[] = "model.";
    const size_t skip = strncmp(spec->name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    char other[128];
    const struct tensor *t = tensors_find(&a->tensors, spec->name);
    if (!t)
        t = tensors_find(&a->tensors, spec->name + skip);
    gguf_tensor_name(NULL, spec, other);
    return t ? t : tensors_find(&a->tensors, other);
}

static const struct tensor_spec embed = {
    .name = "model.embed_tokens.weight", .role = ROLE_EMBED, .layer = -1};
static const struct tensor_spec head = {.name = "lm_head.weight", .role = ROLE_HEAD, .layer = -1};

static const char *tied_key(const struct apr *a)
{
    return apr_key(a, (const char *const[]){"tied_embeddings", "tie_word_embeddings"}, 2);
}

/* Return the file's value for whether the head is tied, or NULL. */
static const json_t *said_tied(const struct apr *a)
{
    return apr_value(a, tied_key(a));
}

/* Return whether the LM head is tied. A tied head is stored, too, and declared as tied; it may have been quantized
 * separately from the table. */
static bool is_tied(const struct apr *a)
{
    const struct tensor *x = find(a, &embed), *y = find(a, &head);
    if (!y)
        return !json_is_false(said_tied(a));
    if (!x || !json_is_true(said_tied(a)))
        return false;
    const struct packed_part p = {x->data, x->bytes, 0}, q = {y->data, y->bytes, 0};
    const struct packed_part *s = x->packed ? x->packed->part : &p;
    const struct packed_part *t = y->packed ? y->packed->part : &q;
    return x->dtype == y->dtype && s->bytes == t->bytes && memcmp(s->data, t->data, s->bytes) == 0;
}

/* ---- metadata ---- */

/* Families of which aprender makes files; whether it would keep the factors and gains of others is not known. */
static const char *const read_families[] = {"llama", "mistral", "qwen2", "qwen3"};
enum { READ_FAMILIES = sizeof read_families / sizeof *read_families };

static bool is_read(const struct family *family)
{
    int i = 0;
    while (i < READ_FAMILIES && strcmp(read_families[i], family->model_type) != 0)
        i++;
    return i < READ_FAMILIES;
}

/* Return the family of the first of three fields that names a known one; if none does, *said is the first that is
 * present, or NULL. */
static const struct family *find_family(const struct apr *a, const char **said)
{
    static const char *const keys[] = {"hf_model_type", "architecture", "model_type"};
    *said = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char lower[32] = "";
        const char *text = json_string_value(apr_value(a, keys[i]));
        for (size_t k = 0; text && text[k] != '\0' && k + 1 < sizeof lower; k++)
            lower[k] = (char)tolower((unsigned char)text[k]);
        const struct family *family = family_find(lower);
        if (family && is_read(family))
            return family;
        *said = *said || !text ? *said : keys[i];
    }
    return NULL;
}

static int read_family(const struct apr *a, const struct family **out)
{
    char supported[NAMES_BYTES] = "";
    const char *said;
    *out = find_family(a, &said);
    if (*out)
        return 0;
    for (int i = 0; i < READ_FAMILIES; i++)
        name_append(supported, read_families[i], i, READ_FAMILIES);
    return said ? fail(NJ_E_UNSUPPORTED, "%s: %s is %.64s; %s", a->path, said,
                       json_string_value(apr_value(a, said)), supported)
                : fail(NJ_E_FORMAT, "%s: architecture is missing; %s", a->path, supported);
}

static struct config_name name_of(const void *a, const char *field)
{
    struct config_name out;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, field) == 0)
            field = apr_key(a, fields[i].known, KNOWN_MOST);
    snprintf(out.text, sizeof out.text, "%s", field);
    return out;
}

/* Translate the metadata into the fields of config.json. */
static json_t *translate(const struct apr *a, const struct family *family)
{
    json_t *out = json_copy(a->metadata);
    json_object_set_new(out, "model_type", json_string(family->model_type));
    json_object_set_new(out, "tie_word_embeddings", json_boolean(is_tied(a)));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(out, fields[i].name, apr_value(a, apr_key(a, fields[i].known, KNOWN_MOST)));
    return out;
}

/* Read which rows of a head rotate together: rope_type 0, neighbors, as in GGUF's llama; or 2, rows of its two halves.
 * aprender's import of a Llama's safetensors writes 0 as well, and keeps the rows as they were. */
static int read_pairs(const struct apr *a, const struct model_config *c, bool *out)
{
    const bool llama = gguf_rotates_pairs(c);
    const json_t *value = apr_value(a, "rope_type");
    const char *format = json_string_value(apr_value(a, "original_format"));
    const json_int_t type = value ? json_integer_value(value) : llama ? 0 : 2;
    *out = type == 0;
    if ((value && !json_is_integer(value)) || (type != 0 && type != 2))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: rope_type is neither 0 (neighbours) nor 2 (halves); " OTHERWISE, a->path);
    if (type == 0 && !llama)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: rope_type is 0, and heads of %s rotate halves, 2; " OTHERWISE, a->path,
                    c->model_type);
    if (type == 0 && (!format || strcmp(format, "gguf") != 0))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: rope_type is %s, which aprender writes for a Llama's heads in either "
                    "order, and original_format is not gguf; " OTHERWISE,
                    a->path, value ? "0" : "missing");
    return 0;
}

static int read_config(const struct apr *a, struct model_config *c, bool *pairs)
{
    const struct config_file file = {a->path, name_of, a, OTHERWISE};
    const struct family *family;
    int rc = read_family(a, &family);
    if (rc == 0 && said_tied(a) && !json_is_boolean(said_tied(a)))
        rc =
            fail(NJ_E_FORMAT, "%s: %s is neither true nor false; " OTHERWISE, a->path, tied_key(a));
    if (rc != 0)
        return rc;
    json_memory_begin();
    json_t *config = translate(a, family);
    if (json_memory_end())
        rc = fail(NJ_E_NOMEM, "%s: out of memory for its metadata", a->path);
    else
        rc = config_from(&file, config, c);
    json_decref(config);
    if (rc == 0)
        rc = read_pairs(a, c, pairs);
    return rc != 0 ? rc : gguf_read_rope_freqs(a->path, &a->tensors, c);
}

int apr_config(const char *path, struct model_config *out)
{
    struct apr a;
    bool pairs;
    int rc = apr_open(path, &a);
    if (rc != 0)
        return rc;
    rc = read_config(&a, out, &pairs);
    apr_close(&a);
    return rc;
}

/* ---- all tensors ---- */

static int refuse_rest(const struct apr *a, const bool *used)
{
    for (size_t i = 0; i < a->tensors.count; i++)
        if (!used[i] && strcmp(a->tensors.tensor[i].name, GGUF_ROPE_FREQS) != 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor %s is not part of the model that the metadata describes; it "
                        "would be ignored, so use another model",
                        a->path, a->tensors.tensor[i].name);
    return 0;
}

static int take(const struct apr *a, const struct model_config *c, bool pairs,
                const struct tensor_spec *spec, bool *used, struct tensor *out)
{
    const struct tensor *t = find(a, spec);
    TRY(weights_check(a->path, spec, t));
    used[t - a->tensors.tensor] = true;
    *out = *t;
    memcpy(out->name, spec->name, sizeof out->name);
    out->pairs = pairs ? gguf_pairs(c, spec) : 0;
    return 0;
}

/* Take all tensors; *out: `count` tensors, malloc()'d. */
static int take_all(const struct apr *a, const struct model_config *c, bool pairs,
                    const struct tensor_spec *spec, size_t count, struct tensor **out)
{
    struct tensor *list = calloc(count, sizeof *list);
    bool *used = calloc(a->tensors.count + 1, sizeof *used);
    const struct tensor *copy = c->tied ? find(a, &head) : NULL;
    int rc = list && used
                 ? 0
                 : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", a->path, count);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(a, c, pairs, &spec[i], used, &list[i]);
    if (rc == 0 && copy)
        used[copy - a->tensors.tensor] = true;
    if (rc == 0)
        rc = refuse_rest(a, used);
    free(used);
    if (rc != 0) {
        free(list);
        return rc;
    }
    tensors_sort(list, count);
    *out = list;
    return 0;
}

int apr_tensors(const char *path, struct tensors *out)
{
    struct model_config c;
    struct tensor_spec *spec = NULL;
    struct tensor *list;
    struct apr a;
    size_t count;
    bool pairs = false;
    *out = (struct tensors){0};
    int rc = apr_open(path, &a);
    if (rc != 0)
        return rc;
    if (!(rc = read_config(&a, &c, &pairs)) && !(rc = tensor_specs(&c, &spec, &count)) &&
        !(rc = take_all(&a, &c, pairs, spec, count, &list))) {
        *out = a.tensors; /* with the mappings, and the tensors that they are made from */
        a.tensors = (struct tensors){0};
        free(out->tensor);
        out->tensor = list;
        out->count = count;
    }
    free(spec);
    apr_close(&a);
    return rc;
}
