/* SPDX-License-Identifier: Apache-2.0
 *
 * template.h: chat templates: programs in the part of Jinja that published ones use, run as
 * jinja2 runs them when transformers calls it: sandboxed, with trim_blocks, lstrip_blocks, loop
 * controls and the tag `generation`. A pure library: text and JSON in, text out.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_H
#define NOJIT_TRAINER_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct template;

struct template_span {
    size_t begin, end; /* range of bytes of the text */
};

/* Output of a template. May be filled repeatedly; call template_text_free() at the end. */
struct template_text {
    char *text;
    size_t bytes, capacity;
    struct template_span *span; /* ranges between {% generation %} and {% endgeneration %} */
    size_t spans, span_capacity;
    bool
        spans_unknown; /* whether such a block was in a macro or a {% set %}, so its place is unknown */
};

/* Parse UTF-8; name: name of the template in errors. Return 0, NJ_E_NOMEM, or NJ_E_FORMAT with a
 * sentence that has the line. *out is NULL on failure. */
int template_parse(const char *name, const char *text, size_t bytes, struct template **out);
void template_free(struct template *t); /* t may be NULL */
/* Return whether this word occurs in the template as a name, an attribute or a string. */
bool template_mentions(const struct template *t, const char *word);
/* Return whether the template marks the assistant's text with {% generation %}. */
bool template_marks_generation(const struct template *t);

/* Set the day that strftime_now() of all templates returns, at midnight; by default it is 26
 * July 2024, which Llama 3.1's template uses if no date is given. */
void template_set_day(const struct tm *day);

/* Run the template on an object of variables. Return 0, NJ_E_NOMEM, or NJ_E_FORMAT: the template
 * raised an exception, failed, or exceeded a limit of steps, depth or memory. */
int template_render(const struct template *t, json_t *variables, struct template_text *out);
void template_text_free(struct template_text *out);

#endif
