/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_metrics.c: the rows of a run, as `nojit report` reads them and as a resumed run cuts
 * them off.
 */
#include "fuzz.h"
#include "io/error.h"
#include "record/metrics.h"
#include "report/report.h"

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
    struct rows_done done, again;
    fuzz_file("samples.jsonl", data, bytes);
    const char *path = fuzz_file("metrics.jsonl", data, bytes);
    const int rc = report_read(fuzz_folder(), &run);
    fuzz_verdict(rc == 0, fail_text());
    FUZZ_CHECK((rc == 0) == json_is_object(run));
    json_decref(run);
    FUZZ_CHECK(rows_open(path, 5, count_row, &first, &done, NULL) == 0);
    FUZZ_CHECK(rows_open(path, 5, count_row, &second, &again, NULL) == 0);
    FUZZ_CHECK(first == second); /* rows that stay once, stay */
    FUZZ_CHECK(again.cut == 0 && again.missing == done.missing);
    return 0;
}
