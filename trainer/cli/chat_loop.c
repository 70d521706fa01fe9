/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_loop.c: see chat_loop.h. Each answer is a continuation of the whole conversation, rendered anew.
 */
#include "cli/chat_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/prompts.h"
#include "cli/screen.h"
#include "eval/texts.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "record/sample.h"
#include "run/run_engine.h"

enum { POSITIONS = 4096 }; /* positions without --seq-len */

struct chat_loop {
    struct run *run;
    json_t *messages;
    bool asks; /* whether standard input is a terminal */
    FILE *out;
};

/* Set the positions of the decoder. */
static int take_positions(struct run *r)
{
    struct model_config c;
    const int rc = source_config(r->student, &c);
    int64_t positions = r->s->seq_len;
    if (positions == 0)
        positions = config_positions(&c) < POSITIONS ? config_positions(&c) : POSITIONS;
    return rc != 0 ? rc : texts_positions(r, "a conversation of --seq-len", positions);
}

static int answer(struct chat_loop *l, const int32_t *ids, size_t count)
{
    const struct run *r = l->run;
    const struct sampling how = {r->engine, &r->tokenizer, &r->ends, run_sampling(r),
                                 texts_stop_texts(r->s)};
    const int64_t room = r->options.decode_positions - (int64_t)count;
    const bool fits = r->s->max_tokens <= room;
    struct sample_generated generated;
    wait_begin("writing an answer");
    int rc = sample_continue(&how, ids, (int64_t)count, fits ? r->s->max_tokens : room, l->out,
                             &generated);
    wait_end();
    if (rc != 0)
        return rc;
    fputc('\n', l->out);
    if (!messages_add(l->messages, "assistant", generated.text))
        return fail(NJ_E_NOMEM, "out of memory for the conversation");
    if (fflush(l->out) != 0)
        return fail(NJ_E_IO, "standard output: cannot be written: %s", strerror(errno));
    if (generated.cut)
        fprintf(stderr, "(cut at --%s %d)\n", fits ? "max-tokens" : "seq-len",
                fits ? (int)r->s->max_tokens : r->options.decode_positions);
    return 0;
}

/* Refuse a message without room for an answer; on a terminal the user may continue without it. */
static int refuse_message(struct chat_loop *l, size_t count)
{
    (void)fail(NJ_E_ARG,
               "the conversation has %zu tokens, and --seq-len is %d; raise it, or begin a new one "
               "by /new",
               count, l->run->options.decode_positions);
    if (!l->asks)
        return NJ_E_ARG;
    fprintf(stderr, "%s; this message is left out\n", fail_text());
    json_array_remove(l->messages, json_array_size(l->messages) - 1);
    return 0;
}

/* Begin a conversation, with the user's system message. */
static int begin(struct chat_loop *l)
{
    const char *system = l->run->s->system;
    json_array_clear(l->messages);
    if (system != NULL && !messages_add(l->messages, "system", json_text(system, strlen(system))))
        return fail(NJ_E_NOMEM, "out of memory for the conversation");
    return 0;
}

/* Answer the next message of the user. */
static int take_message(struct chat_loop *l, const char *text, size_t bytes)
{
    int32_t *ids = NULL;
    size_t count = 0;
    if (!messages_add(l->messages, "user", json_text(text, bytes)))
        return fail(NJ_E_NOMEM, "out of memory for the conversation");
    int rc = prompt_of_messages(&l->run->tokenizer, l->messages, &ids, &count);
    if (rc == 0)
        rc = (int64_t)count < l->run->options.decode_positions ? answer(l, ids, count)
                                                               : refuse_message(l, count);
    free(ids);
    return rc;
}

/* Return whether a line is a slash and a word, as commands are; a path has another slash. */
static bool is_command(const char *line)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t n = line[0] == '/' ? strspn(line + 1, letters) : 0;
    return n > 0 && (line[n + 1] == '\0' || line[n + 1] == ' ');
}

static int take_line(struct chat_loop *l, char *line, size_t bytes)
{
    static const char blank[] = " \t\r\n";
    const size_t from = strspn(line, blank);
    if (bytes > 0 && line[bytes - 1] == '\n')
        line[--bytes] = '\0';
    if (from >= bytes)
        return 0;
    if (strncmp(line, "/new", 4) == 0 && strspn(line + 4, blank) + 4 == bytes) {
        if (l->asks)
            fputs("new conversation\n", stderr);
        return begin(l);
    }
    if (l->asks && is_command(line)) {
        fputs("no such command; /new begins a new conversation, Ctrl-D ends\n", stderr);
        return 0;
    }
    return take_message(l, line, bytes);
}

static int take_lines(struct chat_loop *l)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes = 0;
    int rc = 0;
    while (rc == 0) {
        if (l->asks)
            fputs("> ", stderr);
        errno = 0;
        bytes = getline(&line, &capacity, stdin);
        if (bytes < 0)
            break;
        rc = take_line(l, line, (size_t)bytes);
    }
    if (l->asks && bytes < 0)
        fputc('\n', stderr);
    if (rc == 0 && !feof(stdin))
        rc = fail(NJ_E_IO, "standard input: cannot be read: %s", strerror(errno));
    free(line);
    return rc;
}

int chat_loop(struct run *r)
{
    const bool screen = isatty(STDOUT_FILENO);
    struct chat_loop l = {.run = r, .asks = isatty(STDIN_FILENO)};
    int rc = take_positions(r);
    r->options.decode_rows = 1;
    if (rc == 0)
        rc = run_open_engine(r);
    if (rc != 0)
        return rc;
    l.messages = json_array();
    l.out = screen ? screen_open(stdout) : stdout;
    if (l.messages == NULL || l.out == NULL)
        rc = fail(NJ_E_NOMEM, "out of memory for a conversation");
    if (rc == 0 && l.asks)
        fputs("each line is a message; /new begins a new conversation, Ctrl-D ends\n", stderr);
    if (rc == 0)
        rc = begin(&l);
    wait_end(); /* waits for the user are not reported */
    if (rc == 0)
        rc = take_lines(&l);
    wait_begin("ending");
    if (screen && l.out != NULL)
        fclose(l.out);
    json_decref(l.messages);
    return rc;
}
