/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_generate.c: `nojit generate`: continues a text, a token at a time.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/screen.h"
#include "io/error.h"
#include "io/plural.h"
#include "record/sample.h"
#include "run/run.h"
#include "run/run_engine.h"

static int print_text(struct run *r, const int32_t *prompt, int64_t count)
{
    const struct sampling how = {
        .engine = r->engine,
        .tokenizer = &r->tokenizer,
        .seed = (uint64_t)r->s->seed,
    };
    const bool terminal = isatty(STDOUT_FILENO);
    FILE *out = terminal ? screen_open(stdout) : stdout;
    if (out == NULL)
        return fail(NJ_E_NOMEM, "out of memory for the text");
    fputs(r->s->prompt, out);
    const int err = sample_continue(&how, prompt, count, r->s->max_tokens, out);
    if (terminal)
        fclose(out);
    if (!err)
        putchar('\n');
    return err;
}

static int generate(struct run *r)
{
    int32_t *ids = NULL;
    size_t count = 0;
    int err = tokenizer_open(r->student, &r->tokenizer);
    if (!err)
        err = run_engine_options(r);
    if (!err)
        err = sample_encode(&r->tokenizer, r->s->prompt, &ids, &count);
    const int64_t needed = (int64_t)count + r->s->max_tokens;
    if (r->options.seq_len == 0)
        r->options.seq_len = (int)needed;
    if (!err && needed > r->options.seq_len)
        err = fail(NJ_E_ARG,
                   "prompt and --max-tokens make %lld token%s, more than --seq-len %d; raise it",
                   (long long)needed, plural(needed), r->options.seq_len);
    r->options.batch_size = 1;
    r->options.steps = 0;
    if (!err)
        err = run_open_engine(r);
    if (!err)
        err = print_text(r, ids, (int64_t)count);
    free(ids);
    return err;
}

int cmd_generate(const struct settings *s)
{
    struct group alone = GROUP_ALONE;
    struct run r;
    int err = run_needs("generate", (struct needed[]){{"model", s->student != NULL}, {NULL}});
    if (err)
        return err;
    err = run_open(&r, s, &alone, true);
    if (!err)
        err = generate(&r);
    run_close(&r);
    return err;
}
