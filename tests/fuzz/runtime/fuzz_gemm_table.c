/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gemm_table.c: the GEMM table. A foreign or torn one counts as far
 * as it goes; accepted is one that gave a row.
 */
#include "fuzz.h"
#include "internal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    static nj_context *ctx;
    FUZZ_CHECK(ctx || nj_context_create(&ctx, &options) == 0);
    ctx->info = (struct nj_device_info){.name = "fuzz"}; /* the heading that the files have */
    const int rows = nj_gemm_table_read(ctx, fuzz_file("table", data, bytes));
    FUZZ_CHECK(rows >= 0 ? (size_t)rows == ctx->choices.count : ctx->error[0]);
    for (int i = 0; i < rows; i++)
        FUZZ_CHECK(strlen(ctx->choices.row[i]->shape) < NJ_GEMM_TEXT_BYTES);
    nj_gemm_choices_free(ctx);
    fuzz_verdict(rows > 0, "it gave no row");
    return 0;
}
