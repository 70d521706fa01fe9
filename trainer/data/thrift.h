/* SPDX-License-Identifier: Apache-2.0
 *
 * thrift.h: inside of the Parquet reader: structs in Thrift's compact protocol. Malformed bytes set `bad`, after which
 * nothing is read; callers check it once, at the end.
 */
#ifndef NOJIT_TRAINER_THRIFT_H
#define NOJIT_TRAINER_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thrift {
    const unsigned char *at, *end;
    bool bad;
    int depth; /* nesting depth of the value that is being skipped */
};

/* A field of a struct; zeroed before the first one. */
struct thrift_field {
    int id, type;
};

struct thrift_text {
    const char *text; /* text without a NUL; NULL: none */
    size_t bytes;
};

/* Read the head of the next field; false at the end of the struct. Its value must then be read or skipped. */
bool thrift_next(struct thrift *t, struct thrift_field *f);
int64_t thrift_int(struct thrift *t, const struct thrift_field *f);
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
struct thrift_text thrift_binary(struct thrift *t, const struct thrift_field *f);
/* Return whether the field is a struct, whose fields come next. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);
/* Read the head of a list of structs and return how many follow. */
size_t thrift_structs(struct thrift *t, const struct thrift_field *f);
void thrift_skip(struct thrift *t, const struct thrift_field *f);

#endif
