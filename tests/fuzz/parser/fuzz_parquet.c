/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_parquet.c: rows of a Parquet file, every column of them.
 */
#include "data/parquet.h"
#include "fuzz.h"
#include "io/error.h"

static bool all(void *user, const char *column)
{
    (void)user, (void)column;
    return true;
}

static void ignore(void *user, const char *column)
{
    (void)user, (void)column;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { ROWS_MOST = 1000 }; /* a column of nulls alone may have any number of them */
    const struct parquet_reader reader = {all, ignore, NULL};
    struct data_file f;
    struct parquet *p = NULL;
    json_t *row = NULL;
    bool fault;
    int count = 0, rc = data_file_open(&f, fuzz_file("rows.parquet", data, bytes));
    if (!rc)
        rc = parquet_open(&f, &reader, &p);
    do {
        json_decref(row);
        row = NULL;
        rc = rc ? rc : parquet_next(p, &row, &fault);
        FUZZ_CHECK(rc != 0 || row == NULL || json_is_object(row));
    } while (rc == 0 && row != NULL && ++count < ROWS_MOST);
    json_decref(row);
    fuzz_verdict(rc == 0, fail_text());
    parquet_close(p);
    data_file_close(&f);
    return 0;
}
