/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl.c: a file with a document as a JSON object in each line, in one of three forms:
 *   messages: a conversation; what the assistant says, and the token that ends its turn, has a loss
 *   prompt, completion: the completion has a loss
 *   text: all of it has a loss
 * Where several are there, the first of this list counts; other fields are not looked at. What has
 * a loss is encoded apart from what stands before it, as it is when the model generates; a conversation is encoded as a
 * whole, as transformers does.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "text/bpe.h"

/* ---- the three forms ---- */

static int add_plain(struct reader *r, const json_t *text)
{
    return json_is_string(text) ? jsonl_add_value(r, text, true)
                                : jsonl_bad_line(r, "text must be a string");
}

static int add_pair(struct reader *r, const json_t *prompt, const json_t *completion)
{
    if (!json_is_string(prompt) || !json_is_string(completion))
        return jsonl_bad_line(
            r, "prompt and completion must be strings; write a conversation as messages");
    int rc = jsonl_add_value(r, prompt, false);
    return rc ? rc : jsonl_add_value(r, completion, true);
}

static int add_document(struct reader *r, const json_t *object)
{
    const json_t *messages = json_object_get(object, "messages");
    const json_t *completion = json_object_get(object, "completion");
    const json_t *prompt = json_object_get(object, "prompt");
    const json_t *text = json_object_get(object, "text");
    const size_t first = r->parts;
    int rc;
    if (messages)
        rc = jsonl_add_messages(r, object, messages);
    else if (prompt && completion)
        rc = add_pair(r, prompt, completion);
    else if (text)
        rc = add_plain(r, text);
    else
        rc =
            jsonl_bad_line(r, json_is_object(object)
                                  ? "the object has neither text, nor prompt and completion, nor "
                                    "messages; rename its fields"
                                  : "a line must be an object with text, prompt and completion, or "
                                    "messages");
    if (rc)
        return rc;
    r->part[first].starts = true;
    r->part[r->parts - 1].ends = true;
    r->part[r->parts - 1].end_loss = !messages;
    return NJ_OK;
}

static int store_part(struct reader *r, const struct part *p, const struct span *ids)
{
    const int32_t begin = tokenizer_begin_of_text(r->tokenizer), end = r->tokenizer->end_of_text;
    int rc = NJ_OK;
    if (p->rendered)
        return marked_add(r, p, ids);
    if (p->starts && begin >= 0)
        rc = segment_add(r->segment, &begin, 1, true);
    if (!rc)
        rc = segment_add(r->segment, ids->ids, ids->count, p->loss);
    if (!rc && p->ends)
        rc = segment_add(r->segment, &end, 1, p->end_loss);
    return rc;
}

int open_jsonl(struct segment *s, const struct tokenizer *t)
{
    struct reader r = {.segment = s, .tokenizer = t, .object = add_document, .store = store_part};
    const int rc = segment_begin_text(s, t);
    return rc ? rc : jsonl_read(&r);
}
