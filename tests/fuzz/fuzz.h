/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h: what the targets share. A target hands the bytes to one parser, uses what the parser
 * accepted, and reports the verdict; tests/fuzz/replay.c holds it against the name of the file.
 */
#ifndef NOJIT_TESTS_FUZZ_H
#define NOJIT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Ends the program, as a crash would, where a parser broke its promise. */
#define FUZZ_CHECK(holds)                                                                          \
    do {                                                                                           \
        if (!(holds))                                                                              \
            fuzz_broken(__FILE__, __LINE__, #holds);                                               \
    } while (0)
_Noreturn void fuzz_broken(const char *file, int line, const char *promise);

/* The last input's verdict. A refusal must come with a sentence. */
extern int fuzz_accepted;
void fuzz_verdict(int accepted, const char *sentence);

/* A folder of this process alone, removed at its end; and a file in it. Valid until the end, four
 * paths at a time. */
const char *fuzz_folder(void);
const char *fuzz_file(const char *name, const void *data, size_t bytes);

#endif
