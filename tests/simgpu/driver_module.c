/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_module.c: modules are machine code that fits the device, or are refused; a launch is checked
 * against what the machine code says of itself and executed from the PTX that it was made of.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "image/cubin.h"
#include "image/elfbin.h"
#include "image/fatbin.h"
#include "machine.h"

enum { SHARED_WITHOUT_OPT_IN = 48 << 10 };

struct sim_loaded {
    struct sim_loaded *next;
    struct cubin cubin;
    void *code; /* that the strings of cubin point into */
    size_t code_bytes;
    uint32_t max_dynamic_shared;
    bool decoded;
    bool exempt;                /* loads, and does not launch */
    struct sim_module *machine; /* NULL before the first launch */
    const struct sim_entry *entry;
};

/* ---- images ---- */

/* How long an ELF file is that lies somewhere in memory, as its tables say. */
static size_t elf_bytes(const unsigned char *image)
{
    enum { HEADER = 64, SECTION = 64, SEGMENT = 56 };
    const struct span header = {image, HEADER};
    const uint64_t segments = span_u64(header, 32), sections = span_u64(header, 40);
    const uint16_t segment_count = span_u16(header, 56), section_count = span_u16(header, 60);
    uint64_t end = sections + (uint64_t)section_count * SECTION;
    if (segments + (uint64_t)segment_count * SEGMENT > end)
        end = segments + (uint64_t)segment_count * SEGMENT;
    for (uint16_t i = 0; i < section_count; i++) {
        const struct span s = {image + sections + (size_t)i * SECTION, SECTION};
        const uint64_t last = span_u64(s, 24) + span_u64(s, 32);
        if (span_u32(s, 4) != ELF_SECTION_NOBITS && last > end)
            end = last;
    }
    return end;
}

/* Machine code of an `a` target runs on that chip only, of an `f` target within its family; other code
 * on this and later minors. */
static bool fits(const struct cubin *c, int sm)
{
    const size_t length = strlen(c->target);
    if (length && c->target[length - 1] == 'a')
        return (int)c->sm == sm;
    return (int)c->sm / 10 == sm / 10 && (int)c->sm <= sm;
}

static int keep_code(struct span code, struct sim_loaded *out)
{
    char why[WHY_BYTES];
    out->code = malloc(code.bytes);
    if (!out->code)
        return CUDA_OUT_OF_MEMORY;
    memcpy(out->code, code.data, code.bytes);
    out->code_bytes = code.bytes;
    const int bad = cubin_parse((struct span){out->code, code.bytes}, &out->cubin, why);
    if (!bad && out->cubin.entry)
        return CUDA_SUCCESS;
    sim_say("cuModuleLoadData: machine code %s", bad ? why : "without a kernel");
    return CUDA_INVALID_IMAGE;
}

/* The newest machine code of a container that fits; there may be PTX instead. */
static int choose_entry(struct span container, int sm, struct sim_loaded *out)
{
    char why[WHY_BYTES];
    struct fatbin f;
    struct fatbin_entry e;
    struct cubin best = {0}, cubin;
    struct span code, chosen = {0};
    void *owned, *kept = NULL;   /* code after decompression */
    int more = -1, compiled = 0; /* 1: there is what a driver with its JIT would compile */
    if (fatbin_open(container, &f, why) == 0)
        while ((more = fatbin_next(&f, &e, why)) == 1) {
            if (fatbin_compiled(e.kind)) {
                compiled = 1;
                continue;
            }
            if (fatbin_code(&e, &code, &owned, why) || cubin_parse(code, &cubin, why)) {
                free(owned);
                more = -1;
                break;
            }
            if (fits(&cubin, sm) && cubin.sm >= best.sm) {
                free(kept);
                kept = owned;
                best = cubin;
                chosen = code;
            } else {
                free(owned);
            }
        }
    if (more < 0) {
        free(kept);
        sim_say("cuModuleLoadData: %s", why);
        return CUDA_INVALID_IMAGE;
    }
    if (chosen.bytes) {
        const int result = keep_code(chosen, out);
        free(kept);
        return result;
    }
    sim_control_state.ptx_refused += compiled;
    return compiled ? CUDA_JIT_DISABLED : CUDA_NO_BINARY_FOR_GPU;
}

static int read_image(const unsigned char *image, int sm, struct sim_loaded *out)
{
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'}, fatbin[] = {0x50, 0xed, 0x55, 0xba};
    const struct span header = {image, 16};
    if (memcmp(image, fatbin, sizeof fatbin) == 0)
        return choose_entry((struct span){image, (size_t)(span_u64(header, 8) + 16)}, sm, out);
    if (memcmp(image, elf, sizeof elf) == 0) {
        const int result = keep_code((struct span){image, elf_bytes(image)}, out);
        return result || fits(&out->cubin, sm) ? result : CUDA_NO_BINARY_FOR_GPU;
    }
    if (image[0] == '/' || image[0] == '.') { /* text of PTX begins with a comment or a directive */
        sim_control_state.ptx_refused++;
        return CUDA_JIT_DISABLED;
    }
    return CUDA_INVALID_IMAGE;
}

static void free_module(struct sim_loaded *m)
{
    if (m->machine)
        sim_module_destroy(m->machine);
    free(m->code);
    free(m);
}

void sim_modules_free(struct sim_device *device)
{
    while (device->modules) {
        struct sim_loaded *m = device->modules;
        device->modules = m->next;
        free_module(m);
    }
}

/* The module of a handle, which is also that of its one function. */
static struct sim_loaded *module_of(const void *handle)
{
    struct sim_loaded *m = sim_current->modules;
    while (m && m != handle)
        m = m->next;
    return m;
}

SIM_CALL(cuModuleLoadData, SIM_CONTEXT | SIM_UNSAFE, (void **out, const void *image), (out, image))
{
    struct sim_loaded *m = image ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return image ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    const int result = read_image(image, sim_current->profile.sm, m);
    if (result) {
        free_module(m);
        return result;
    }
    const uint32_t own = m->cubin.static_shared_bytes;
    m->max_dynamic_shared = own < SHARED_WITHOUT_OPT_IN ? SHARED_WITHOUT_OPT_IN - own : 0;
    m->next = sim_current->modules;
    sim_current->modules = m;
    sim_control_state.live++;
    sim_control_state.modules++;
    sim_control_state.late += sim_control_state.launches > 0;
    *out = m;
    return CUDA_SUCCESS;
}

SIM_CALL(cuModuleUnload, SIM_STARTED | SIM_UNSAFE, (void *module), (module))
{
    struct sim_loaded *m = sim_current ? module_of(module) : NULL, **at;
    if (!m)
        return CUDA_INVALID_HANDLE;
    sim_drain_all(sim_current);
    for (at = &sim_current->modules; *at != m; at = &(*at)->next)
        ;
    *at = m->next;
    free_module(m);
    sim_control_state.live--;
    return sim_current->lost;
}

/* ---- functions ---- */

SIM_CALL(cuModuleGetFunction, SIM_CONTEXT, (void **out, void *module, const char *name),
         (out, module, name))
{
    struct sim_loaded *m = module_of(module);
    if (!m)
        return CUDA_INVALID_HANDLE;
    *out = m;
    return strcmp(name, m->cubin.entry) == 0 ? CUDA_SUCCESS : CUDA_NOT_FOUND;
}

SIM_CALL(cuFuncLoad, SIM_CONTEXT, (void *function), (function))
{
    return module_of(function) ? CUDA_SUCCESS : CUDA_INVALID_HANDLE;
}

SIM_CALL(cuFuncGetAttribute, SIM_CONTEXT, (int *out, int attribute, void *function),
         (out, attribute, function))
{
    const struct sim_loaded *m = module_of(function);
    if (!m)
        return CUDA_INVALID_HANDLE;
    const struct cubin *c = &m->cubin;
    const uint32_t value[] = {
        c->max_threads,
        c->static_shared_bytes,
        0, /* constants */
        c->stack_bytes,
        c->registers,
        c->virtual_sm,
        sim_control_state.code_sm ? (uint32_t)sim_control_state.code_sm : c->sm,
        0,
        m->max_dynamic_shared,
    };
    if (attribute < 0 || attribute >= (int)(sizeof value / sizeof *value))
        return CUDA_INVALID_VALUE;
    *out = (int)value[attribute];
    return CUDA_SUCCESS;
}

SIM_CALL(cuFuncSetAttribute, SIM_CONTEXT, (void *function, int attribute, int value),
         (function, attribute, value))
{
    enum { MAX_DYNAMIC_SHARED = 8 };
    struct sim_loaded *m = module_of(function);
    if (!m)
        return CUDA_INVALID_HANDLE;
    if (attribute != MAX_DYNAMIC_SHARED || value < 0 ||
        (uint32_t)value + m->cubin.static_shared_bytes > sim_current->profile.shared_bytes)
        return CUDA_INVALID_VALUE;
    m->max_dynamic_shared = (uint32_t)value;
    return CUDA_SUCCESS;
}

/* ---- tensor maps ---- */

static bool map_fits(const struct sim_tensor_map *m)
{
    for (int i = 0; i < 2; i++)
        if (m->sizes[i] == 0 || m->sizes[i] > 1ull << 32 || m->box[i] == 0 || m->box[i] > 256 ||
            m->steps[i] != 1)
            return false;
    return m->rank == MAP_RANK && m->address % 16 == 0 && m->row_bytes % 16 == 0 &&
           m->row_bytes >= m->sizes[0] * MAP_ELEMENT_BYTES && m->swizzle == MAP_SWIZZLE_128B &&
           m->box[0] * MAP_ELEMENT_BYTES <= MAP_SWIZZLED_BYTES;
}

SIM_CALL(cuTensorMapEncodeTiled, SIM_STARTED,
         (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
          const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
          int swizzle, int promotion, int fill),
         (map, type, rank, address, sizes, strides, box, steps, interleave, swizzle, promotion,
          fill))
{
    if (rank != MAP_RANK || (uintptr_t)map % 64 != 0)
        return CUDA_INVALID_VALUE;
    const struct sim_tensor_map m = {.address = (uint64_t)(uintptr_t)address,
                                     .sizes = {sizes[0], sizes[1]},
                                     .row_bytes = strides[0],
                                     .box = {box[0], box[1]},
                                     .steps = {steps[0], steps[1]},
                                     .type = type,
                                     .rank = (int)rank,
                                     .interleave = interleave,
                                     .swizzle = swizzle,
                                     .promotion = promotion,
                                     .fill = fill};
    if (!map_fits(&m))
        return CUDA_INVALID_VALUE;
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* CUlaunchConfig. */
struct launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream, *attributes;
    unsigned attribute_count;
};

struct launch {
    struct sim_loaded *module;
    uint32_t grid[3], block[3], shared_bytes, param_bytes;
    unsigned char params[]; /* copied: the caller's may change */
};

/* Parameters as the machine code lists them are those that the PTX declares. */
static bool same_params(const struct sim_loaded *m)
{
    const struct cubin *c = &m->cubin;
    if (sim_entry_param_count(m->entry) != (int)c->param_count)
        return false;
    for (uint32_t i = 0; i < c->param_count; i++) {
        size_t offset, bytes;
        sim_entry_param(m->entry, (int)i, &offset, &bytes);
        if (offset != c->params[i].offset || bytes != c->params[i].bytes)
            return false;
    }
    return sim_entry_shared_bytes(m->entry) <= c->static_shared_bytes;
}

/* The PTX is read when a module is first launched: most runs use few of what they load. */
static int decode(struct sim_loaded *m)
{
    char why[256] = "";
    struct sim_fault fault = {0};
    size_t bytes;
    const char *name = m->cubin.entry;
    if (m->exempt)
        return CUDA_NOT_SUPPORTED;
    if (m->decoded)
        return m->entry ? CUDA_SUCCESS : CUDA_INVALID_SOURCE;
    m->decoded = true;
    char *text = sim_ptx_of(m->code, m->code_bytes, &bytes, why);
    if (!text) {
        m->exempt = true;
        sim_control_state.exempt++;
        sim_say("%s: exempt: %s", name, why);
        return CUDA_NOT_SUPPORTED;
    }
    if (sim_module_create(text, bytes, &m->machine, &fault))
        sim_say("%s: %s", name, fault.text);
    else if (!(m->entry = sim_module_entry(m->machine, name)))
        sim_say("%s: is not in its PTX", name);
    else if (!same_params(m)) {
        sim_say("%s: parameters or shared memory of the PTX are not those of .nv.info", name);
        m->entry = NULL;
    }
    free(text);
    return m->entry ? CUDA_SUCCESS : CUDA_INVALID_SOURCE;
}

/* Return the error that CUDA reports for a fault. */
static int result_of(enum sim_fault_kind kind)
{
    static const int results[] = {
        [SIM_OK] = CUDA_SUCCESS,
        [SIM_NO_MEMORY] = CUDA_OUT_OF_MEMORY,
        [SIM_BAD_PTX] = CUDA_INVALID_SOURCE,
        [SIM_BAD_LAUNCH] = CUDA_INVALID_VALUE,
        [SIM_NO_REGISTERS] = CUDA_LAUNCH_OUT_OF_RESOURCES,
        [SIM_ILLEGAL_ADDRESS] = CUDA_ILLEGAL_ADDRESS,
        [SIM_MISALIGNED] = CUDA_MISALIGNED_ADDRESS,
        [SIM_UNWRITTEN] = CUDA_LAUNCH_FAILED,
        [SIM_SHARED_RACE] = CUDA_LAUNCH_FAILED,
        [SIM_DIVERGENT_BARRIER] = CUDA_LAUNCH_FAILED,
        [SIM_TRAP] = CUDA_LAUNCH_FAILED,
    };
    return results[kind];
}

static struct sim_limits limits_of(const struct sim_loaded *m)
{
    const struct sim_profile *p = &sim_current->profile;
    return (struct sim_limits){p->sm, p->threads_per_block, p->registers, p->shared_bytes,
                               m->cubin.registers};
}

/* Refuse launches that the driver refuses at once. */
static int check_launch(const struct launch *l)
{
    const struct sim_limits limits = limits_of(l->module);
    struct sim_fault fault;
    if (l->shared_bytes > l->module->max_dynamic_shared) {
        sim_say("%s: %u bytes of shared memory, where %u were asked for", l->module->cubin.entry,
                l->shared_bytes, l->module->max_dynamic_shared);
        return CUDA_INVALID_VALUE;
    }
    if (sim_check_launch(l->module->entry, l->grid, l->block, l->shared_bytes, l->param_bytes,
                         &limits, &fault) == 0)
        return CUDA_SUCCESS;
    sim_say("%s", fault.text);
    return result_of(fault.kind);
}

/* Return the first byte behind an address that the launch wrote, or NULL. */
static unsigned char *written_by(uint64_t address, uint32_t launch)
{
    const struct sim_allocation *in = sim_memory_find(sim_current->memory, address, 1);
    if (!in || !in->writers || *in->launch != launch)
        return NULL;
    for (size_t i = 0; i < in->bytes / 4; i++)
        if (in->writers[i] >> 32 == launch)
            return in->host + 4 * i;
    return NULL;
}

/* Return whether NOJIT_SIM_LIE speaks of this launch. */
static bool is_to_lie(const char *entry)
{
    static long lies;
    const char *told = sim_setting("NOJIT_SIM_LIE", "");
    const size_t n = strcspn(told, ":");
    return strlen(entry) == n && memcmp(told, entry, n) == 0 &&
           (told[n] == '\0' || lies++ < strtol(told + n + 1, NULL, 10));
}

/* Change a result, as wrong machine code does, which ends without an error. */
static void lie(const struct launch *l)
{
    const uint32_t launch = (uint32_t)sim_counted().launches;
    unsigned char *word = NULL;
    size_t offset, bytes;
    uint64_t address;
    if (!is_to_lie(l->module->cubin.entry))
        return;
    for (int i = 0; i < sim_entry_param_count(l->module->entry) && !word; i++) {
        sim_entry_param(l->module->entry, i, &offset, &bytes);
        if (bytes != sizeof address)
            continue;
        memcpy(&address, l->params + offset, sizeof address);
        word = written_by(address, launch);
    }
    if (word)
        word[3] ^= 0x40;
}

static void open_library(void)
{
    const char *path = sim_setting("NOJIT_SIM_OPEN", NULL);
    if (path && !dlopen(path, RTLD_NOW))
        sim_say("NOJIT_SIM_OPEN: %s", dlerror());
}

static int run_launch(void *argument)
{
    const struct launch *l = argument;
    const struct sim_limits limits = limits_of(l->module);
    struct sim_fault fault;
    const int told = sim_told("launch");
    if (sim_control_state.launches == 0)
        open_library();
    sim_control_state.launches++;
    if (told)
        return told;
    if (sim_launch(l->module->entry, l->grid, l->block, l->shared_bytes, l->params, l->param_bytes,
                   sim_current->memory, &limits, &fault) == 0) {
        lie(l);
        return CUDA_SUCCESS;
    }
    sim_say("%s", fault.text);
    return result_of(fault.kind);
}

/* A kernel that may come before the one ahead of it has ended must wait for that. */
static int check_early(const struct launch_config *config, const struct sim_loaded *m)
{
    if (config->attribute_count == 0 || sim_entry_waits(m->entry))
        return CUDA_SUCCESS;
    sim_say("%s: it may begin before the kernel ahead of it has ended, and does not wait for that",
            m->cubin.entry);
    return CUDA_INVALID_SOURCE;
}

static void note(const struct launch *l)
{
    struct sim_launched *to = &sim_control_state.launch;
    *to = (struct sim_launched){.entry = l->module->cubin.entry,
                                .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                .threads = l->block[0],
                                .shared_bytes = l->shared_bytes,
                                .param_bytes = l->param_bytes};
    memcpy(to->params, l->params,
           l->param_bytes < sizeof to->params ? l->param_bytes : sizeof to->params);
}

/* A launch that may come before the one ahead of it has ended comes after it: what the kernel waits for is done. */
SIM_CALL(cuLaunchKernelEx, SIM_CONTEXT,
         (const struct launch_config *config, void *function, void **params, void **extra),
         (config, function, params, extra))
{
    struct sim_loaded *m = module_of(function);
    /* Parameters come as one block: pointer and size between their marks. */
    if (!m || params || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
        return m ? CUDA_INVALID_VALUE : CUDA_INVALID_HANDLE;
    size_t bytes = *(const size_t *)extra[3];
    struct launch *l = malloc(sizeof *l + bytes);
    if (!l)
        return CUDA_OUT_OF_MEMORY;
    *l = (struct launch){m,
                         {config->grid_x, config->grid_y, config->grid_z},
                         {config->block_x, config->block_y, config->block_z},
                         config->shared_bytes,
                         (uint32_t)bytes};
    memcpy(l->params, extra[1], bytes);
    note(l);
    int result = decode(m);
    result = result ? result : check_early(config, m);
    result = result ? result : check_launch(l);
    result = result ? result : sim_enqueue(config->stream, run_launch, l, sizeof *l + bytes);
    free(l);
    return result;
}
