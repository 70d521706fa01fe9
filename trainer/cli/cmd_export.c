/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_export.c: `nojit export`: a model as a GGUF file, or a Hugging Face folder of one.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/commands.h"
#include "formats/model_path.h"
#include "io/error.h"
#include "model/init.h"
#include "model/model_open.h"
#include "run/export.h"
#include "run/run.h"

static const int64_t SHARD_BYTES_MOST = 5LL << 30;

/* Export all layers in their order, with the types that they have. */
static int export_folder(const char *from, const char *to)
{
    struct model_config c;
    TRY(source_config(from, &c));
    int *layers = calloc((size_t)c.layers, sizeof *layers);
    if (layers == NULL)
        return fail(NJ_E_NOMEM, "out of memory for a list of %d layers", c.layers);
    for (int i = 0; i < c.layers; i++)
        layers[i] = i;
    const int rc = init_from_layers(to, &c, from, layers, 0, NULL, SHARD_BYTES_MOST);
    free(layers);
    return rc;
}

static int export_model(const struct settings *s, struct progress *p, const char *model)
{
    struct export_source x;
    char beside[PATH_BYTES];
    if (snprintf(beside, sizeof beside, "%s.merged", s->out) >= (int)sizeof beside)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", s->out);
    int rc = export_open(&x, model, s->student, s->adapter, beside);
    if (rc != 0)
        return rc;
    x.tokenizer = (enum tokenizer_choice)s->tokenizer;
    if (s->export_type < GGUF_FTYPES) {
        rc = export_file(&x, p, &gguf_ftypes[s->export_type], s->out);
    } else {
        rc = export_folder(x.from, s->out);
        if (rc == 0)
            progress_say(p, "%s: a Hugging Face folder of %s", s->out, s->student);
    }
    export_close(&x);
    return rc;
}

/* Return whether the output's name is that of an APR file. These are only read: a file of that name would hold
 * another format. */
static bool names_apr(const char *out)
{
    const size_t bytes = strlen(out);
    return bytes > 4 && strcasecmp(out + bytes - 4, ".apr") == 0;
}

int cmd_export(const struct settings *s)
{
    const struct needed needed[] = {{"model", s->student != NULL}, {"out", s->out != NULL}, {NULL}};
    struct progress p;
    char model[PATH_BYTES];
    int rc = run_needs("export", needed);
    if (rc == 0 && access(s->out, F_OK) == 0)
        rc = fail(NJ_E_ARG, "--out %s: it exists already; choose another name, or remove it",
                  s->out);
    if (rc == 0 && names_apr(s->out))
        rc = fail(NJ_E_ARG,
                  "--out %s: APR files are read, not written; name a GGUF file, or a folder with "
                  "--type hf",
                  s->out);
    if (rc == 0 && s->export_type == GGUF_FTYPES && s->tokenizer != TOKENIZER_AUTO)
        rc = fail(NJ_E_ARG, "--tokenizer bytes: a folder has the tokenizer of its model, or none; "
                            "leave the option out with --type hf");
    if (rc == 0)
        rc = model_resolve(s->student, model, sizeof model);
    if (rc == 0)
        rc = progress_open(&p, NULL, false);
    if (rc != 0)
        return rc;
    rc = export_model(s, &p, model);
    progress_close(&p);
    return rc;
}
