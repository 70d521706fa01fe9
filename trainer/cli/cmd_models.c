/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_models.c: `nojit models`: the families that are read, as the table of docs/models.md.
 */
#include <stdio.h>
#include <string.h>

#include "base/families.h"
#include "base/try.h"
#include "cli/commands.h"
#include "io/notes.h"
#include "model/init.h"

enum { LIST_BYTES = 512 };

/* Append a name in quotes to a list. */
static void append(char out[LIST_BYTES], const char *name, char quote)
{
    const size_t used = strlen(out);
    snprintf(out + used, LIST_BYTES - used, "%s%c%s%c", used > 0 ? ", " : "", quote, name, quote);
}

/* List the presets of published models of a family. */
static int list_presets(const char *model_type, char quote, char out[LIST_BYTES])
{
    struct model_config c;
    *out = '\0';
    for (const struct preset *p = presets; p->name != NULL; p++) {
        TRY(preset_config(p, &c));
        if (strcmp(c.model_type, model_type) == 0 && strncmp(p->name, "nojit-", 6) != 0)
            append(out, p->name, quote);
    }
    return 0;
}

/* List the names that config.json has for a family: its own, and those of files of text and images. */
static void list_types(const char *model_type, char quote, char out[LIST_BYTES])
{
    *out = '\0';
    append(out, model_type, quote);
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (strcmp(composites[i].text, model_type) == 0)
            append(out, composites[i].model_type, quote);
}

static const char *said(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

int cmd_models(const struct settings *s)
{
    const char quote = s->json ? '"' : '`';
    char types[LIST_BYTES], shapes[LIST_BYTES];
    notes_to(NULL); /* a list of shapes gives none */
    if (!s->json)
        puts("| models | model_type | can be | limits | sizes tried | GGUF | shapes for `nojit "
             "init --preset` |\n"
             "|---|---|---|---|---|---|---|");
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        const bool student = !family_is_teacher_only(f);
        list_types(f->model_type, quote, types);
        TRY(list_presets(f->model_type, quote, shapes));
        if (s->json)
            printf(
                "{\"models\": \"%s\", \"model_types\": [%s], \"teacher\": true, \"student\": "
                "%s, \"limits\": \"%s\", \"tried\": \"%s\", \"gguf\": \"%s\", \"presets\": [%s]}\n",
                f->models, types, student ? "true" : "false", said(f->limits, ""),
                said(f->tried, ""), said(f->gguf, ""), shapes);
        else
            printf("| %s | %s | teacher%s | %s | %s | %s | %s |\n", f->models, types,
                   student ? ", student" : "", said(f->limits, "-"), said(f->tried, "-"),
                   said(f->gguf, "-"), shapes[0] != '\0' ? shapes : "-");
    }
    return 0;
}
