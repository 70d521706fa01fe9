/* SPDX-License-Identifier: Apache-2.0
 *
 * codecheck.c: checks the machine code of one key: one cubin per applicable arch and nothing else, for the right SM and
 * variant, with one kernel that has the launcher's name, parameters and block size and fits the SM.
 */
#include "pack/codecheck.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "image/cubin.h"
#include "image/fatbin.h"

enum { REGISTERS_PER_BLOCK = 65536, WARP = 32, REGISTER_UNIT = 8, SHARED_UNIT = 16 };

/* The key and arch that one cubin is checked against, and the list for problems. */
struct subject {
    const struct key *key;
    const struct nji_arch *arch;
    const struct cubin *cubin;
    char name[16]; /* name of the arch */
    struct report *report;
};

static void check_target(const struct subject *s)
{
    const struct cubin *c = s->cubin;
    const char *key = s->key->key;
    if (c->sm != s->arch->sm)
        report_add(s->report, key, s->name, "the code is for sm_%u", c->sm);
    if (c->virtual_sm != s->arch->sm)
        report_add(s->report, key, s->name, "the code was compiled from PTX for compute_%u",
                   c->virtual_sm);
    if (strcmp(c->target, s->name) != 0)
        report_add(s->report, key, s->name, "wrong suffix or SM: ptxas assembled it for %s",
                   c->target);
    if (c->level != (s->key->spare ? '1' : '3'))
        report_add(s->report, key, s->name, "it was assembled at -O%c, not -O%c", c->level,
                   s->key->spare ? '1' : '3');
    if (c->arch_specific >= 0 && c->arch_specific != (s->arch->suffix == 'a'))
        report_add(s->report, key, s->name, "wrong suffix: the code is marked as %s",
                   c->arch_specific ? "for this exact chip (a)" : "generic or family code (not a)");
}

static void check_symbols(const struct subject *s)
{
    const struct cubin *c = s->cubin;
    if (c->kernels != 1)
        report_add(s->report, s->key->key, s->name, "the cubin holds %u kernels, not 1",
                   c->kernels);
    if (c->entry && strcmp(c->entry, s->key->entry) != 0)
        report_add(s->report, s->key->key, s->name, "the kernel is %.100s, not %s", c->entry,
                   s->key->entry);
    if (c->entry && c->code_bytes == 0)
        report_add(s->report, s->key->key, s->name, "the kernel has no instructions");
    if (c->undefined)
        report_add(s->report, s->key->key, s->name, "symbol %.100s is not defined", c->undefined);
}

static void check_params(const struct subject *s)
{
    const struct cubin *c = s->cubin;
    const struct key *k = s->key;
    if (c->param_count != k->param_count)
        report_add(s->report, k->key, s->name, "the kernel has %u parameters, the launcher %u",
                   c->param_count, k->param_count);
    if (c->param_bytes != k->param_bytes || c->bank_param_bytes != k->param_bytes)
        report_add(s->report, k->key, s->name,
                   "the kernel takes %u bytes of parameters (bank: %u), the launcher gives %u",
                   c->param_bytes, c->bank_param_bytes, k->param_bytes);
    for (uint32_t i = 0; i < k->param_count && i < CUBIN_MAX_PARAMS; i++) {
        const struct cubin_param *got = &c->params[i];
        const struct nji_param *want = &k->params[i];
        if (got->offset != want->offset || got->bytes != want->bytes)
            report_add(s->report, k->key, s->name,
                       "parameter %u is %u bytes at %u, the launcher gives %u bytes at %u", i,
                       got->bytes, got->offset, want->bytes, want->offset);
    }
}

static void check_limits(const struct subject *s)
{
    const struct cubin *c = s->cubin;
    const struct key *k = s->key;
    uint32_t warps = (k->threads + WARP - 1) / WARP;
    uint64_t unit = REGISTER_UNIT;
    uint64_t registers = (c->registers + unit - 1) / unit * unit * WARP * warps;
    uint64_t fixed =
        ((uint64_t)c->static_shared_bytes + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    if (c->max_threads < k->threads)
        report_add(s->report, k->key, s->name, "launch bound %u, launched with %u threads",
                   c->max_threads, k->threads);
    if (c->registers == 0 || registers > REGISTERS_PER_BLOCK)
        report_add(s->report, k->key, s->name,
                   "%u registers x %u threads need %llu of %d registers", c->registers, k->threads,
                   (unsigned long long)registers, REGISTERS_PER_BLOCK);
    if (fixed + k->max_shared_bytes > s->arch->shared_limit)
        report_add(s->report, k->key, s->name,
                   "%u static and %u dynamic bytes of shared memory exceed %u",
                   c->static_shared_bytes, k->max_shared_bytes, s->arch->shared_limit);
}

static void check_cubin(struct span code, const struct subject *base, struct code_fact *fact)
{
    char why[WHY_BYTES];
    struct cubin cubin;
    struct subject s = *base;
    if (cubin_parse(code, &cubin, why)) {
        report_add(s.report, s.key->key, s.name, "the cubin %s", why);
        return;
    }
    if (span_find(code, PTX_TARGET, strlen(PTX_TARGET), 0) < code.bytes)
        report_add(s.report, s.key->key, s.name, "the cubin carries PTX text");
    s.cubin = &cubin;
    check_target(&s);
    check_symbols(&s);
    check_params(&s);
    check_limits(&s);
    fact->hash = XXH3_64bits(code.data, code.bytes);
    fact->code_bytes = (uint32_t)code.bytes;
    fact->registers = cubin.registers;
    fact->static_shared_bytes = cubin.static_shared_bytes;
    fact->stack_bytes = cubin.stack_bytes;
    snprintf(fact->ptxas, sizeof(fact->ptxas), "%s", cubin.ptxas);
}

/* Return the index of the arch with that SM, or arch_count. */
static uint32_t find_sm(const struct nji_arch *archs, uint32_t arch_count, uint32_t sm)
{
    uint32_t i = 0;
    while (i < arch_count && archs[i].sm != sm)
        i++;
    return i;
}

static void check_entry(const struct fatbin_entry *e, const struct key *k,
                        const struct nji_arch *archs, uint32_t arch_count, struct code_fact *facts,
                        struct report *r)
{
    char why[WHY_BYTES];
    struct arch_name label = arch_name(e->sm, e->suffix);
    uint32_t a = find_sm(archs, arch_count, e->sm);
    struct span code;
    void *owned;
    const char *compiled = fatbin_compiled(e->kind);
    if (compiled) {
        report_add(r, k->key, label.text, "holds %s, which the driver would compile", compiled);
        return;
    }
    if (e->kind != FATBIN_ELF) {
        report_add(r, k->key, label.text, "holds a fatbin entry of unknown kind %u", e->kind);
        return;
    }
    if (a == arch_count || !key_applies(k, &archs[a])) {
        report_add(r, k->key, label.text, "holds code for an arch that nobody asks for");
        return;
    }
    struct arch_name name = arch_name(archs[a].sm, (char)archs[a].suffix);
    if (e->suffix != (char)archs[a].suffix)
        report_add(r, k->key, name.text, "wrong suffix: the fatbin entry is labelled %s",
                   label.text);
    if (facts[a].present) {
        report_add(r, k->key, name.text, "present twice");
        return;
    }
    facts[a].present = true;
    if (fatbin_code(e, &code, &owned, why)) {
        report_add(r, k->key, name.text, "%s", why);
        return;
    }
    struct subject s = {.key = k, .arch = &archs[a], .report = r};
    memcpy(s.name, name.text, sizeof(s.name));
    check_cubin(code, &s, &facts[a]);
    free(owned);
}

static void check_absent(const struct key *k, const struct nji_arch *a, struct report *r)
{
    if (key_applies(k, a))
        report_add(r, k->key, arch_name(a->sm, (char)a->suffix).text, "missing: no machine code");
}

void code_check(struct span container, const struct key *k, const struct nji_arch *archs,
                uint32_t arch_count, struct code_fact *facts, struct report *r)
{
    char why[WHY_BYTES];
    struct fatbin f;
    struct fatbin_entry e;
    int more;
    memset(facts, 0, arch_count * sizeof(*facts));
    if (fatbin_open(container, &f, why)) {
        report_add(r, k->key, "", "%s", why);
        return;
    }
    while ((more = fatbin_next(&f, &e, why)) == 1)
        check_entry(&e, k, archs, arch_count, facts, r);
    if (more < 0)
        report_add(r, k->key, "", "%s", why);
    for (uint32_t a = 0; a < arch_count; a++)
        if (!facts[a].present)
            check_absent(k, &archs[a], r);
}

void code_check_absent(const struct key *k, const struct nji_arch *archs, uint32_t arch_count,
                       struct report *r)
{
    for (uint32_t a = 0; a < arch_count; a++)
        check_absent(k, &archs[a], r);
}
