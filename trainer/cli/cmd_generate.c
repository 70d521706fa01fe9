/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_generate.c: `nojit generate`: continues a prompt, or those of a file, or holds a conversation.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/chat_loop.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "eval/texts.h"
#include "io/error.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "record/sample.h"
#include "run/day.h"
#include "run/run.h"
#include "run/run_engine.h"
#include "run/teacher_types.h"

static int print_text(struct run *r, const int32_t *prompt, size_t count)
{
    const struct sampling how = {r->engine, &r->tokenizer, &r->ends, run_sampling(r),
                                 texts_stop_texts(r->s)};
    const bool terminal = isatty(STDOUT_FILENO);
    FILE *out = terminal ? screen_open(stdout) : stdout;
    if (out == NULL)
        return fail(NJ_E_NOMEM, "out of memory for the text");
    if (!r->s->chat)
        fputs(r->s->prompt, out);
    wait_now("writing the text");
    const int rc = sample_continue(&how, prompt, (int64_t)count, r->s->max_tokens, out, NULL);
    if (terminal)
        fclose(out);
    if (rc == 0)
        putchar('\n');
    return rc;
}

static int continue_prompt(struct run *r)
{
    int32_t *ids = NULL;
    size_t count = 0;
    int rc = r->s->chat ? prompt_of_chat(&r->tokenizer, r->s->system, r->s->prompt, &ids, &count)
                        : sample_encode(&r->tokenizer, r->s->prompt, &ids, &count);
    if (rc == 0)
        rc = texts_positions(r, "the prompt", (int64_t)count + r->s->max_tokens);
    r->options.decode_rows = 1;
    if (rc == 0)
        rc = run_open_engine(r);
    if (rc == 0)
        rc = print_text(r, ids, count);
    free(ids);
    return rc;
}

static int open_prompts(struct run *r, struct prompts **out)
{
    struct model_config c;
    const int rc = source_config(r->student, &c);
    const bool given = r->s->seq_len > 0 && r->s->seq_len < config_positions(&c);
    struct prompts_options o = {
        .vocab_size = c.vocab_size,
        .room = given ? (int)r->s->seq_len : config_positions(&c),
        .room_name = given ? "--seq-len" : "the model's max_position_embeddings",
        .most = (int)r->s->max_tokens,
    };
    return rc != 0 ? rc : run_open_prompts(r, &o, out);
}

static int continue_prompts(struct run *r)
{
    struct prompts *prompts = NULL;
    int rc = open_prompts(r, &prompts);
    if (rc == 0)
        rc = texts_positions(r, "the longest prompt",
                             prompts_longest_text(prompts, r->s->max_tokens));
    if (rc == 0)
        rc = texts_rows(r, prompts_count(prompts) * r->s->num_return_sequences);
    if (rc == 0)
        rc = run_open_engine(r);
    if (rc == 0)
        rc = texts_write(r, prompts, stdout);
    prompts_close(prompts);
    return rc;
}

static int generate(struct run *r)
{
    TRY(tokenizer_open_as(r->student, (enum tokenizer_choice)r->s->tokenizer, &r->tokenizer));
    TRY(run_engine_options(r));
    TRY(run_student_types(r));
    TRY(run_stops(r));
    r->options.batch_size = r->options.seq_len = 1; /* the engine is used for writing only */
    if (r->s->prompts.count > 0)
        return continue_prompts(r);
    return !settings_given(r->s, "prompt") ? chat_loop(r) : continue_prompt(r);
}

/* Check the source of the prompts. */
static int check_source(const struct settings *s)
{
    const bool prompt = settings_given(s, "prompt"), file = s->prompts.count > 0;
    if (!prompt && !file && !s->chat)
        return fail(NJ_E_ARG, "--prompt, --prompts or --chat is needed");
    if (prompt && file)
        return fail(NJ_E_ARG, "--prompt and --prompts: give one of them");
    if (s->chat && file)
        return fail(NJ_E_ARG, "--chat is for --prompt; conversations in --prompts are lines with "
                              "messages");
    if (s->system != NULL && !s->chat)
        return fail(NJ_E_ARG, "--system is for --chat; a prompt alone has no system message");
    return 0;
}

static int check_sequences(const struct settings *s)
{
    if (s->num_return_sequences > 1 && s->prompts.count == 0)
        return fail(NJ_E_ARG, "--num-return-sequences is for --prompts; leave it out, or put the "
                              "prompt into a file");
    if (s->num_return_sequences > 1 && s->sample_temperature == 0)
        return fail(NJ_E_ARG,
                    "--num-return-sequences %lld: with --temperature 0 all of them are "
                    "the same; raise it",
                    (long long)s->num_return_sequences);
    return 0;
}

static int check_stops(const struct settings *s)
{
    for (size_t i = 0; i < s->stop.count; i++)
        if (s->stop.path[i][0] == '\0')
            return fail(NJ_E_ARG, "--stop: a text is empty; remove it or give the text to stop "
                                  "at");
    return 0;
}

int cmd_generate(const struct settings *s)
{
    struct group alone = GROUP_ALONE;
    struct run r;
    int rc = run_needs("generate", (struct needed[]){{"model", s->student != NULL}, {NULL}});
    if (rc == 0)
        rc = check_source(s);
    if (rc == 0 && s->fields.count > 0 && s->prompts.count == 0)
        rc =
            fail(NJ_E_ARG, "--fields names columns of --prompts, and there are none; leave it out");
    if (rc == 0)
        rc = check_sequences(s);
    if (rc == 0)
        rc = check_stops(s);
    if (rc != 0)
        return rc;
    rc = run_open(&r, s, &alone, true);
    if (rc == 0)
        rc = day_use(s->template_date, r.day);
    if (rc == 0)
        rc = generate(&r);
    run_close(&r);
    return rc;
}
