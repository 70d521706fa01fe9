/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_node_list.c: SLURM_STEP_NODELIST, which the environment gives.
 */
#include "fuzz.h"
#include "io/error.h"
#include "ranks/launchers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[1024], host[HOST_BYTES];
    if (bytes >= sizeof text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    const int rc = node_list_first(text, host);
    fuzz_verdict(rc == 0, fail_text());
    FUZZ_CHECK(rc != 0 || (host[0] != 0 && strlen(host) < HOST_BYTES && !strpbrk(host, "[], ")));
    return 0;
}
