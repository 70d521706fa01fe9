/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.c: the rows of libraries.h. STATIC in the Makefile is what is linked; scripts/sbom.sh
 * refuses a difference.
 */
#include "cli/libraries.h"

#include <cblas.h>
#include <jansson.h>
#include <oniguruma.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <yaml.h>

#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

const char *compiler_name(void)
{
    return COMPILER " " __VERSION__;
}

/* Of gcc's libraries: those of the compiler. */
static const char *of_compiler(char buffer[LIBRARY_VERSION_BYTES])
{
    (void)buffer;
    return __VERSION__;
}

/* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
static const char *of_openblas(char buffer[LIBRARY_VERSION_BYTES])
{
    return sscanf(openblas_get_config(), "OpenBLAS %31s", buffer) == 1 ? buffer : "unknown";
}

static const char *of_jansson(char buffer[LIBRARY_VERSION_BYTES])
{
    (void)buffer;
    return jansson_version_str();
}

static const char *of_yaml(char buffer[LIBRARY_VERSION_BYTES])
{
    (void)buffer;
    return yaml_get_version_string();
}

static const char *of_utf8proc(char buffer[LIBRARY_VERSION_BYTES])
{
    (void)buffer;
    return utf8proc_version();
}

static const char *of_onig(char buffer[LIBRARY_VERSION_BYTES])
{
    (void)buffer;
    return onig_version();
}

static const char *of_xxhash(char buffer[LIBRARY_VERSION_BYTES])
{
    const unsigned number = XXH_versionNumber();
    snprintf(buffer, LIBRARY_VERSION_BYTES, "%u.%u.%u", number / 10000, number / 100 % 100,
             number % 100);
    return buffer;
}

#define OF_GCC "GPL-3.0-or-later WITH GCC-exception-3.1"
const struct library libraries[] = {
    {"libgcc", OF_GCC, of_compiler},
    {"libgomp", OF_GCC, of_compiler},
    {"libjansson", "MIT", of_jansson},
    {"libonig", "BSD-2-Clause", of_onig},
    {"libopenblas", "BSD-3-Clause AND BSD-2-Clause", of_openblas},
    {"libutf8proc", "MIT AND Unicode-DFS-2015", of_utf8proc},
    {"libxxhash", "BSD-2-Clause", of_xxhash},
    {"libyaml", "MIT", of_yaml},
    {NULL, NULL, NULL},
};
