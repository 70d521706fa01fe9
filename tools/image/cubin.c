/* SPDX-License-Identifier: Apache-2.0
 *
 * cubin.c: reads a cubin's ELF header, notes, symbols and .nv.info attributes. Offsets and meanings were read off the
 * output of ptxas 13.0, 13.1, 13.3 and 13.5, which agree on everything that is read here; an attribute of unexpected
 * size is an error. Other attributes are for the driver and are skipped: 13.3 gives each kernel two that 13.0 does not
 * (0x66: 3; 0x6b: 1), 13.5 a third (0x6d: 1).
 */
#include "image/cubin.h"
#include "image/elfbin.h"

enum {
    MACHINE_CUDA = 190,
    SYMBOL_BYTES = 24,
    SYMBOL_FUNC = 2,
    SYMBOL_ENTRY = 0x10, /* st_other of a kernel */
    BIND_LOCAL = 0,
    NOTE_CUINFO = 1000,
    NOTE_TKINFO = 2000,
    FIRST_SM_RESERVING_SHARED = 90,
    RESERVED_SHARED_BYTES = 1024,
};

/* The bits of e_flags that hold the SM; the top byte holds -lineinfo and -g. */
static const struct {
    uint8_t osabi, abi, sm_shift;
} abis[] = {{0x41, 8, 8}, {0x33, 7, 0}};

struct reader {
    struct elf elf;
    struct cubin *out;
    uint32_t entry_symbol; /* index of the kernel's symbol */
    char *why;
};

static int read_header(struct reader *r)
{
    const struct elf *e = &r->elf;
    if (e->machine != MACHINE_CUDA)
        return fail(r->why, "is machine code for ELF machine %u, not CUDA (190)", e->machine);
    for (size_t i = 0; i < sizeof(abis) / sizeof(*abis); i++) {
        if (e->osabi != abis[i].osabi || e->abi != abis[i].abi)
            continue;
        r->out->sm = e->flags >> abis[i].sm_shift & 0xff;
        return 0;
    }
    return fail(r->why, "has an unknown cubin ABI (0x%02x/%u)", e->osabi, e->abi);
}

static int read_symbols(struct reader *r)
{
    struct elf_section symbols, text;
    if (elf_find(&r->elf, ".symtab", &symbols) != 1 || symbols.type != ELF_SECTION_SYMTAB ||
        symbols.link >= r->elf.section_count || symbols.data.bytes % SYMBOL_BYTES != 0)
        return fail(r->why, "has no valid symbol table");
    struct span names = elf_section(&r->elf, symbols.link).data;
    for (uint32_t i = 1; i < symbols.data.bytes / SYMBOL_BYTES; i++) {
        struct span s = span_part(symbols.data, (uint64_t)i * SYMBOL_BYTES, SYMBOL_BYTES);
        const char *name = span_string(names, span_u32(s, 0));
        uint8_t info = span_u8(s, 4);
        uint16_t section = span_u16(s, 6);
        if (!name)
            return fail(r->why, "symbol %u has no valid name", i);
        /* The driver provides the weak symbols .nv.reservedSmem.*. */
        if (section == 0 && info >> 4 != BIND_LOCAL &&
            strncmp(name, ".nv.reservedSmem.", strlen(".nv.reservedSmem.")) != 0)
            r->out->undefined = name;
        if ((info & 15) != SYMBOL_FUNC || !(span_u8(s, 5) & SYMBOL_ENTRY))
            continue;
        if (r->out->kernels++ == 0) {
            r->out->entry = name;
            r->entry_symbol = i;
            if (section == 0 || section >= r->elf.section_count)
                return fail(r->why, "kernel %s lies in no section", name);
            text = elf_section(&r->elf, section);
            if (strncmp(text.name, ".text.", 6) != 0 || strcmp(text.name + 6, name) != 0)
                return fail(r->why, "kernel %s lies in section %s", name, text.name);
            r->out->code_bytes = text.data.bytes;
        }
    }
    return 0;
}

/* ---- notes ---- */

/* Find the one note of a section and return its contents. */
static int read_note(struct reader *r, const char *section, uint32_t type, struct span *content)
{
    struct elf_section s;
    if (elf_find(&r->elf, section, &s) != 1)
        return fail(r->why, "has no %s", section);
    uint32_t name_bytes = span_u32(s.data, 0), bytes = span_u32(s.data, 4);
    if (name_bytes != 12 || span_u32(s.data, 8) != type || !span_has(s.data, 24, bytes) ||
        memcmp(s.data.data + 12, "NVIDIA Corp", 12) != 0)
        return fail(r->why, "has a malformed %s", section);
    *content = span_part(s.data, 24, bytes);
    return 0;
}

/* Read the target in "... -arch sm_90a ...". */
static int read_target(struct reader *r, const char *command)
{
    static const char option[] = "-arch ";
    const char *at = strstr(command, option);
    size_t length = at ? strcspn(at + strlen(option), " ") : 0;
    if (length == 0 || length >= sizeof(r->out->target))
        return fail(r->why, "does not record the target ptxas was given");
    snprintf(r->out->target, sizeof(r->out->target), "%.*s", (int)length, at + strlen(option));
    return 0;
}

/* Read the level in "... -O 1 ...". */
static int read_level(struct reader *r, const char *command)
{
    static const char option[] = "-O ";
    const char *at = strstr(command, option), *level = at ? at + strlen(option) : "3";
    if (!strchr("0123", level[0]) || level[strcspn(level, " ")] != (at ? ' ' : 0) ||
        strcspn(level, " ") != 1)
        return fail(r->why, "records an unknown level of optimisation");
    r->out->level = level[0];
    return 0;
}

static int read_tkinfo(struct reader *r)
{
    enum { VERSION_OFF = 12, COMMAND_OFF = 20, STRINGS = 24 };
    struct span note;
    if (read_note(r, ".note.nv.tkinfo", NOTE_TKINFO, &note))
        return -1;
    struct span strings =
        span_part(note, STRINGS, note.bytes - (note.bytes < STRINGS ? note.bytes : STRINGS));
    const char *version = span_string(strings, span_u32(note, VERSION_OFF));
    const char *command = span_string(strings, span_u32(note, COMMAND_OFF));
    const char *number = version ? strstr(version, ", V") : NULL;
    if (!number || !command || strlen(number) - 3 >= sizeof(r->out->ptxas))
        return fail(r->why, "does not record the version of ptxas");
    snprintf(r->out->ptxas, sizeof(r->out->ptxas), "%s", number + 3);
    return read_target(r, command) || read_level(r, command) ? -1 : 0;
}

static int read_notes(struct reader *r)
{
    struct span note;
    struct elf_section compat;
    if (read_note(r, ".note.nv.cuinfo", NOTE_CUINFO, &note))
        return -1;
    r->out->virtual_sm = span_u16(note, 2);
    r->out->arch_specific = -1;
    if (elf_find(&r->elf, ".nv.compat", &compat) == 1) {
        if (span_u16(compat.data, 0) != 0x0902)
            return fail(r->why, "has an unknown .nv.compat");
        r->out->arch_specific = span_u8(compat.data, 2) != 0;
    }
    return read_tkinfo(r);
}

/* ---- .nv.info attributes ---- */

struct attribute {
    uint8_t number;
    uint16_t bytes; /* size of the payload */
    int (*read)(struct reader *r, struct span payload);
};

static int read_registers(struct reader *r, struct span p)
{
    if (span_u32(p, 0) == r->entry_symbol)
        r->out->registers = span_u32(p, 4);
    return 0;
}

static int read_stack(struct reader *r, struct span p)
{
    if (span_u32(p, 0) == r->entry_symbol && span_u32(p, 4) > r->out->stack_bytes)
        r->out->stack_bytes = span_u32(p, 4);
    return 0;
}

static int read_max_threads(struct reader *r, struct span p)
{
    uint64_t threads = (uint64_t)span_u32(p, 0) * span_u32(p, 4);
    if (threads > 1024 || threads * span_u32(p, 8) > 1024)
        return fail(r->why, "has a launch bound above 1,024 threads");
    r->out->max_threads = (uint32_t)threads * span_u32(p, 8);
    return 0;
}

static int read_param(struct reader *r, struct span p)
{
    uint16_t ordinal = span_u16(p, 4);
    if (ordinal >= CUBIN_MAX_PARAMS || r->out->params[ordinal].bytes)
        return fail(r->why, "lists parameter %u twice or out of range", ordinal);
    r->out->params[ordinal] =
        (struct cubin_param){span_u16(p, 6), (uint16_t)(span_u32(p, 8) >> 18)};
    r->out->param_count++;
    return 0;
}

static int read_param_bytes(struct reader *r, struct span p)
{
    r->out->param_bytes = span_u16(p, 0);
    return 0;
}

static int read_param_bank(struct reader *r, struct span p)
{
    r->out->bank_param_bytes = span_u16(p, 6);
    return 0;
}

static const struct attribute file_attributes[] = {
    {0x2f, 8, read_registers}, /* REGCOUNT: symbol, registers */
    {0x11, 8, read_stack},     /* FRAME_SIZE: symbol, bytes */
    {0x12, 8, read_stack},     /* MIN_STACK_SIZE: symbol, bytes including its callees */
    {0, 0, NULL},
};
static const struct attribute kernel_attributes[] = {
    {0x05, 12, read_max_threads}, /* MAX_THREADS: x, y, z */
    {0x0a, 8, read_param_bank},   /* PARAM_CBANK: symbol, offset, bytes */
    {0x17, 12, read_param},       /* KPARAM_INFO: index, ordinal, offset, bytes << 18 | ... */
    {0x19, 2, read_param_bytes},  /* CBANK_PARAM_SIZE */
    {0, 0, NULL},
};

static int read_attributes(struct reader *r, const char *section, const struct attribute *known)
{
    enum { FORMAT_SIZED = 4 };
    struct elf_section s;
    if (elf_find(&r->elf, section, &s) != 1)
        return fail(r->why, "has no %.150s", section);
    for (uint64_t at = 0; at < s.data.bytes;) {
        uint8_t format = span_u8(s.data, at), number = span_u8(s.data, at + 1);
        bool sized = format == FORMAT_SIZED;
        uint64_t off = at + (sized ? 4 : 2);
        uint16_t bytes = sized ? span_u16(s.data, at + 2) : 2;
        if (format == 0 || format > FORMAT_SIZED || !span_has(s.data, off, bytes))
            return fail(r->why, "%.150s is malformed at byte %llu", section,
                        (unsigned long long)at);
        for (const struct attribute *a = known; a->read; a++) {
            if (a->number != number)
                continue;
            if (a->bytes != bytes)
                return fail(r->why, "%.150s: attribute 0x%02x has %u bytes", section, number,
                            bytes);
            if (a->read(r, span_part(s.data, off, bytes)))
                return -1;
        }
        at = off + bytes;
    }
    return 0;
}

static void read_shared(struct reader *r)
{
    char name[WHY_BYTES];
    struct elf_section shared;
    snprintf(name, sizeof(name), ".nv.shared.%s", r->out->entry);
    if (elf_find(&r->elf, name, &shared) == 0)
        return;
    uint64_t reserved = r->out->sm >= FIRST_SM_RESERVING_SHARED ? RESERVED_SHARED_BYTES : 0;
    uint64_t bytes = shared.bytes > reserved ? shared.bytes - reserved : 0;
    r->out->static_shared_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

int cubin_parse(struct span file, struct cubin *out, char why[WHY_BYTES])
{
    struct reader r = {.out = out, .why = why};
    char name[WHY_BYTES];
    *out = (struct cubin){0};
    if (elf_open(file, &r.elf, why) || read_header(&r))
        return -1;
    if (r.elf.end != file.bytes)
        return fail(why, "is %zu bytes long, but its parts end at %llu", file.bytes,
                    (unsigned long long)r.elf.end);
    if (read_symbols(&r) || read_notes(&r) || read_attributes(&r, ".nv.info", file_attributes))
        return -1;
    if (!out->entry)
        return 0;
    snprintf(name, sizeof(name), ".nv.info.%s", out->entry);
    if (read_attributes(&r, name, kernel_attributes))
        return -1;
    read_shared(&r);
    return 0;
}
