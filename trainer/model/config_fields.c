/* SPDX-License-Identifier: Apache-2.0
 *
 * config_fields.c: see config_fields.h.
 */
#include "model/config_fields.h"

#include "io/error.h"
#include "io/json_text.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config_name field_called(const struct config_file *f, const char *field)
{
    struct config_name out;
    if (f->name)
        return f->name(f->of, field);
    snprintf(out.text, sizeof out.text, "%s", field);
    return out;
}

const char *field_remedy(const struct config_file *f, const char *correction)
{
    return f->remedy ? f->remedy : correction;
}

json_t *field_get(const struct fields *f, const char *name)
{
    json_t *value = json_object_get(f->object, name);
    return json_is_null(value) ? NULL : value;
}

/* Write a value as text for a message: at most bytes - 1 characters of its JSON. */
static const char *value_text(const json_t *value, char *out, size_t bytes)
{
    char *text = json_shown(value, JSON_COMPACT);
    if (snprintf(out, bytes, "%s", text ? text : "?") >= (int)bytes)
        memcpy(out + bytes - 4, "...", 4);
    free(text);
    return out;
}

int field_refuse(const struct fields *f, int code, const char *name, const json_t *value,
                 const char *remedy)
{
    char text[80];
    return fail(code, "%s: %s is %s; %s", f->file->path, field_called(f->file, name).text,
                value_text(value, text, sizeof text), remedy);
}

const char *field_supported(const struct fields *f, const char *what, const char *correction,
                            char out[REMEDY_BYTES])
{
    snprintf(out, REMEDY_BYTES, "%s; %s", what, field_remedy(f->file, correction));
    return out;
}

static int refuse_missing(const struct fields *f, const char *name)
{
    return fail(NJ_E_FORMAT, "%s: %s is missing; %s", f->file->path,
                field_called(f->file, name).text,
                field_remedy(f->file, "add it as the model's documentation gives it"));
}

int field_int(const struct fields *f, const char *name, int missing, int *out)
{
    json_t *value = field_get(f, name);
    *out = missing;
    if (!value && missing > 0)
        return 0;
    if (!value)
        return refuse_missing(f, name);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > INT_MAX)
        return field_refuse(f, NJ_E_FORMAT, name, value, "it must be a whole number above 0");
    *out = (int)number;
    return 0;
}

int field_number(const struct fields *f, const char *name, double missing, double *out)
{
    json_t *value = field_get(f, name);
    *out = missing;
    if (!value && !isnan(missing))
        return 0;
    if (!value)
        return refuse_missing(f, name);
    *out = json_number_value(value);
    if (!json_is_number(value) || !((float)*out > 0) || !isfinite((float)*out))
        return field_refuse(f, NJ_E_FORMAT, name, value,
                            "it must be a number above 0 that float32 can hold");
    return 0;
}

int field_bool(const struct fields *f, const char *name, bool missing, bool *out)
{
    json_t *value = field_get(f, name);
    *out = value ? json_is_true(value) : missing;
    if (value && !json_is_boolean(value))
        return field_refuse(f, NJ_E_FORMAT, name, value, "it must be true or false");
    return 0;
}

int field_token(const struct fields *f, const char *name, int *out)
{
    json_t *value = field_get(f, name);
    *out = -1;
    if (json_is_array(value) && json_array_size(value) > 0)
        value = json_array_get(value, 0);
    if (!value || (json_is_array(value) && json_array_size(value) == 0))
        return 0;
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id > INT_MAX)
        return field_refuse(f, NJ_E_FORMAT, name, value, "it must be a token id or a list of them");
    *out = (int)id;
    return 0;
}
