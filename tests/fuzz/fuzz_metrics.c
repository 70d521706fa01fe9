/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_metrics.c: the rows of a run, as `nojit report` reads them and as a run that goes on cuts
 * them off.
 */
#include "error.h"
#include "fuzz.h"
#include "metrics.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static void count_row(void *user, const char *row)
{
    FUZZ_CHECK(strlen(row) > 0);
    ++*(size_t *)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *run = NULL;
    size_t first = 0, second = 0;
    fuzz_file("samples.jsonl", data, bytes);
    const char *path = fuzz_file("metrics.jsonl", data, bytes);
    const int rc = report_read(fuzz_folder(), &run);
    fuzz_verdict(rc == 0, fail_text());
    FUZZ_CHECK((rc == 0) == json_is_object(run));
    json_decref(run);
    FUZZ_CHECK(rows_keep(path, 5, count_row, &first) == 0);
    FUZZ_CHECK(rows_keep(path, 5, count_row, &second) == 0);
    FUZZ_CHECK(first == second); /* what stays, stays */
    return 0;
}
