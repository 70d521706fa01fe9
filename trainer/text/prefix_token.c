/* SPDX-License-Identifier: Apache-2.0
 *
 * prefix_token.c: see prefix_token.h.
 */
#include "text/prefix_token.h"

#include "io/error.h"
#include "io/json_text.h"
#include "text/metadata.h"

#include <stdio.h>

/* Return the id of a token given as a text, or as an object that has it as content; -1: it is
 * neither, or not an added token. */
static int32_t token_of(const struct tokenizer *t, const json_t *value)
{
    const json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;
    return json_is_string(text) ? tokenizer_added(t, json_string_value(text)) : -1;
}

static int read_config(const struct tokenizer *t, const char *path, int32_t *out)
{
    json_t *root = NULL;
    TRY(json_read_optional(path, "fetch the model again", &root));
    *out = token_of(t, json_object_get(root, "bos_token"));
    if (*out < 0)
        *out = token_of(t, json_object_get(root, "eos_token"));
    json_decref(root);
    return 0;
}

int prefix_token(const struct tokenizer *t, int32_t *out)
{
    char path[PATH_BYTES];
    int rc = 0;
    *out = -1;
    if (snprintf(path, sizeof path, "%s/tokenizer_config.json", t->dir) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", t->dir);
    if (!metadata_is(t->dir))
        rc = read_config(t, path, out);
    if (*out < 0)
        *out = tokenizer_begin_of_text(t);
    if (*out < 0)
        *out = t->end_of_text;
    return rc;
}
