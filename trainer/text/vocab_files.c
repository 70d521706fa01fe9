/* SPDX-License-Identifier: Apache-2.0
 *
 * vocab_files.c: see vocab_files.h. The files do not say how texts are split; the class of the
 * tokenizer does, which transformers finds from tokenizer_config.json and the type of the model.
 */
#include "text/vocab_files.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/regular.h"
#include "text/tokenizer_split.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END "<|endoftext|>"
#define AGAIN "fetch the model again"
#define CONVERT                                                                                    \
    "write a tokenizer.json by python3 -c \"from transformers import AutoTokenizer as A; "         \
    "A.from_pretrained('%s').save_pretrained('%s')\""
enum { MERGES_MOST = 256 << 20 };

/* Tokenizer class of transformers, without its suffix Fast. */
struct class
{
    const char *name;
    const char *pattern; /* pattern; NULL: GPT-2's, which ByteLevel has */
    bool nfc;
    const char *special[3]; /* named tokens that are END if no file says otherwise */
};

static const struct class classes[] = {
    {"GPT2Tokenizer", NULL, false, {"bos_token", "eos_token", "unk_token"}},
    {"CodeGenTokenizer", NULL, false, {"bos_token", "eos_token", "unk_token"}},
    {"Qwen2Tokenizer", SPLIT_QWEN2, true, {"eos_token", "unk_token", "pad_token"}},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* Model types that have a class of their own. */
static const struct {
    const char *model_type, *class;
    bool always; /* whether it overrides tokenizer_config.json */
} models[] = {
    {"qwen2", "Qwen2Tokenizer", true},
    {"qwen3", "Qwen2Tokenizer", false},
    {"mistral", "", true}, /* transformers makes no tokenizer from these files */
};

struct folder {
    const char *dir;
    json_t *config, *model; /* contents of tokenizer_config.json and config.json; NULL: absent */
    json_t *vocab, *merges;
};

static int path_of(const char *dir, const char *name, char path[PATH_BYTES])
{
    if (snprintf(path, PATH_BYTES, "%s/%s", dir, name) >= PATH_BYTES)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    return 0;
}

static bool holds(const char *dir, const char *name)
{
    char path[PATH_BYTES];
    return path_of(dir, name, path) == 0 && access(path, F_OK) == 0;
}

bool vocab_files_are(const char *dir)
{
    return !holds(dir, "tokenizer.json") && holds(dir, "vocab.json") && holds(dir, "merges.txt");
}

/* ---- the class ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Find the name of the class; "" if no file gives it. */
static const char *class_name(const struct folder *f)
{
    const char *said = text_of(f->config, "tokenizer_class");
    const char *type = text_of(f->model, "model_type");
    said = *said ? said : text_of(f->model, "tokenizer_class");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].model_type, type) == 0 && (models[i].always || !*said))
            return models[i].class;
    return said;
}

static const struct class *find_class(const char *name)
{
    size_t bytes = strlen(name);
    if (bytes > 4 && strcmp(name + bytes - 4, "Fast") == 0)
        bytes -= 4;
    for (size_t i = 0; i < CLASSES; i++)
        if (strlen(classes[i].name) == bytes && memcmp(classes[i].name, name, bytes) == 0)
            return &classes[i];
    return NULL;
}

static int refuse_class(const struct folder *f, const char *name)
{
    const bool remote = json_object_get(f->config, "auto_map") != NULL;
    return fail(NJ_E_UNSUPPORTED,
                "%s: no tokenizer.json, and how vocab.json and merges.txt are used is known for "
                "tokenizer_class GPT2Tokenizer, CodeGenTokenizer and Qwen2Tokenizer, not for %s%s; "
                "copy the model's tokenizer.json there, or " CONVERT,
                f->dir, *name ? name : "a folder that names none",
                remote ? ", with code of its own (auto_map)" : "", f->dir, f->dir);
}

/* ---- merges.txt ---- */

/* Append the merge of a line; as in the `tokenizers` library, version lines are skipped. */
static int add_line(struct folder *f, const char *path, char *line, size_t bytes)
{
    bytes -= bytes > 0 && line[bytes - 1] == '\n';
    bytes -= bytes > 0 && line[bytes - 1] == '\r';
    if (!unicode_is_text(line, bytes))
        return fail(NJ_E_FORMAT, "%s: merge %zu is not UTF-8 text; " AGAIN, path,
                    json_array_size(f->merges));
    if (bytes >= 8 && memcmp(line, "#version", 8) == 0)
        return 0;
    json_array_append_new(f->merges, json_stringn_nocheck(line, bytes));
    return 0;
}

static int read_merges(struct folder *f)
{
    char path[PATH_BYTES], *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    FILE *file;
    int rc = path_of(f->dir, "merges.txt", path);
    if (rc == 0)
        rc = regular_open(path, MERGES_MOST, AGAIN, &file);
    if (rc != 0)
        return rc;
    json_memory_limit(MERGES_MOST);
    f->merges = json_array();
    while (rc == 0 && (bytes = getline(&line, &room, file)) >= 0)
        rc = add_line(f, path, line, (size_t)bytes);
    if (rc == 0 && !feof(file))
        rc = ferror(file) ? fail(NJ_E_IO, "%s: cannot be read; " AGAIN, path)
                          : fail(NJ_E_NOMEM, "out of memory for a line of %s", path);
    if (rc == 0 && json_array_size(f->merges) == 0)
        rc = fail(NJ_E_FORMAT, "%s: there is no merge in it; " AGAIN, path);
    free(line);
    fclose(file);
    return json_memory_end() ? fail(NJ_E_NOMEM, "%s: out of memory", path) : rc;
}

/* ---- the tokenizer.json ---- */

static json_t *byte_level(const struct folder *f, bool regex)
{
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space",
                     json_is_true(json_object_get(f->config, "add_prefix_space")), "trim_offsets",
                     1, "use_regex", regex);
}

static json_t *pre_tokenizer(const struct folder *f, const struct class *class)
{
    if (!class->pattern)
        return byte_level(f, true);
    return json_pack("{s:s,s:[{s:s,s:{s:s},s:s,s:b},o]}", "type", "Sequence", "pretokenizers",
                     "type", "Split", "pattern", "Regex", class->pattern, "behavior", "Isolated",
                     "invert", 0, byte_level(f, false));
}

/* Return the text of bos_token, "" if there is none. */
static const char *begin_token(const struct folder *f, const struct class *class)
{
    const json_t *token = json_object_get(f->config, "bos_token");
    if (token)
        return json_is_object(token) ? text_of(token, "content") : text_of(f->config, "bos_token");
    return strcmp(class->special[0], "bos_token") == 0 ? END : "";
}

static int make_root(const struct folder *f, const struct class *class, json_t **out)
{
    json_memory_begin();
    json_t *root =
        json_pack("{s:[],s:o,s:o,s:{s:s},s:{s:s,s:O,s:O}}", "added_tokens", "normalizer",
                  class->nfc ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer",
                  pre_tokenizer(f, class), "decoder", "type", "ByteLevel", "model", "type", "BPE",
                  "vocab", f->vocab, "merges", f->merges);
    if (!json_memory_end() && root) {
        *out = root;
        return 0;
    }
    json_decref(root);
    return fail(NJ_E_NOMEM, "%s: out of memory for its tokenizer", f->dir);
}

/* Refuse a class whose texts begin with a token: its id is only known from the whole list of
 * tokens. */
static int check_begin(const struct folder *f, const struct class *class)
{
    const char *begin = begin_token(f, class);
    if (!json_is_true(json_object_get(f->config, "add_bos_token")) || !*begin)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: add_bos_token is true beside vocab.json and merges.txt, which is not "
                "supported; " CONVERT,
                f->dir, f->dir, f->dir);
}

static int make_defaults(const struct folder *f, const struct class *class, json_t **out)
{
    json_memory_begin();
    *out = json_object();
    for (int i = 0; i < 3; i++)
        json_object_set_new(*out, class->special[i], json_string(END));
    return json_memory_end() ? fail(NJ_E_NOMEM, "%s: out of memory for its tokenizer", f->dir) : 0;
}

static int read_optional(const char *dir, const char *name, json_t **out)
{
    char path[PATH_BYTES];
    TRY(path_of(dir, name, path));
    return json_read_optional(path, AGAIN, out);
}

static int read_vocab(struct folder *f)
{
    char path[PATH_BYTES];
    TRY(path_of(f->dir, "vocab.json", path));
    TRY(json_read_table(path, AGAIN, &f->vocab));
    if (!json_is_object(f->vocab))
        return fail(NJ_E_FORMAT, "%s: the file must hold an object; " AGAIN, path);
    return 0;
}

static int read_folder(struct folder *f, const struct class **class)
{
    TRY(read_optional(f->dir, "tokenizer_config.json", &f->config));
    TRY(read_optional(f->dir, "config.json", &f->model));
    const char *name = class_name(f);
    *class = json_object_get(f->config, "auto_map") ? NULL : find_class(name);
    if (!*class)
        return refuse_class(f, name);
    TRY(check_begin(f, *class));
    TRY(read_vocab(f));
    return read_merges(f);
}

int vocab_files_json(const char *dir, json_t **tokenizer, json_t **defaults)
{
    struct folder f = {.dir = dir};
    const struct class *class;
    *tokenizer = *defaults = NULL;
    int rc = read_folder(&f, &class);
    if (rc == 0)
        rc = make_root(&f, class, tokenizer);
    if (rc == 0)
        rc = make_defaults(&f, class, defaults);
    if (rc != 0) {
        json_decref(*tokenizer);
        json_decref(*defaults);
        *tokenizer = *defaults = NULL;
    }
    json_decref(f.config);
    json_decref(f.model);
    json_decref(f.vocab);
    json_decref(f.merges);
    return rc;
}
