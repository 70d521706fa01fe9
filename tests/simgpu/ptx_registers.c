/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_registers.c: registers get their places. PTX names a new register for nearly every value; a
 * warp's thousands would not fit into the host's caches, so that registers whose lives do not meet
 * share a place. A life is the stretch of code from the first to the last instruction at which the
 * value may be wanted, which holds for each lane by itself, wherever the others are.
 *
 * A register that is read where nothing was written to it, whatever the way there, is refused.
 */
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

struct basic_block {
    uint32_t begin, end; /* instructions */
    uint32_t next[2];    /* blocks that may follow */
    int next_count;
};

struct life {
    uint32_t number, begin, end; /* begin > end: never used */
};

struct flow {
    const struct sim_entry *entry;
    struct basic_block *blocks;
    uint32_t block_count, register_count;
    uint32_t *block_of; /* by its first instruction */
    size_t words;       /* words of a set of registers */
    /* For each block: registers wanted at its begin and end; read before written in it; written. */
    uint64_t *in, *out, *wants, *makes;
    struct life *lives;
    uint32_t *at;
};

typedef void (*visit)(struct flow *flow, uint32_t number, uint32_t at, bool result, void *context);

/* Calls visit for each register of an instruction: sources, then results. */
static void each_register(struct flow *flow, uint32_t at, visit visitor, void *context)
{
    const struct insn *insn = &flow->entry->code[at];
    const char *operands = insn->opcode->operands;
    const bool has_results = operands[0] != '=';
    for (int pass = 0; pass < 2; pass++) {
        bool result = has_results;
        const sim_place *place = insn->o;
        for (const char *c = operands; *c; c++) {
            if (*c == '=')
                result = false;
            if (!strchr("phrlGSPQT", *c))
                continue;
            const bool wide = c[1] == '*';
            const sim_place *from = wide ? flow->entry->wide + insn->target : place;
            const uint32_t count = *c == 'T' ? 3 : operand_count(&c);
            place += wide ? 0 : count;
            for (uint32_t i = 0; i < count && result == (pass == 1); i++)
                if (!(from[i] & 1))
                    visitor(flow, from[i] / 2, at, result, context);
        }
        if (pass == 0 && insn->guarded)
            visitor(flow, insn->guard / 2, at, false, context);
    }
}

static bool is_branch(const struct insn *insn)
{
    return strchr(insn->opcode->operands, 'L') != NULL;
}

/* Nothing runs on behind it. */
static bool is_end(const struct insn *insn)
{
    return !insn->guarded && (is_branch(insn) || strcmp(insn->opcode->text, "ret") == 0 ||
                              strcmp(insn->opcode->text, "exit") == 0);
}

/* Blocks begin at 0, at labels that are jumped to, and behind jumps and ends. */
static void find_blocks(struct flow *flow)
{
    const struct insn *code = flow->entry->code;
    const uint32_t count = flow->entry->code_count;
    uint32_t *begins = flow->block_of;
    begins[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (is_branch(&code[i]))
            begins[code[i].target] = 1;
        if ((is_branch(&code[i]) || is_end(&code[i])) && i + 1 < count)
            begins[i + 1] = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (begins[i]) {
            flow->blocks[flow->block_count].begin = i;
            begins[i] = flow->block_count++;
        }
        flow->blocks[flow->block_count - 1].end = i + 1;
    }
    for (uint32_t b = 0; b < flow->block_count; b++) {
        struct basic_block *block = &flow->blocks[b];
        const struct insn *last = &code[block->end - 1];
        if (is_branch(last))
            block->next[block->next_count++] = begins[last->target];
        if (!is_end(last) && b + 1 < flow->block_count)
            block->next[block->next_count++] = b + 1;
    }
}

static bool has(const uint64_t *set, uint32_t number)
{
    return set[number / 64] >> number % 64 & 1;
}

static void add(uint64_t *set, uint32_t number)
{
    set[number / 64] |= UINT64_C(1) << number % 64;
}

/* A result under a predicate leaves what was there for some lanes: it makes nothing. Nor do sums that
 * products are added to; what was there they do not want either, since the first product may not
 * add. */
static void note_in_block(struct flow *flow, uint32_t number, uint32_t at, bool result,
                          void *context)
{
    const size_t set = *(const uint32_t *)context * flow->words;
    const struct insn *insn = &flow->entry->code[at];
    const bool makes = result && !insn->guarded && insn->opcode->operands[0] != '+';
    if (!result && !has(flow->makes + set, number))
        add(flow->wants + set, number);
    if (makes)
        add(flow->makes + set, number);
}

static bool update_block(struct flow *flow, uint32_t b)
{
    const struct basic_block *block = &flow->blocks[b];
    const size_t set = b * flow->words;
    bool changed = false;
    for (size_t w = 0; w < flow->words; w++) {
        uint64_t out = 0;
        for (int i = 0; i < block->next_count; i++)
            out |= flow->in[block->next[i] * flow->words + w];
        const uint64_t in = flow->wants[set + w] | (out & ~flow->makes[set + w]);
        changed |= in != flow->in[set + w];
        flow->in[set + w] = in;
        flow->out[set + w] = out;
    }
    return changed;
}

static void find_wanted(struct flow *flow)
{
    for (uint32_t b = 0; b < flow->block_count; b++)
        for (uint32_t i = flow->blocks[b].begin; i < flow->blocks[b].end; i++)
            each_register(flow, i, note_in_block, &b);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = flow->block_count; b-- > 0;)
            changed |= update_block(flow, b);
    }
}

static void extend(struct flow *flow, uint32_t number, uint32_t at, bool result, void *context)
{
    struct life *life = &flow->lives[number];
    (void)result;
    (void)context;
    life->begin = at < life->begin ? at : life->begin;
    life->end = at > life->end ? at : life->end;
}

static void find_lives(struct flow *flow)
{
    for (uint32_t r = 0; r < flow->register_count; r++)
        flow->lives[r] = (struct life){r, UINT32_MAX, 0};
    for (uint32_t i = 0; i < flow->entry->code_count; i++)
        each_register(flow, i, extend, NULL);
    for (uint32_t b = 0; b < flow->block_count; b++) {
        for (uint32_t r = 0; r < flow->register_count; r++) {
            if (has(flow->in + b * flow->words, r))
                extend(flow, r, flow->blocks[b].begin, false, NULL);
            if (has(flow->out + b * flow->words, r))
                extend(flow, r, flow->blocks[b].end - 1, false, NULL);
        }
    }
}

static int compare_lives(const void *left, const void *right)
{
    const struct life *a = left, *b = right;
    const uint32_t x = a->begin != b->begin ? a->begin : a->number;
    const uint32_t y = a->begin != b->begin ? b->begin : b->number;
    return (x > y) - (x < y);
}

/* Gives each register the first place of its size that no living one has. Special registers come
 * first, one place each. An instruction may write a result before it has read all of its sources,
 * so that two lives that touch do not share. */
static void place_registers(struct flow *flow, const char *classes, struct sim_entry *entry)
{
    struct life *lives = flow->lives; /* by number until sorted */
    uint32_t *free_from[3], *place[3], counts[3] = {0};
    for (int size = 0; size < 3; size++) {
        free_from[size] = flow->at + flow->register_count * (uint32_t)(1 + 2 * size);
        place[size] = free_from[size] + flow->register_count;
    }
    for (uint32_t r = 0; r < SPECIAL_COUNT; r++, entry->register_bytes += class_bytes('r'))
        flow->at[r] = entry->register_bytes;
    qsort(lives, flow->register_count, sizeof *lives, compare_lives);
    for (uint32_t i = 0; i < flow->register_count && lives[i].begin <= lives[i].end; i++) {
        const char class = classes[lives[i].number];
        const int size = class == 'h' ? 0 : class == 'l' ? 2 : 1;
        uint32_t p = 0;
        if (lives[i].number < SPECIAL_COUNT)
            continue;
        while (p < counts[size] && free_from[size][p] > lives[i].begin)
            p++;
        if (p == counts[size]) {
            place[size][counts[size]++] = entry->register_bytes;
            entry->register_bytes += class_bytes(class);
        }
        free_from[size][p] = lives[i].end + 1;
        flow->at[lives[i].number] = place[size][p];
    }
}

static void replace_places(const struct flow *flow, struct sim_entry *entry)
{
    for (uint32_t i = 0; i < entry->wide_count; i++)
        entry->wide[i] = flow->at[entry->wide[i] / 2];
    for (uint32_t i = 0; i < entry->code_count; i++) {
        struct insn *insn = &entry->code[i];
        for (int o = 0; o < OPERANDS_MAX; o++)
            if (!(insn->o[o] & 1))
                insn->o[o] = flow->at[insn->o[o] / 2];
        insn->guard = flow->at[insn->guard / 2];
    }
}

struct search {
    uint64_t *made;  /* registers that may have been written where the search is */
    uint32_t unmade; /* instruction that reads what nothing wrote */
};

static void check_made(struct flow *flow, uint32_t number, uint32_t at, bool result, void *context)
{
    struct search *search = context;
    (void)flow;
    if (result)
        add(search->made, number);
    else if (!has(search->made, number) && at < search->unmade)
        search->unmade = at;
}

/* A register that is read where nothing can have been written to it, on whatever way, or
 * UINT32_MAX. Lives have been found: the sets are free. */
static uint32_t find_unmade(struct flow *flow)
{
    struct search search = {flow->out, UINT32_MAX};
    const size_t words = flow->words;
    memset(flow->in, 0, flow->block_count * words * sizeof *flow->in);
    for (uint32_t r = 0; r < SPECIAL_COUNT; r++)
        add(flow->in, r);
    for (bool changed = true; changed;) {
        changed = false;
        search.unmade = UINT32_MAX;
        for (uint32_t b = 0; b < flow->block_count; b++) {
            const struct basic_block *block = &flow->blocks[b];
            if (!has(flow->in + b * words, 0)) /* nothing leads there */
                continue;
            memcpy(search.made, flow->in + b * words, words * sizeof *search.made);
            for (uint32_t i = block->begin; i < block->end; i++)
                each_register(flow, i, check_made, &search);
            for (size_t w = 0; w < words * (size_t)block->next_count; w++) {
                uint64_t *next = flow->in + block->next[w / words] * words + w % words;
                changed |= (search.made[w % words] & ~*next) != 0;
                *next |= search.made[w % words];
            }
        }
    }
    return search.unmade;
}

static void free_flow(struct flow *flow)
{
    free(flow->blocks);
    free(flow->block_of);
    free(flow->in);
    free(flow->lives);
    free(flow->at);
}

int sim_assign_registers(struct sim_entry *entry, const char *classes, uint32_t count,
                         uint32_t *unmade)
{
    const uint32_t code = entry->code_count;
    struct flow flow = {.entry = entry, .register_count = count, .words = count / 64 + 1};
    flow.blocks = calloc(code, sizeof *flow.blocks);
    flow.block_of = calloc(code, sizeof *flow.block_of);
    flow.lives = calloc(count, sizeof *flow.lives);
    flow.at = calloc(7 * (size_t)count, sizeof *flow.at);
    int rc = -1;
    if (flow.blocks && flow.block_of && flow.lives && flow.at) {
        find_blocks(&flow);
        const size_t bits = flow.block_count * flow.words;
        flow.in = calloc(4 * bits, sizeof *flow.in);
        flow.out = flow.in + bits;
        flow.wants = flow.out + bits;
        flow.makes = flow.wants + bits;
    }
    if (flow.in) {
        find_wanted(&flow);
        find_lives(&flow);
        *unmade = find_unmade(&flow);
        place_registers(&flow, classes, entry);
        replace_places(&flow, entry);
        rc = 0;
    }
    free_flow(&flow);
    return rc;
}
