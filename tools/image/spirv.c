/* SPDX-License-Identifier: Apache-2.0
 *
 * spirv.c: reads SPIR-V: one pass over the instructions records where each id is defined; sizes and offsets follow from
 * there. Words are little-endian; every read is checked against the end.
 */
#include "image/spirv.h"

#include <stdlib.h>

enum { MAGIC = 0x07230203, HEADER_WORDS = 5, IDS_MAX = 1 << 20, DEPTH_MAX = 8 };
/* number of types that are read: nested structs grow exponentially */
enum { TYPES_MAX = 1 << 16 };

enum op {
    OP_SOURCE_CONTINUED = 2,
    OP_SOURCE = 3,
    OP_EXTENSION = 10,
    OP_IMPORT = 11,
    OP_MEMORY_MODEL = 14,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_VARIABLE = 59,
    OP_MEMBER_DECORATE = 72,
    OP_ATOMIC_FIRST = 227,
    OP_ATOMIC_LAST = 242,
    OP_ATOMIC_FLAG_FIRST = 318,
    OP_ATOMIC_FLAG_LAST = 319,
    OP_ATOMIC_FLOAT_MIN = 5614,
    OP_ATOMIC_FLOAT_MAX = 5615,
    OP_ATOMIC_FLOAT_ADD = 6035
};
enum { MODEL_COMPUTE = 5, MODE_LOCAL_SIZE = 17, DECORATION_OFFSET = 35 };
enum storage {
    STORAGE_UNIFORM_CONSTANT = 0,
    STORAGE_UNIFORM = 2,
    STORAGE_WORKGROUP = 4,
    STORAGE_PUSH_CONSTANT = 9,
    STORAGE_STORAGE_BUFFER = 12
};

struct reader {
    struct span module;
    uint32_t *defined; /* [ids] word of the instruction that defines it, or 0 */
    uint32_t ids, types;
    struct spirv *out;
};

static uint32_t word(const struct reader *r, uint32_t at)
{
    return span_u32(r->module, 4 * (uint64_t)at);
}

static uint32_t op_at(const struct reader *r, uint32_t at)
{
    return word(r, at) & 0xffff;
}

static uint32_t words_at(const struct reader *r, uint32_t at)
{
    return word(r, at) >> 16;
}

/* Return the place where an id is defined, or 0. */
static uint32_t find(const struct reader *r, uint32_t id)
{
    return id < r->ids ? r->defined[id] : 0;
}

static const char *text_at(const struct reader *r, uint32_t at)
{
    const char *text = span_string(r->module, 4 * (uint64_t)at);
    return text ? text : "?";
}

/* Return the bytes of a type in the scalar layout; 0 if its size is not known. */
static uint32_t type_bytes(struct reader *r, uint32_t id, int depth)
{
    const uint32_t at = find(r, id);
    uint32_t bytes = 0, length;
    if (at == 0 || depth == DEPTH_MAX || ++r->types > TYPES_MAX)
        return 0;
    switch (op_at(r, at)) {
    case OP_TYPE_BOOL:
        return 4;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
        return word(r, at + 2) / 8;
    case OP_TYPE_POINTER:
        return 8;
    case OP_TYPE_VECTOR:
        return type_bytes(r, word(r, at + 2), depth + 1) * word(r, at + 3);
    case OP_TYPE_ARRAY:
        length = find(r, word(r, at + 3));
        bytes = type_bytes(r, word(r, at + 2), depth + 1);
        return length && op_at(r, length) == OP_CONSTANT ? bytes * word(r, length + 3) : 0;
    case OP_TYPE_STRUCT:
        for (uint32_t i = 2; i < words_at(r, at); i++)
            bytes += type_bytes(r, word(r, at + i), depth + 1);
        return bytes;
    default:
        return 0;
    }
}

/* Note a capability. Shaders here may ask for Shader, Int64, addresses, and elements of 16 bits. */
static void note_capability(struct spirv *out, uint32_t capability)
{
    static const uint32_t allowed[] = {1, 11, 4433, 5347};
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (capability == allowed[i])
            return;
    if (!out->capability)
        out->capability = capability;
}

static void note_name(struct spirv *out, const char *name)
{
    static const char *const allowed[] = {"SPV_KHR_physical_storage_buffer", "GLSL.std.450",
                                          "SPV_KHR_16bit_storage",
                                          "SPV_KHR_storage_buffer_storage_class"};
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (!strcmp(name, allowed[i]))
            return;
    if (!out->extension)
        out->extension = name;
}

static bool is_atomic(uint32_t op)
{
    return (op >= OP_ATOMIC_FIRST && op <= OP_ATOMIC_LAST) ||
           (op >= OP_ATOMIC_FLAG_FIRST && op <= OP_ATOMIC_FLAG_LAST) || op == OP_ATOMIC_FLOAT_MIN ||
           op == OP_ATOMIC_FLOAT_MAX || op == OP_ATOMIC_FLOAT_ADD;
}

/* Return the word with an instruction's result, 0 for instructions whose result is not needed here. */
static uint32_t result_word(uint32_t op)
{
    if (op == OP_CONSTANT || op == OP_VARIABLE)
        return 2;
    return op >= OP_TYPE_BOOL && op <= OP_TYPE_POINTER ? 1 : 0;
}

static void note_instruction(struct reader *r, uint32_t at)
{
    struct spirv *out = r->out;
    const uint32_t op = op_at(r, at), result = result_word(op);
    if (result && word(r, at + result) < r->ids)
        r->defined[word(r, at + result)] = at;
    if (op == OP_CAPABILITY)
        note_capability(out, word(r, at + 1));
    else if (op == OP_EXTENSION)
        note_name(out, text_at(r, at + 1));
    else if (op == OP_IMPORT)
        note_name(out, text_at(r, at + 2));
    else if (op == OP_MEMORY_MODEL)
        out->addressing = word(r, at + 1);
    else if (op == OP_ENTRY_POINT && ++out->entries && word(r, at + 1) == MODEL_COMPUTE)
        out->entry = text_at(r, at + 3);
    else if (op == OP_EXECUTION_MODE && word(r, at + 2) == MODE_LOCAL_SIZE)
        for (uint32_t i = 0; i < 3; i++)
            out->local_size[i] = word(r, at + 3 + i);
    else if (op == OP_SOURCE_CONTINUED || (op == OP_SOURCE && words_at(r, at) > 4))
        out->source = true;
    else if (is_atomic(op) && !out->atomic)
        out->atomic = op;
}

/* Read the members of the block of push constants, in their order. */
static void read_block(struct reader *r, uint32_t type)
{
    struct spirv *out = r->out;
    const uint32_t at = find(r, type), end = (uint32_t)(r->module.bytes / 4);
    if (at == 0 || op_at(r, at) != OP_TYPE_STRUCT)
        return;
    for (uint32_t i = 2; i < words_at(r, at) && out->member_count < SPIRV_MEMBERS_MAX; i++)
        out->members[out->member_count++].bytes = type_bytes(r, word(r, at + i), 0);
    for (uint32_t n = HEADER_WORDS; n < end; n += words_at(r, n))
        if (op_at(r, n) == OP_MEMBER_DECORATE && word(r, n + 1) == type &&
            word(r, n + 3) == DECORATION_OFFSET && word(r, n + 2) < out->member_count)
            out->members[word(r, n + 2)].offset = word(r, n + 4);
}

static void read_variable(struct reader *r, uint32_t at)
{
    const uint32_t pointer = find(r, word(r, at + 1)), storage = word(r, at + 3);
    const uint32_t type =
        pointer && op_at(r, pointer) == OP_TYPE_POINTER ? word(r, pointer + 3) : 0;
    if (storage == STORAGE_WORKGROUP)
        r->out->shared_bytes += type_bytes(r, type, 0);
    else if (storage == STORAGE_PUSH_CONSTANT)
        read_block(r, type);
    else if (storage == STORAGE_UNIFORM_CONSTANT || storage == STORAGE_UNIFORM ||
             storage == STORAGE_STORAGE_BUFFER)
        r->out->descriptors = true;
}

int spirv_parse(struct span module, struct spirv *out, char why[WHY_BYTES])
{
    struct reader r = {.module = module, .out = out, .ids = span_u32(module, 12)};
    const uint32_t end = (uint32_t)(module.bytes / 4);
    int rc = 0;
    *out = (struct spirv){.version = span_u32(module, 4)};
    if (module.bytes % 4 != 0 || end <= HEADER_WORDS || span_u32(module, 0) != MAGIC)
        return fail(why, "is not a SPIR-V module");
    if (r.ids > IDS_MAX)
        return fail(why, "names %u ids", r.ids);
    r.defined = calloc(r.ids + 1, sizeof(*r.defined));
    if (!r.defined)
        return fail(why, "cannot be read: no memory for %u ids", r.ids);
    for (uint32_t at = HEADER_WORDS; at < end && rc == 0; at += words_at(&r, at)) {
        if (words_at(&r, at) == 0 || words_at(&r, at) > end - at)
            rc = fail(why, "has an instruction that reaches past its end, at word %u", at);
        else
            note_instruction(&r, at);
    }
    for (uint32_t at = HEADER_WORDS; at < end && rc == 0; at += words_at(&r, at))
        if (op_at(&r, at) == OP_VARIABLE)
            read_variable(&r, at);
    free(r.defined);
    return rc;
}
