/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_call.c: what every call of the driver does first: lock, fail if it was told to, refuse what
 * is out of order. And the log, with a summary when the process ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "machine.h"

SIM_EXPORT struct sim_control sim_control_state;
_Thread_local struct sim_device *sim_current;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

const char *sim_setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

void sim_say(const char *format, ...)
{
    char line[1024] = "sim: ";
    const char *path = sim_setting("NOJIT_SIM_LOG", NULL);
    const int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : 2;
    va_list args;
    va_start(args, format);
    vsnprintf(line + 5, sizeof line - 6, format, args);
    va_end(args);
    const size_t length = strlen(line);
    line[length] = '\n';
    if (fd >= 0 && write(fd, line, length + 1) < 0)
        abort();
    if (fd > 2)
        close(fd);
}

/* NOJIT_SIM_FAIL, once. */
static void read_failure(void)
{
    static char name[64];
    static bool done;
    const char *text = sim_setting("NOJIT_SIM_FAIL", NULL);
    char error[32] = "";
    int n = 0;
    if (done || text == NULL)
        return;
    done = true;
    if (sscanf(text, "%63[^:]:%d:%31s", name, &n, error) != 3 || n < 1) {
        sim_say("NOJIT_SIM_FAIL=%s: is not NAME:N:ERROR", text);
        abort();
    }
    sim_control_state.fails = name;
    sim_control_state.after = n - 1;
    sim_control_state.error = strcmp(error, "hang") == 0 ? SIM_HANG : (int)strtol(error, NULL, 10);
    sim_control_state.lasts = strchr(error, '+') != NULL;
}

int sim_told(const char *name)
{
    struct sim_control *c = &sim_control_state;
    read_failure();
    if (c->fails == NULL || strcmp(name, c->fails) != 0 || c->after-- > 0)
        return 0;
    if (getenv("NOJIT_SIM_FAIL"))
        sim_say("%s: fails as it was told", name);
    c->after = 0;
    if (!c->lasts)
        c->fails = NULL;
    while (c->error == SIM_HANG)
        pause();
    return c->error;
}

static int check(unsigned needs)
{
    if ((needs & (SIM_STARTED | SIM_CONTEXT)) && !sim.started)
        return CUDA_NOT_INITIALIZED;
    if ((needs & SIM_CONTEXT) && (sim_current == NULL || sim_current->retained == 0))
        return CUDA_INVALID_CONTEXT;
    if ((needs & SIM_CONTEXT) && sim_current->lost)
        return sim_current->lost;
    return needs & SIM_UNSAFE ? sim_spoil_captures() : CUDA_SUCCESS;
}

int sim_enter(const char *name, unsigned needs)
{
    pthread_mutex_lock(&lock);
    const int told = sim_told(name);
    return told ? told : check(needs);
}

void sim_leave(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void summarize(void)
{
    const struct sim_control *c = &sim_control_state;
    const struct sim_counts counts = sim_counted();
    if (sim_setting("NOJIT_SIM_LOG", NULL) != NULL)
        sim_say("end: %d modules, %d after the first launch, %d of PTX refused, %d exempt; %d "
                "launches, %d products, %llu instructions of warps; %d objects left",
                c->modules, c->late, c->ptx_refused, c->exempt, c->launches, c->products,
                (unsigned long long)counts.warp_instructions, c->live);
}
