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
#include <utf8proc.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

const char *compiler_name(void)
{
    return COMPILER " " __VERSION__;
}

/* Return the version of gcc's libraries, which is the compiler's. */
static const char *gcc_version(void)
{
    return __VERSION__;
}

/* Return the version from "OpenBLAS 0.3.21 NO_LAPACKE ...". */
static const char *openblas_version(void)
{
    static char text[32];
    return sscanf(openblas_get_config(), "OpenBLAS %31s", text) == 1 ? text : "unknown";
}

static const char *xxhash_version(void)
{
    static char text[32];
    const unsigned number = XXH_versionNumber();
    snprintf(text, sizeof text, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
    return text;
}

#define OF_GCC "GPL-3.0-or-later WITH GCC-exception-3.1"
const struct library libraries[] = {
    {"libgcc", OF_GCC, gcc_version},
    {"libgomp", OF_GCC, gcc_version},
    {"libjansson", "MIT", jansson_version_str},
    {"libonig", "BSD-2-Clause", onig_version},
    {"libopenblas", "BSD-3-Clause AND BSD-2-Clause", openblas_version},
    {"libutf8proc", "MIT AND Unicode-DFS-2015", utf8proc_version},
    {"libxxhash", "BSD-2-Clause", xxhash_version},
    {"libyaml", "MIT", yaml_get_version_string},
    {"libz", "Zlib", zlibVersion},
    {"libzstd", "BSD-3-Clause", ZSTD_versionString},
    {NULL, NULL, NULL},
};
