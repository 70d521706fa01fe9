/* SPDX-License-Identifier: Apache-2.0
 *
 * thrift.c: see thrift.h.
 */
#include "data/thrift.h"

enum {
    STOP,
    TRUE_VALUE,
    FALSE_VALUE,
    BYTE,
    I16,
    I32,
    I64,
    DOUBLE,
    BINARY,
    LIST,
    SET,
    MAP,
    STRUCT,
    DEPTH_MOST = 32
};

static unsigned byte(struct thrift *t)
{
    t->bad = t->bad || t->at == t->end;
    return t->bad ? 0 : *t->at++;
}

static uint64_t varint(struct thrift *t)
{
    uint64_t value = 0;
    unsigned b = 0x80;
    for (unsigned shift = 0; b & 0x80; shift += 7) {
        b = byte(t);
        t->bad = t->bad || shift > 63;
        if (t->bad)
            return 0;
        value |= (uint64_t)(b & 0x7f) << shift;
    }
    return value;
}

static int64_t zigzag(struct thrift *t)
{
    const uint64_t value = varint(t);
    return (int64_t)(value >> 1 ^ (~(value & 1) + 1));
}

static size_t left(const struct thrift *t)
{
    return (size_t)(t->end - t->at);
}

/* Read a number of bytes, or of elements that take at least one byte. */
static size_t size(struct thrift *t, uint64_t value)
{
    t->bad = t->bad || value > left(t);
    return t->bad ? 0 : (size_t)value;
}

static void must(struct thrift *t, bool holds)
{
    t->bad = t->bad || !holds;
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
    const unsigned head = byte(t);
    if (t->bad || head == STOP)
        return false;
    f->type = (int)(head & 15);
    const int64_t id = head >> 4 ? f->id + (int64_t)(head >> 4) : zigzag(t);
    must(t, id > 0 && id <= INT16_MAX && f->type <= STRUCT && f->type != STOP);
    f->id = t->bad ? 0 : (int)id;
    return !t->bad;
}

int64_t thrift_int(struct thrift *t, const struct thrift_field *f)
{
    must(t, f->type >= BYTE && f->type <= I64);
    return f->type == BYTE ? (int8_t)byte(t) : zigzag(t);
}

bool thrift_bool(struct thrift *t, const struct thrift_field *f)
{
    must(t, f->type == TRUE_VALUE || f->type == FALSE_VALUE);
    return f->type == TRUE_VALUE;
}

struct thrift_text thrift_binary(struct thrift *t, const struct thrift_field *f)
{
    must(t, f->type == BINARY);
    const size_t bytes = size(t, varint(t));
    const char *text = (const char *)t->at;
    t->at += bytes;
    return t->bad ? (struct thrift_text){0} : (struct thrift_text){text, bytes};
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f)
{
    must(t, f->type == STRUCT);
    return !t->bad;
}

/* Read the head of a list: the type of its elements, and how many there are. */
static size_t list(struct thrift *t, int *type)
{
    const unsigned head = byte(t);
    *type = (int)(head & 15);
    return size(t, head >> 4 == 15 ? varint(t) : head >> 4);
}

size_t thrift_structs(struct thrift *t, const struct thrift_field *f)
{
    int type;
    must(t, f->type == LIST);
    const size_t count = list(t, &type);
    must(t, type == STRUCT || count == 0);
    return t->bad ? 0 : count;
}

static void skip_value(struct thrift *t, int type);

static void skip_struct(struct thrift *t)
{
    struct thrift_field f = {0};
    while (thrift_next(t, &f))
        thrift_skip(t, &f);
}

static void skip_list(struct thrift *t)
{
    int type;
    const size_t count = list(t, &type);
    for (size_t i = 0; i < count && !t->bad; i++)
        if (type == TRUE_VALUE || type == FALSE_VALUE) /* a byte each, unlike in a struct */
            byte(t);
        else
            skip_value(t, type);
}

static void skip_map(struct thrift *t)
{
    const size_t count = size(t, varint(t));
    const unsigned types = count > 0 ? byte(t) : 0;
    for (size_t i = 0; i < count && !t->bad; i++) {
        skip_value(t, (int)(types >> 4));
        skip_value(t, (int)(types & 15));
    }
}

static void skip_value(struct thrift *t, int type)
{
    must(t, ++t->depth <= DEPTH_MOST);
    if (type == BYTE)
        byte(t);
    else if (type >= I16 && type <= I64)
        varint(t);
    else if (type == DOUBLE)
        t->at += size(t, 8);
    else if (type == BINARY)
        thrift_binary(t, &(struct thrift_field){.type = BINARY});
    else if (type == LIST || type == SET)
        skip_list(t);
    else if (type == MAP)
        skip_map(t);
    else if (type == STRUCT)
        skip_struct(t);
    else
        must(t, type == TRUE_VALUE || type == FALSE_VALUE);
    t->depth--;
}

void thrift_skip(struct thrift *t, const struct thrift_field *f)
{
    skip_value(t, f->type);
}
