/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_contract.c: a kernel contract, read, spanned to keys and checked as gen does. Run from the
 * root of the tree.
 */
#include "contract.h"
#include "fuzz.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gen g = {.kernels_dir = "kernels", .header = "nojit_ops.h", .all_read = true};
    const int before = problem_count();
    archs_read(&g, "contracts/archs.yaml", "default");
    struct contract *c = contract_read(fuzz_file("add.yaml", data, bytes));
    g.all_read = c != NULL;
    g.contracts = &c;
    g.contract_count = c != NULL;
    keys_make(&g, NULL);
    check_all(&g);
    FUZZ_CHECK(c || problem_count() > before);
    if (problem_count() == before)
        keys_limits(&g);
    fuzz_verdict(problem_count() == before, "gen says why on standard error");
    release();
    return 0;
}
