/* SPDX-License-Identifier: Apache-2.0
 *
 * write.h: values as text, as Python writes them.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_WRITE_H
#define NOJIT_TRAINER_TEMPLATE_WRITE_H

#include "template/value.h"

/* Appends str() or repr() of the value to the output. */
int write_str(struct run *r, const struct value *v);
int write_repr(struct run *r, const struct value *v);
/* Appends repr() of a float. */
int write_float(struct run *r, double x);
/* Makes str() of the value. */
int value_str(struct run *r, const struct value *v, struct value *out);
/* Makes HTML of a string: its marks are escaped, unless it is safe HTML already. */
int value_escape(struct run *r, const struct value *v, struct value *out);

/* The arguments of json.dumps(). */
struct json_style {
    bool ascii, sorted;
    bool lines;           /* indent is given */
    struct value indent;  /* a text */
    struct value between; /* items */
    struct value colon;
};
int write_json(struct run *r, const struct json_style *style, const struct value *v);

#endif
