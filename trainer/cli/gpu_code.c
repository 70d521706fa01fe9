/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_code.c: see gpu_code.h. Containers lie one after another in a section of the ELF file; only the headers of
 * their entries are looked at, since a library has hundreds of MB of code. tools/image/fatbin.c knows the format whole.
 */
#include "cli/gpu_code.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/span.h"

enum { CONTAINER_HEADER = 16, ENTRY_HEADER = 64, KIND_ELF = 2, STEP = 8 };
#define MAGIC UINT32_C(0xba55ed50)
#define ARCH_SPECIFIC UINT64_C(0x100000)
#define FAMILY UINT64_C(0x200000)

static bool before(const struct gpu_arch *a, const struct gpu_arch *b)
{
    return a->sm != b->sm ? a->sm < b->sm : a->suffix < b->suffix;
}

static void add(struct gpu_code *c, struct gpu_arch arch)
{
    int at = 0;
    while (at < c->count && before(&c->arch[at], &arch))
        at++;
    if ((at < c->count && !before(&arch, &c->arch[at])) || c->count == GPU_CODE_ARCHS)
        return;
    memmove(&c->arch[at + 1], &c->arch[at], (size_t)(c->count - at) * sizeof arch);
    c->arch[at] = arch;
    c->count++;
}

static void read_entries(struct span entries, struct gpu_code *out)
{
    for (uint64_t at = 0; span_has(entries, at, ENTRY_HEADER);) {
        const uint64_t header = span_u32(entries, at + 4), bytes = span_u64(entries, at + 8);
        const uint64_t sm = span_u32(entries, at + 28), flags = span_u64(entries, at + 40);
        const char suffix = flags & ARCH_SPECIFIC ? 'a' : flags & FAMILY ? 'f' : '\0';
        if (header < ENTRY_HEADER || !span_has(entries, at + header, bytes))
            return;
        if (span_u16(entries, at) == KIND_ELF && sm < 1000)
            add(out, (struct gpu_arch){(int)sm, suffix});
        at += header + bytes;
    }
}

static void read_containers(struct span section, struct gpu_code *out)
{
    for (uint64_t at = 0; span_has(section, at, CONTAINER_HEADER);) {
        const uint64_t bytes = span_u64(section, at + 8);
        const bool is_one =
            span_u32(section, at) == MAGIC && span_has(section, at + CONTAINER_HEADER, bytes);
        if (is_one)
            read_entries(span_part(section, at + CONTAINER_HEADER, bytes), out);
        at += is_one ? (CONTAINER_HEADER + bytes + STEP - 1) / STEP * STEP : STEP;
    }
}

/* Return the contents of section i of the file. */
static struct span section(struct span file, uint64_t i, uint32_t *name)
{
    const uint64_t at = span_u64(file, offsetof(Elf64_Ehdr, e_shoff)) + i * sizeof(Elf64_Shdr);
    *name = span_u32(file, at + offsetof(Elf64_Shdr, sh_name));
    return span_part(file, span_u64(file, at + offsetof(Elf64_Shdr, sh_offset)),
                     span_u64(file, at + offsetof(Elf64_Shdr, sh_size)));
}

void gpu_code_find(const void *bytes, size_t count, struct gpu_code *out)
{
    const struct span file = {bytes, count};
    const uint64_t sections = span_u16(file, offsetof(Elf64_Ehdr, e_shnum));
    uint32_t at;
    *out = (struct gpu_code){0};
    if (count < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return;
    const struct span names = section(file, span_u16(file, offsetof(Elf64_Ehdr, e_shstrndx)), &at);
    for (uint64_t i = 0; i < sections; i++) {
        const struct span s = section(file, i, &at);
        const char *name = span_string(names, at);
        if (name && strcmp(name, ".nv_fatbin") == 0)
            read_containers(s, out);
    }
}

void gpu_code_read(const char *path, struct gpu_code *out)
{
    struct stat info;
    void *file = MAP_FAILED;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = (struct gpu_code){0};
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0)
        file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) {
        gpu_code_find(file, (size_t)info.st_size, out);
        munmap(file, (size_t)info.st_size);
    }
    if (fd >= 0)
        close(fd);
}

/* Find the code for an SM: code runs on later SMs of its generation. */
const struct gpu_arch *gpu_code_for(const struct gpu_code *c, int sm)
{
    for (int i = c->count - 1; i >= 0; i--) {
        const struct gpu_arch *a = &c->arch[i];
        if (a->suffix == 'a' ? a->sm == sm : a->sm / 10 == sm / 10 && a->sm <= sm)
            return a;
    }
    return NULL;
}

const char *gpu_code_text(const struct gpu_code *c, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < c->count && used < bytes; i++)
        used +=
            (size_t)snprintf(out + used, bytes - used, "%ssm_%d%s", i > 0 ? " " : "", c->arch[i].sm,
                             c->arch[i].suffix == 'a'   ? "a"
                             : c->arch[i].suffix == 'f' ? "f"
                                                        : "");
    return out;
}
