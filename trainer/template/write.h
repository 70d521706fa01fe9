/* SPDX-License-Identifier: Apache-2.0
 *
 * write.h: values as text, as Python writes them.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_WRITE_H
#define NOJIT_TRAINER_TEMPLATE_WRITE_H

#include "template/value.h"

/* Append str() or repr() of the value to the output. */
int write_str(struct run *r, const struct value *v);
int write_repr(struct run *r, const struct value *v);
/* Append repr() of a float. */
int write_float(struct run *r, double x);
/* Make str() of the value. */
int value_str(struct run *r, const struct value *v, struct value *out);
/* Escape a string for HTML, unless it is safe HTML already. */
int value_escape(struct run *r, const struct value *v, struct value *out);

/* Arguments of json.dumps(). */
struct json_style {
    bool ascii, sorted;
    bool lines;           /* whether indent is given */
    struct value indent;  /* indentation, a text */
    struct value between; /* separator of items */
    struct value colon;
};
int write_json(struct run *r, const struct json_style *style, const struct value *v);

#endif
