/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_refuse.c: refuses unsupported features of a tokenizer.json.
 */
#include "text/bpe_read.h"

#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>

int bpe_refuse(const struct reading *r, const char *name, const json_t *value, const char *remedy)
{
    char *text = json_shown(value, JSON_COMPACT);
    int rc = fail(NJ_E_UNSUPPORTED, "%s: %s is %.100s; %s", r->path, name, text ? text : "missing",
                  remedy);
    free(text);
    return rc;
}
