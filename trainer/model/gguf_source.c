/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_source.c: see gguf_source.h.
 */
#include "model/gguf_source.h"

#include "base/try.h"
#include "io/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *gguf_key(const struct gguf_source *s, const char *name, char out[128])
{
    snprintf(out, 128, "%s.%s", s->arch->name, name);
    return out;
}

/* Read the one value of an array that has it for each layer. */
static int read_equal(const struct gguf *g, const char *key, int64_t *out)
{
    int32_t *each = NULL;
    size_t count = 0;
    int rc = gguf_ints(g, key, &each, &count);
    if (rc == 0 && count == 0)
        rc = fail(NJ_E_FORMAT, "%s: %s is empty; fetch the file again", g->path, key);
    for (size_t i = 1; i < count && rc == 0; i++)
        if (each[i] != each[0])
            rc = fail(NJ_E_UNSUPPORTED,
                      "%s: %s is %d for layer 0 and %d for layer %zu; use a model whose layers are "
                      "alike",
                      g->path, key, each[0], each[i], i);
    if (rc == 0)
        *out = each[0];
    free(each);
    return rc;
}

int gguf_whole(const struct gguf_source *s, const char *name, int64_t missing, int64_t *out)
{
    char key[128];
    const struct gguf_value *v = gguf_find(s->g, gguf_key(s, name, key));
    *out = missing;
    if (!v && missing == 0)
        return fail(NJ_E_FORMAT, "%s: %s is missing; " GGUF_CONVERT, s->g->path, key);
    return v && v->array ? read_equal(s->g, key, out) : gguf_int(s->g, key, missing, out);
}

int gguf_positive(const struct gguf_source *s, const char *name, double missing, double *out)
{
    char key[128];
    TRY(gguf_number(s->g, gguf_key(s, name, key), missing, out));
    if (!gguf_find(s->g, key) && isnan(missing))
        return fail(NJ_E_FORMAT, "%s: %s is missing; " GGUF_CONVERT, s->g->path, key);
    if (!((float)*out > 0) || !isfinite((float)*out))
        return fail(NJ_E_FORMAT, "%s: %s is %g; it must be a number above 0 that float32 can hold",
                    s->g->path, key, *out);
    return 0;
}
