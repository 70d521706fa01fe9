/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_json.c: any JSON file of a model folder. What is accepted reads the same after it was written.
 */
#include "fuzz.h"
#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *first, *second;
    const char *path = fuzz_file("a.json", data, bytes);
    const int rc = json_read_file(path, "fetch it again", &first);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    char *shown = json_shown(first, 0);
    FUZZ_CHECK(shown != NULL);
    path = fuzz_file("b.json", shown, strlen(shown));
    FUZZ_CHECK(json_read_file(path, "fetch it again", &second) == 0);
    FUZZ_CHECK(json_equal(first, second));
    free(shown);
    json_decref(first);
    json_decref(second);
    return 0;
}
