/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_modules.c: counts module loads in a process, whoever makes them, through CUPTI. Built as a library that the
 * driver loads (CUDA_INJECTION64_PATH). Start-up ends with the first stream capture. At exit it appends to
 * $MODULE_COUNTS: loads before, loads after.
 */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static long before, after;
static int captured;

int InitializeInjection(void);

static void on_event(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)user;
    (void)data;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        *(captured ? &after : &before) += 1;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API &&
        id == CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2)
        captured = 1;
}

static void report(void)
{
    const char *path = getenv("MODULE_COUNTS");
    FILE *f = path != NULL ? fopen(path, "a") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "modules loaded before the first step: %ld, after: %ld\n", before, after);
    fclose(f);
}

int InitializeInjection(void)
{
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, on_event, NULL) != CUPTI_SUCCESS)
        return 0;
    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2);
    atexit(report);
    return 1;
}
