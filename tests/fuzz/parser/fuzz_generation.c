/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_generation.c: generation_config.json of a model folder.
 */
#include "fuzz.h"
#include "io/error.h"
#include "text/generation.h"

#include <stdbool.h>

enum { VOCAB = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct tokenizer t = {
        .kind = "bytes", .vocab_size = 257, .end_of_text = 256, .end_of_turn = -1};
    struct generation g;
    fuzz_file("generation_config.json", data, bytes);
    const int rc = generation_read(fuzz_folder(), &t, VOCAB, &g);
    fuzz_verdict(rc == 0, fail_text());
    if (rc != 0)
        return 0;
    FUZZ_CHECK(g.stops > 0 && g.stops <= STOP_IDS_MOST && generation_stops(&g, 256));
    for (int i = 0; i < g.stops; i++)
        FUZZ_CHECK(g.stop[i] >= 0 && g.stop[i] < VOCAB);
    return 0;
}
