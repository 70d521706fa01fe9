/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_greeting.c: what somebody says who has connected to rank 0 of three.
 */
#include "fuzz.h"
#include "io/error.h"
#include "ranks/greeting.h"

#include <stdlib.h>
#include <string.h>

/* Return how many of the bytes rank 0 reads; 0: they are no greeting, or end before it does. */
static size_t read_as_rank_0(const char *data, size_t bytes)
{
    size_t have = 0, whole;
    while ((whole = greeting_bytes(data, have)) != have && whole != 0) {
        FUZZ_CHECK(whole > have && whole <= GREETING_BYTES);
        if (whole > bytes)
            return 0;
        have = whole;
    }
    FUZZ_CHECK(whole == 0 || data[whole - 1] == 0); /* it is read as text */
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct identity ids[] = {{"version", "1"}, {"--lr", "1e-4"}};
    const struct place first = {.size = 3, .secret = "of these three"};
    size_t own_bytes;
    int rank = 0;
    char *own = greeting_make(&first, "run", ids, 2, &own_bytes);
    FUZZ_CHECK(own && read_as_rank_0(own, own_bytes) == own_bytes);
    const size_t whole = read_as_rank_0((const char *)data, bytes);
    char *read = malloc(whole + (whole == 0)); /* no more than this is there */
    FUZZ_CHECK(read);
    memcpy(read, data, whole);
    int rc = fail(NJ_E_FORMAT, "no greeting of this run");
    if (whole != 0 && greeting_trusted(own, read) && strcmp(greeting_run(read), "run") == 0)
        rc = greeting_rank(own, read, &rank);
    FUZZ_CHECK(rc != 0 || (rank > 0 && rank < 3));
    if (rc == 0)
        rc = greeting_compare(own, read);
    fuzz_verdict(rc == 0, fail_text());
    free(read);
    free(own);
    return 0;
}
