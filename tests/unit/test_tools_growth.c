/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tools_growth.c: the cost of hostile files to the readers of blobcheck: bytes searched and strings compared, for
 * a file and for one twice as large. No clock is used.
 */
#include "check/blobindex.h"
#include "image/elfbin.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static size_t steps;

/* Replacements of libc's functions for everything linked here. */
void *memchr(const void *bytes, int c, size_t count)
{
    const unsigned char *at = bytes;
    for (; count > 0; at++, count--) {
        steps++;
        if (*at == (unsigned char)c)
            return (void *)(uintptr_t)at;
    }
    return NULL;
}

int strcmp(const char *a, const char *b)
{
    steps++;
    for (; *a && *a == *b; a++)
        b++;
    return (unsigned char)*a - (unsigned char)*b;
}

/* Count the work for a file of which half is one name, and half are sections with that name. */
static size_t sections_of_one_name(uint32_t count)
{
    const size_t name_bytes = count * sizeof(Elf64_Shdr), table = sizeof(Elf64_Ehdr) + name_bytes;
    const size_t bytes = table + count * sizeof(Elf64_Shdr);
    uint8_t *file = calloc(1, bytes);
    char why[WHY_BYTES];
    struct elf_section found;
    struct elf e;
    assert_non_null(file);
    Elf64_Ehdr h = {.e_type = ET_DYN,
                    .e_shoff = table,
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = (Elf64_Half)count,
                    .e_shstrndx = 1};
    memcpy(h.e_ident, (const char[]){0x7f, 'E', 'L', 'F', 2, 1, 1}, 7);
    memcpy(file, &h, sizeof h);
    memset(file + sizeof h, 'x', name_bytes - 1);
    const Elf64_Shdr s = {.sh_type = SHT_STRTAB, .sh_offset = sizeof h, .sh_size = name_bytes};
    for (uint32_t i = 1; i < count; i++)
        memcpy(file + table + i * sizeof s, &s, sizeof s);
    steps = 0;
    if (elf_open((struct span){file, bytes}, &e, why) == 0)
        elf_find(&e, ".nojit.index", &found);
    free(file);
    return steps;
}

/* Count the work for an index of unsorted entries, all of which are looked up. */
static size_t entries_that_are_found(uint32_t count)
{
    enum { NAME = 12 };
    static const char assembler[] = "ptxas 13.0";
    struct nji_header h = {.magic = NJI_MAGIC, .version = NJI_VERSION};
    h.entry_count = count;
    h.arch_count = 1;
    h.archs_off = sizeof h;
    h.entries_off = (uint32_t)(h.archs_off + sizeof(struct nji_arch));
    h.records_off = h.params_off = h.strings_off =
        (uint32_t)(h.entries_off + count * sizeof(struct nji_entry));
    h.index_bytes = (uint32_t)(h.strings_off + sizeof assembler + count * NAME);
    uint8_t *file = calloc(1, h.index_bytes);
    struct nji_entry *entries = calloc(count, sizeof *entries);
    char why[WHY_BYTES], key[NAME];
    struct report r = {0};
    struct blob_index x;
    assert_true(file && entries);
    memcpy(file, &h, sizeof h);
    memcpy(file + h.strings_off, assembler, sizeof assembler); /* at 0, as the arch says */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)(sizeof assembler + i * NAME);
        snprintf((char *)file + h.strings_off + at, NAME, "key%u", i);
        entries[i].key_str = entries[i].entry_str = at;
        snprintf(key, sizeof key, "key%u", i);
        entries[i].key_hash = XXH3_64bits(key, strlen(key));
    }
    memcpy(file + h.entries_off, entries, count * sizeof *entries);
    assert_int_equal(index_read((struct span){file, h.index_bytes}, "ptxas ", &x, &r, why), 0);
    assert_true(report_count(&r) > 0);
    steps = 0;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key%u", i);
        assert_non_null(index_find(&x, key));
    }
    index_free(&x);
    report_free(&r);
    free(entries);
    free(file);
    return steps;
}

static void sections_that_share_a_long_name(void **state)
{
    (void)state;
    const size_t once = sections_of_one_name(1000), twice = sections_of_one_name(2000);
    assert_in_range(once, 1, SIZE_MAX);
    assert_in_range(twice, once, once * 5 / 2);
}

static void entries_are_found_in_any_order(void **state)
{
    (void)state;
    const size_t once = entries_that_are_found(1000);
    const size_t twice = entries_that_are_found(2000);
    assert_in_range(once, 1000, SIZE_MAX);
    assert_in_range(twice, once, once * 5 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_that_share_a_long_name),
        cmocka_unit_test(entries_are_found_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
