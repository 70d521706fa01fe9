/* SPDX-License-Identifier: Apache-2.0
 *
 * pmix.c: see pmix.h. The types that the PMIx standard, 4.1, defines (chapter 3) are declared
 * here, and the four functions, which every libpmix.so.2 has.
 */
#include "ranks/pmix.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/library.h"
#include "io/error.h"
#include "nojit.h"

enum { PMIX_SUCCESS = 0, PMIX_STRING = 3, PMIX_MAX_NSLEN = 255, PMIX_MAX_KEYLEN = 511 };

struct pmix_proc {
    char nspace[PMIX_MAX_NSLEN + 1];
    uint32_t rank;
};
/* Value that the library allocates, so that only its beginning matters. */
struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint64_t word;
    } data;
};
struct pmix {
    int (*init)(struct pmix_proc *self, void *info, size_t count);
    int (*get)(const struct pmix_proc *of, const char key[PMIX_MAX_KEYLEN + 1], const void *info,
               size_t count, struct pmix_value **out);
    int (*finalize)(const void *info, size_t count);
};

/* Open the library for good: a library that has had threads is not unloaded. */
static int open_library(struct pmix *out)
{
    char why[512] = "";
    void *library =
        nj_loader_is_safe(why, sizeof why) ? dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return fail(NJ_E_LIBRARY, "%s", why[0] ? why : dlerror());
    *(void **)&out->init = dlsym(library, "PMIx_Init");
    *(void **)&out->get = dlsym(library, "PMIx_Get");
    *(void **)&out->finalize = dlsym(library, "PMIx_Finalize");
    return out->init && out->get && out->finalize
               ? 0
               : fail(NJ_E_LIBRARY, "libpmix.so.2 lacks PMIx_Init, PMIx_Get or PMIx_Finalize");
}

static int ask(const struct pmix *pmix, const struct pmix_proc *self, char *host, size_t bytes)
{
    const char key[PMIX_MAX_KEYLEN + 1] = "pmix.hname";
    struct pmix_proc first = *self;
    struct pmix_value *value = NULL;
    first.rank = 0;
    const int rc = pmix->get(&first, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS || !value || value->type != PMIX_STRING || !value->data.string)
        return fail(NJ_E_LIBRARY, "PMIx does not know the host of rank 0 (%d)", rc);
    if ((size_t)snprintf(host, bytes, "%s", value->data.string) >= bytes)
        return fail(NJ_E_LIBRARY, "PMIx calls the host of rank 0 by more than %zu bytes",
                    bytes - 1);
    return 0;
}

int pmix_host(char *host, size_t bytes)
{
    struct pmix pmix = {0};
    struct pmix_proc self;
    if (!getenv("PMIX_NAMESPACE"))
        return fail(NJ_E_LIBRARY, "PMIX_NAMESPACE is not set");
    TRY(open_library(&pmix));
    const int begun = pmix.init(&self, NULL, 0);
    if (begun != PMIX_SUCCESS)
        return fail(NJ_E_LIBRARY, "PMIx_Init fails (%d)", begun);
    const int rc = ask(&pmix, &self, host, bytes);
    pmix.finalize(NULL, 0);
    return rc;
}
