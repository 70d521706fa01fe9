/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_parse.c: PTX text to entries of instructions. Directives and state spaces that nvcc does not
 * emit for these kernels are refused, not skipped.
 */
#include "ptx_parse.h"
#include "exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int parse_bad(struct parser *parser, const char *format, ...)
{
    struct sim_fault *fault = parser->fault;
    fault->kind = SIM_BAD_PTX;
    const int used = snprintf(
        fault->text, sizeof fault->text,
        "%s%sline %u of the PTX: ", parser->entry && parser->entry->name ? parser->entry->name : "",
        parser->entry && parser->entry->name ? ", " : "", parser->lexer.token.line);
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text + used, sizeof fault->text - (size_t)used, format, args);
    va_end(args);
    return -1;
}

static int no_memory(struct parser *parser)
{
    parser->fault->kind = SIM_NO_MEMORY;
    snprintf(parser->fault->text, sizeof parser->fault->text, "no memory to decode PTX");
    return -1;
}

int parse_grow(struct parser *parser, void *array, uint32_t count, size_t bytes)
{
    if (count & (count - 1) || count == 1)
        return 0; /* room for 2, and doubled at every power of two from there */
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (count ? 2 * (size_t)count : 2) * bytes);
    if (!grown)
        return no_memory(parser);
    memcpy(array, &grown, sizeof grown);
    return 0;
}

/* The number at the end of a name; *stem becomes the length of what stands before. */
static bool trailing_number(const struct token *name, size_t *stem, uint32_t *number)
{
    size_t at = name->length;
    while (at > 0 && name->text[at - 1] >= '0' && name->text[at - 1] <= '9')
        at--;
    *stem = at;
    *number = 0;
    for (size_t i = at; i < name->length; i++)
        *number = 10 * *number + (uint32_t)(name->text[i] - '0');
    return at < name->length && name->length - at <= 9;
}

const struct symbol *parse_symbol(const struct parser *parser, const struct token *name,
                                  uint32_t *index)
{
    size_t stem;
    uint32_t number;
    const bool numbered = trailing_number(name, &stem, &number);
    if (name->kind != TOKEN_WORD)
        return NULL;
    for (uint32_t i = parser->symbol_count; i-- > 0;) {
        const struct symbol *s = &parser->symbols[i];
        const bool range = s->kind == SYMBOL_REGISTERS;
        if (s->length != (range ? stem : name->length) || memcmp(s->name, name->text, s->length))
            continue;
        if (!range || (numbered && number < s->count)) {
            *index = range ? number : 0;
            return s;
        }
    }
    return NULL;
}

static int add_symbol(struct parser *parser, struct symbol symbol)
{
    if (parse_grow(parser, &parser->symbols, parser->symbol_count, sizeof *parser->symbols))
        return -1;
    parser->symbols[parser->symbol_count++] = symbol;
    return 0;
}

static int add_classes(struct parser *parser, char class, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (parse_grow(parser, &parser->classes, parser->class_count, 1))
            return -1;
        parser->classes[parser->class_count++] = class;
    }
    return 0;
}

static const struct {
    const char *name;
    uint32_t bytes;
    char class;
} types[] = {
    {".pred", 0, 'p'}, {".b8", 1, 0},    {".u8", 1, 0},    {".s8", 1, 0},
    {".b16", 2, 'h'},  {".u16", 2, 'h'}, {".s16", 2, 'h'}, {".f16", 2, 'h'},
    {".b32", 4, 'r'},  {".u32", 4, 'r'}, {".s32", 4, 'r'}, {".f32", 4, 'r'},
    {".b64", 8, 'l'},  {".u64", 8, 'l'}, {".s64", 8, 'l'}, {".f64", 8, 'l'},
};

/* Index of types, or -1 after a fault. */
static int read_type(struct parser *parser)
{
    const struct token *token = &parser->lexer.token;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (token_is(token, types[i].name)) {
            lexer_next(&parser->lexer);
            return (int)i;
        }
    }
    return parse_bad(parser, "type %.*s is not known", (int)token->length, token->text);
}

static int read_count(struct parser *parser, uint32_t *count)
{
    const struct token *token = &parser->lexer.token;
    if (token->kind != TOKEN_INTEGER || token->value > 1 << 24)
        return parse_bad(parser, "\"%.*s\" is no count", (int)token->length, token->text);
    *count = (uint32_t)token->value;
    lexer_next(&parser->lexer);
    return 0;
}

static int read_name(struct parser *parser, struct token *name)
{
    *name = parser->lexer.token;
    if (name->kind != TOKEN_WORD)
        return parse_bad(parser, "\"%.*s\" is no name", (int)name->length, name->text);
    lexer_next(&parser->lexer);
    return 0;
}

/* .reg TYPE name, name<count>; */
static int read_registers(struct parser *parser)
{
    const int type = read_type(parser);
    if (type < 0)
        return -1;
    const char class = types[type].class;
    if (!class)
        return parse_bad(parser, "registers of type %s are not known", types[type].name);
    for (;;) {
        struct token name;
        struct symbol symbol = {
            .kind = SYMBOL_REGISTER, .class = class, .first = parser->class_count, .count = 1};
        if (read_name(parser, &name))
            return -1;
        symbol.name = name.text;
        symbol.length = name.length;
        if (token_is(&parser->lexer.token, "<")) {
            lexer_next(&parser->lexer);
            symbol.kind = SYMBOL_REGISTERS;
            if (read_count(parser, &symbol.count) || parse_mark(parser, ">"))
                return -1;
        }
        if (add_classes(parser, class, symbol.count) || add_symbol(parser, symbol))
            return -1;
        if (!token_is(&parser->lexer.token, ","))
            return parse_mark(parser, ";");
        lexer_next(&parser->lexer);
    }
}

static int read_align(struct parser *parser, uint32_t *align)
{
    *align = 0;
    if (!token_is(&parser->lexer.token, ".align"))
        return 0;
    lexer_next(&parser->lexer);
    if (read_count(parser, align))
        return -1;
    if (*align == 0 || *align & (*align - 1))
        return parse_bad(parser, "alignment %u is no power of two", *align);
    return 0;
}

static size_t round_up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* .shared .align N .TYPE name[count]; or, after .extern, name[]; */
static int read_shared(struct parser *parser, bool dynamic)
{
    uint32_t align, count = 1;
    if (read_align(parser, &align))
        return -1;
    const int type = read_type(parser);
    struct token name;
    if (type < 0 || read_name(parser, &name))
        return -1;
    if (token_is(&parser->lexer.token, "[")) {
        lexer_next(&parser->lexer);
        if ((!dynamic && read_count(parser, &count)) || parse_mark(parser, "]"))
            return -1;
    }
    align = align > types[type].bytes ? align : types[type].bytes;
    if (dynamic) {
        parser->dynamic_align = align > parser->dynamic_align ? align : parser->dynamic_align;
    } else if (!parser->entry || parser->has_code) {
        return parse_bad(parser, "a shared variable outside of a kernel's declarations");
    } else {
        parser->entry->shared_bytes = round_up(parser->entry->shared_bytes, align);
    }
    const struct symbol symbol = {.name = name.text,
                                  .length = name.length,
                                  .kind = dynamic ? SYMBOL_DYNAMIC : SYMBOL_SHARED,
                                  .first = dynamic ? 0 : (uint32_t)parser->entry->shared_bytes};
    if (!dynamic)
        parser->entry->shared_bytes += (size_t)count * types[type].bytes;
    return add_symbol(parser, symbol) || parse_mark(parser, ";") ? -1 : 0;
}

/* .param .TYPE [.ptr [.SPACE] .align N] name, or .param .align N .b8 name[count] */
static int read_param(struct parser *parser)
{
    struct sim_entry *entry = parser->entry;
    uint32_t align, bytes_align, count = 1;
    if (parse_mark(parser, ".param") || read_align(parser, &bytes_align))
        return -1;
    const int type = read_type(parser);
    if (type < 0)
        return -1;
    if (token_is(&parser->lexer.token, ".ptr")) {
        lexer_next(&parser->lexer);
        if (token_is(&parser->lexer.token, ".global"))
            lexer_next(&parser->lexer);
        if (read_align(parser, &align))
            return -1;
    }
    struct token name;
    if (read_name(parser, &name))
        return -1;
    if (bytes_align &&
        (parse_mark(parser, "[") || read_count(parser, &count) || parse_mark(parser, "]")))
        return -1;
    if (types[type].bytes == 0 || (types[type].bytes == 1) != (bytes_align != 0))
        return parse_bad(parser, "a parameter that is no number is not known");
    if (parse_grow(parser, &entry->params, (uint32_t)entry->param_count, sizeof *entry->params))
        return -1;
    const size_t bytes = (size_t)count * types[type].bytes;
    align = bytes_align ? bytes_align : (uint32_t)bytes;
    const size_t offset =
        round_up(parser->params_at + entry->param_bytes, align) - parser->params_at;
    entry->params[entry->param_count] = (struct param){offset, bytes};
    entry->param_bytes = offset + bytes;
    return add_symbol(parser, (struct symbol){.name = name.text,
                                              .length = name.length,
                                              .kind = SYMBOL_PARAM,
                                              .first = (uint32_t)entry->param_count++});
}

static int read_params(struct parser *parser)
{
    if (parse_mark(parser, "("))
        return -1;
    while (!token_is(&parser->lexer.token, ")")) {
        if (parser->entry->param_count && parse_mark(parser, ","))
            return -1;
        if (read_param(parser))
            return -1;
    }
    return parse_mark(parser, ")");
}

/* x, y, z behind a directive; those that are not there are 1. */
static int read_sizes(struct parser *parser, uint32_t sizes[3])
{
    int i = 0;
    sizes[0] = sizes[1] = sizes[2] = 1;
    do {
        lexer_next(&parser->lexer);
        if (i == 3 || read_count(parser, &sizes[i++]))
            return -1;
    } while (token_is(&parser->lexer.token, ","));
    return 0;
}

/* .maxntid x, y, z and the like, up to the body. */
static int read_bounds(struct parser *parser)
{
    struct sim_entry *entry = parser->entry;
    entry->cluster = 1;
    while (!token_is(&parser->lexer.token, "{")) {
        const struct token word = parser->lexer.token;
        uint32_t sizes[3];
        if (token_is(&word, ".explicitcluster")) {
            lexer_next(&parser->lexer);
            continue;
        }
        const bool threads = token_is(&word, ".maxntid");
        const bool cluster = token_is(&word, ".reqnctapercluster");
        if (!threads && !cluster && !token_is(&word, ".minnctapersm"))
            return parse_bad(parser, "directive %.*s is not known", (int)word.length, word.text);
        if (read_sizes(parser, sizes))
            return -1;
        if (threads)
            entry->threads_max = sizes[0] * sizes[1] * sizes[2];
        if (cluster)
            entry->cluster = sizes[0];
        if (cluster && (sizes[0] == 0 || sizes[1] != 1 || sizes[2] != 1))
            return parse_bad(parser, "a cluster of blocks that are no row");
    }
    if (entry->cluster > 1)
        entry->needs |= NEEDS_ORDER;
    return 0;
}

/* Shared variables come before code: from the first instruction on, dynamic memory has its place. */
static void begin_code(struct parser *parser)
{
    if (!parser->has_code)
        parser->entry->dynamic_at = round_up(parser->entry->shared_bytes, parser->dynamic_align);
    parser->has_code = true;
}

static int read_instruction(struct parser *parser)
{
    struct sim_entry *entry = parser->entry;
    struct insn insn = {.line = parser->lexer.token.line};
    begin_code(parser);
    if (token_is(&parser->lexer.token, "@")) {
        lexer_next(&parser->lexer);
        if (parse_guard(parser, &insn))
            return -1;
    }
    struct token text;
    if (read_name(parser, &text) || parse_operands(parser, &insn, &text))
        return -1;
    insn.run = insn.guarded && (insn.opcode->how & GUARD) == GUARD_LANES ? sim_run_guarded
                                                                         : insn.opcode->run;
    if (parse_grow(parser, &entry->code, entry->code_count, sizeof *entry->code))
        return -1;
    entry->code[entry->code_count++] = insn;
    entry->needs |= insn.opcode->how & ~(unsigned)GUARD;
    return 0;
}

static int read_label_or_instruction(struct parser *parser)
{
    const struct lexer start = parser->lexer;
    const struct token word = start.token;
    lexer_next(&parser->lexer);
    if (word.kind != TOKEN_WORD || !token_is(&parser->lexer.token, ":")) {
        parser->lexer = start;
        return read_instruction(parser);
    }
    lexer_next(&parser->lexer);
    if (parse_grow(parser, &parser->labels, parser->label_count, sizeof *parser->labels))
        return -1;
    parser->labels[parser->label_count++] =
        (struct label){word.text, word.length, parser->entry->code_count, word.line};
    return 0;
}

/* Skips .pragma "nounroll"; and the like. */
static int skip_statement(struct parser *parser)
{
    while (!token_is(&parser->lexer.token, ";")) {
        if (parser->lexer.token.kind == TOKEN_END)
            return parse_bad(parser, "the text ends within a statement");
        lexer_next(&parser->lexer);
    }
    lexer_next(&parser->lexer);
    return 0;
}

static int read_statement(struct parser *parser)
{
    const struct token *token = &parser->lexer.token;
    if (token->kind == TOKEN_END || token->kind == TOKEN_BAD)
        return parse_bad(parser, "\"%.*s\" stands where a statement should", (int)token->length,
                         token->text);
    if (token->text[0] != '.')
        return read_label_or_instruction(parser);
    const bool reg = token_is(token, ".reg"), shared = token_is(token, ".shared");
    if (!reg && !shared && !token_is(token, ".pragma"))
        return parse_bad(parser, "directive %.*s is not known", (int)token->length, token->text);
    lexer_next(&parser->lexer);
    return reg      ? read_registers(parser)
           : shared ? read_shared(parser, false)
                    : skip_statement(parser);
}

static int compare_labels(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    const int order = memcmp(a->name, b->name, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* The numbers of declarations before a brace opened. */
struct scope {
    uint32_t symbols, labels, jumps;
};

/* Close a scope at its brace: jumps within it go to its labels, and then to outer ones. */
static int close_scope(struct parser *parser, const struct scope *scope, bool outermost)
{
    struct label *labels = parser->labels ? parser->labels + scope->labels : NULL;
    const uint32_t count = parser->label_count - scope->labels;
    uint32_t left = scope->jumps;
    if (count)
        qsort(labels, count, sizeof *labels, compare_labels);
    for (uint32_t i = scope->jumps; i < parser->jump_count; i++) {
        const struct label jump = parser->jumps[i];
        const struct label *label =
            count ? bsearch(&jump, labels, count, sizeof *labels, compare_labels) : NULL;
        if (outermost && (!label || label->at >= parser->entry->code_count))
            return parse_bad(parser, "no instruction has label %.*s, which line %u jumps to",
                             (int)jump.length, jump.name, jump.line);
        if (label)
            parser->entry->code[jump.at].target = label->at;
        else
            parser->jumps[left++] = jump;
    }
    parser->symbol_count = scope->symbols;
    parser->label_count = scope->labels;
    parser->jump_count = left;
    return 0;
}

/* { statements }: names declared within end with it. */
static int read_body(struct parser *parser)
{
    struct scope outer[16];
    uint32_t depth = 0;
    do {
        if (token_is(&parser->lexer.token, "{")) {
            if (depth == sizeof outer / sizeof *outer)
                return parse_bad(parser, "braces nest too deeply");
            outer[depth++] =
                (struct scope){parser->symbol_count, parser->label_count, parser->jump_count};
            lexer_next(&parser->lexer);
        } else if (token_is(&parser->lexer.token, "}")) {
            depth--;
            if (close_scope(parser, &outer[depth], depth == 0))
                return -1;
            lexer_next(&parser->lexer);
        } else if (read_statement(parser)) {
            return -1;
        }
    } while (depth);
    return 0;
}

/* Labels at the end of inner braces stand for what follows, which must be there. */
static int check_jumps(struct parser *parser)
{
    const struct sim_entry *entry = parser->entry;
    for (uint32_t i = 0; i < entry->code_count; i++) {
        if (strchr(entry->code[i].opcode->operands, 'L') &&
            entry->code[i].target >= entry->code_count)
            return parse_bad(parser, "no instruction follows the label that line %u jumps to",
                             entry->code[i].line);
    }
    return 0;
}

static int add_entry(struct parser *parser)
{
    struct sim_module *module = parser->module;
    if (parse_grow(parser, &module->entries, (uint32_t)module->count, sizeof *module->entries))
        return -1;
    struct sim_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return no_memory(parser);
    module->entries[module->count++] = entry;
    parser->entry = entry;
    struct token name;
    if (read_name(parser, &name))
        return -1;
    entry->name = strndup(name.text, name.length);
    return entry->name ? 0 : no_memory(parser);
}

/* .entry name(params) bounds { ... } */
static int read_entry(struct parser *parser)
{
    const uint32_t outer = parser->symbol_count;
    parser->class_count = parser->label_count = parser->jump_count = 0;
    parser->has_code = false;
    if (add_entry(parser) || add_classes(parser, 'r', SPECIAL_COUNT) || read_params(parser) ||
        read_bounds(parser) || read_body(parser) || check_jumps(parser))
        return -1;
    struct sim_entry *entry = parser->entry;
    if (entry->code_count == 0)
        return parse_bad(parser, "a kernel without instructions");
    begin_code(parser);
    uint32_t unmade = UINT32_MAX;
    if (sim_assign_registers(entry, parser->classes, parser->class_count, &unmade))
        return no_memory(parser);
    if (unmade != UINT32_MAX) {
        parser->lexer.token.line = entry->code[unmade].line;
        return parse_bad(parser, "%s reads a register that nothing before it writes",
                         entry->code[unmade].opcode->text);
    }
    parser->entry = NULL;
    parser->symbol_count = outer;
    return 0;
}

/* sm_90a: where ptxas lets parameters begin in the bank of constants, by which it aligns them. */
static void read_target(struct parser *parser, const struct token *target)
{
    int sm = 0;
    for (size_t i = 0; i < target->length; i++)
        if (target->text[i] >= '0' && target->text[i] <= '9')
            sm = 10 * sm + (target->text[i] - '0');
    parser->params_at = sm >= 100 ? 0x380 : sm >= 90 ? 0x210 : 0x160;
}

/* Read a statement outside of kernels. */
static int read_module_statement(struct parser *parser)
{
    const struct token word = parser->lexer.token;
    lexer_next(&parser->lexer);
    if (token_is(&word, ".version") || token_is(&word, ".target") ||
        token_is(&word, ".address_size")) {
        /* one word, or a number with a point, which is none of PTX's numbers */
        if (token_is(&word, ".target"))
            read_target(parser, &parser->lexer.token);
        lexer_next(&parser->lexer);
        return 0;
    }
    if (token_is(&word, ".visible"))
        return parse_mark(parser, ".entry") || read_entry(parser) ? -1 : 0;
    if (token_is(&word, ".extern"))
        return parse_mark(parser, ".shared") || read_shared(parser, true) ? -1 : 0;
    return parse_bad(parser, "directive %.*s is not known", (int)word.length, word.text);
}

int sim_module_create(const char *text, size_t bytes, struct sim_module **out,
                      struct sim_fault *fault)
{
    struct parser parser = {.fault = fault, .dynamic_align = 1};
    *fault = (struct sim_fault){SIM_OK, ""};
    *out = NULL;
    parser.module = calloc(1, sizeof *parser.module);
    int rc = parser.module ? 0 : no_memory(&parser);
    lexer_start(&parser.lexer, text, bytes);
    while (!rc && parser.lexer.token.kind != TOKEN_END)
        rc = read_module_statement(&parser);
    free(parser.symbols);
    free(parser.classes);
    free(parser.labels);
    free(parser.jumps);
    if (rc)
        sim_module_destroy(parser.module);
    else
        *out = parser.module;
    return rc;
}

void sim_module_destroy(struct sim_module *module)
{
    for (size_t i = 0; module && i < module->count; i++) {
        struct sim_entry *entry = module->entries[i];
        free(entry->name);
        free(entry->code);
        free(entry->wide);
        free(entry->constants);
        free(entry->params);
        free(entry);
    }
    if (module)
        free(module->entries);
    free(module);
}
