/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_keys.c: the list of keys, the list of archs and the index, as blobcheck reads them without
 * trust. Accepted is what one of the three readers takes.
 */
#include "check/blobindex.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct span text = {data, bytes};
    struct key_table keys;
    struct nji_arch archs[MAX_ARCHS];
    struct blob_index x;
    struct report r = {0};
    uint32_t count;
    char why[3][WHY_BYTES] = {"", "", ""};
    const int rc[3] = {keys_parse(text, &keys, why[0]), archs_parse(text, archs, &count, why[1]),
                       index_read(text, "ptxas ", &x, &r, why[2])};
    if (rc[2] == 0)
        for (uint32_t i = 0; i < x.header.entry_count; i++) {
            const char *name = index_string(&x, x.entries[i].key_str);
            if (name && index_find(&x, name) && rc[0] == 0)
                index_check_entry(&x, &x.entries[i], &keys.keys[0], &r);
        }
    for (int i = 0; i < 3; i++)
        fuzz_verdict(rc[i] == 0, why[i]);
    fuzz_verdict(rc[0] == 0 || rc[1] == 0 || rc[2] == 0, why[0]);
    index_free(&x);
    keys_free(&keys);
    report_free(&r);
    return 0;
}
