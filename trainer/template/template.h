/* SPDX-License-Identifier: Apache-2.0
 *
 * template.h: chat templates: programs in the part of Jinja that published ones use, run as jinja2 runs them when
 * transformers calls it: sandboxed, with trim_blocks, lstrip_blocks, loop controls and the tag `generation`. A pure
 * library: text and JSON in, text out.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_H
#define NOJIT_TRAINER_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct template;

struct template_span {
    size_t begin, end; /* bytes of the text */
};

/* What a template writes. Can be filled again and again; template_text_free() at the end. */
struct template_text {
    char *text;
    size_t bytes, capacity;
    struct template_span *span; /* what stood between {% generation %} and {% endgeneration %} */
    size_t spans, span_capacity;
    bool
        spans_unknown; /* such a block was inside a macro or a {% set %}, so its place is not known */
};

/* Parses UTF-8; name: of the template in errors. Returns 0, NJ_E_NOMEM, or NJ_E_FORMAT with a sentence that has the
 * line. *out is NULL on failure. */
int template_parse(const char *name, const char *text, size_t bytes, struct template **out);
void template_free(struct template *t); /* NULL is fine */
/* Whether this word stands in the template as a name, an attribute or a string. */
bool template_mentions(const struct template *t, const char *word);
/* Whether the template marks what the assistant says with {% generation %}. */
bool template_marks_generation(const struct template *t);

/* Sets the day that strftime_now() of all templates answers with, at midnight; without a call it is 26 July 2024, which
 * Llama 3.1's template has for those who do not ask for a date. */
void template_set_day(const struct tm *day);

/* Runs the template on an object of variables. Returns 0, NJ_E_NOMEM, or NJ_E_FORMAT: the template raised an
 * exception, failed, or ran beyond a limit of steps, depth or memory. */
int template_render(const struct template *t, json_t *variables, struct template_text *out);
void template_text_free(struct template_text *out);

#endif
