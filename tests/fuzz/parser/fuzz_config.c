/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_config.c: the JSON files of a model folder: config.json, and the same bytes as
 * adapter_config.json. Accepted is what one of the two readers takes.
 */
#include "fuzz.h"
#include "io/error.h"
#include "model/config.h"
#include "model/lora_config.h"

#include <math.h>
#include <string.h>

static float inv_freq[ROPES_MOST * ROPE_PAIRS_MOST];

/* Check that an accepted configuration survives being written and read again. */
static void check_again(const struct model_config *c)
{
    struct model_config back;
    FUZZ_CHECK(config_parameters(c) > 0);
    config_inv_freq(c, c->max_positions, inv_freq);
    for (int i = 0; i < config_frequencies(c, ROPES_MOST); i++)
        FUZZ_CHECK(isfinite(inv_freq[i]));
    FUZZ_CHECK(config_write(fuzz_folder(), c, "float32") == 0);
    FUZZ_CHECK(config_read(fuzz_folder(), &back) == 0);
    FUZZ_CHECK(back.hidden_size == c->hidden_size && back.tied == c->tied &&
               back.eos_id == c->eos_id && back.rms_eps == c->rms_eps);
    FUZZ_CHECK(memcmp(back.arch.kind, c->arch.kind, sizeof back.arch.kind) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct model_config c;
    struct lora_config lora;
    char list[256];
    fuzz_file("config.json", data, bytes);
    int rc = config_read(fuzz_folder(), &c);
    fuzz_verdict(rc == 0, fail_text());
    if (rc == 0) {
        check_again(&c);
        return 0;
    }
    fuzz_file("adapter_config.json", data, bytes);
    rc = lora_config_read(fuzz_folder(), &lora);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    lora_targets_text(&lora, list, sizeof list);
    FUZZ_CHECK(*list && lora.rank > 0);
    return 0;
}
