/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.c: text to ids. Bytes are their own ids and 256 ends a text; a folder with a
 * tokenizer.json has ids that only its own tokenizer makes, so its data must come as token files.
 */
#include "data.h"
#include "error.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTE_IDS = 256, BYTE_END = 256 };

/* eos_token_id of DIR/config.json, the first if it is a list; -1 if there is none. */
static int end_of_text_of(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", dir);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *id = json_object_get(root, "eos_token_id");
    if (json_is_array(id))
        id = json_array_get(id, 0);
    int end = json_is_integer(id) ? (int)json_integer_value(id) : -1;
    json_decref(root);
    return end;
}

int tokenizer_open(const char *dir, struct tokenizer *out)
{
    char path[4096];
    memset(out, 0, sizeof *out);
    if (snprintf(path, sizeof path, "%s/tokenizer.json", dir) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    if (access(path, F_OK) == 0) {
        snprintf(out->kind, sizeof out->kind, "token files");
        out->end_of_text = end_of_text_of(dir);
        return NJ_OK;
    }
    snprintf(out->kind, sizeof out->kind, "bytes");
    out->vocab_size = BYTE_IDS + 1;
    out->end_of_text = BYTE_END;
    return NJ_OK;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t bytes, int32_t **ids,
                     size_t *count, size_t *capacity)
{
    if (t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED,
                    "the model has a tokenizer.json, which is not supported yet for text; give "
                    "token files that its tokenizer made");
    if (*capacity - *count < bytes) {
        size_t grown = *count + bytes + (*count + bytes) / 2 + 16;
        int32_t *more = realloc(*ids, grown * sizeof *more);
        if (!more)
            return fail(NJ_E_NOMEM, "out of memory for %zu tokens", grown);
        *ids = more;
        *capacity = grown;
    }
    int32_t *to = *ids + *count;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)text[i];
    *count += bytes;
    return NJ_OK;
}

int tokenizer_decode(const struct tokenizer *t, int32_t id, char out[8])
{
    if (t->vocab_size == 0 || id < 0 || id >= BYTE_IDS)
        return 0;
    out[0] = (char)(unsigned char)id;
    return 1;
}
