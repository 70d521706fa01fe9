/* SPDX-License-Identifier: Apache-2.0
 *
 * run_prompts.c: see run_prompts.h.
 */
#include "run/run_prompts.h"

#include "io/error.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "text/generation.h"

/* Add the tokens with which adapters have learned to end a turn. */
static int add_adapters_stops(struct run *r, int vocab_size)
{
    struct generation said = {0};
    const int rc = r->s->adapter ? generation_said(r->s->adapter, vocab_size, &said) : 0;
    for (int i = 0; i < said.stops; i++)
        generation_add(&r->ends, said.stop[i]);
    return rc;
}

int run_stops(struct run *r)
{
    struct model_config c;
    TRY(source_config(r->student, &c));
    TRY(generation_read(r->student, &r->tokenizer, c.vocab_size, &r->ends));
    TRY(add_adapters_stops(r, c.vocab_size));
    if (r->s->ignore_eos)
        r->ends.stops = 0;
    return 0;
}

int run_open_prompts(struct run *r, struct prompts_options *o, struct prompts **out)
{
    char text[1280];
    o->paths = r->s->prompts.path;
    o->path_count = r->s->prompts.count;
    if (r->s->data.count == 0) { /* otherwise the prompts are those of --data */
        o->fields = r->s->fields.path;
        o->field_count = r->s->fields.count;
    }
    o->skip_unusable = r->s->skip_unusable;
    wait_begin("reading %s%s", o->paths[0], o->path_count > 1 ? " and others" : "");
    const int rc = prompts_open(o, &r->tokenizer, out);
    wait_end();
    if (rc == 0)
        progress_passed_over(&r->progress, prompts_passed_over(*out));
    if (rc == 0 && row_unusable_text(prompts_notes(*out), text, sizeof text) != NULL)
        progress_say(&r->progress, "%s", text);
    return rc;
}
