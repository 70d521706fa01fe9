/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: see progress.h.
 */
#include "progress.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "error.h"

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *duration_text(double seconds, char *buffer, size_t bytes)
{
    const long long s = seconds < 0 ? 0 : (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(buffer, bytes, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(buffer, bytes, "%lldm%02llds", s / 60, s % 60);
    else
        snprintf(buffer, bytes, "%lld s", s);
    return buffer;
}

const char *bytes_text(double bytes_count, char *buffer, size_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes_count >= 1024 && u < 4; u++)
        bytes_count /= 1024;
    snprintf(buffer, bytes, u == 0 ? "%.0f %s" : "%.2f %s", bytes_count, unit[u]);
    return buffer;
}

int progress_open(struct progress *p, const char *log_path, bool json)
{
    memset(p, 0, sizeof *p);
    p->json = json;
    p->terminal = isatty(json ? STDERR_FILENO : STDOUT_FILENO);
    p->started = seconds_now();
    if (log_path == NULL)
        return 0;
    p->log = fopen(log_path, "a");
    if (p->log == NULL)
        return fail(NJ_E_IO, "--log %s: cannot be written: %s", log_path, strerror(errno));
    return 0;
}

void progress_close(struct progress *p)
{
    if (p->open_line)
        fputc('\n', p->json ? stderr : stdout);
    p->open_line = false;
    if (p->log != NULL)
        fclose(p->log);
    p->log = NULL;
}

static void put_line(struct progress *p, const char *line, bool lasting)
{
    FILE *f = p->json ? stderr : stdout;
    const bool rewrite = p->terminal && !lasting;
    if (p->open_line)
        fputs("\r\033[K", f);
    fputs(line, f);
    if (!rewrite)
        fputc('\n', f);
    fflush(f);
    p->open_line = rewrite;
    if (p->log != NULL) {
        fprintf(p->log, "%s\n", line);
        fflush(p->log);
    }
}

void progress_say(struct progress *p, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put_line(p, line, true);
}

void progress_step(struct progress *p, int64_t step, const struct step_result *r,
                   double tokens_per_second)
{
    if (!p->terminal && step % p->every != 0 && step != p->steps)
        return;
    char line[256], eta[32], kd[48] = "";
    const double done = (double)(step - p->first_step);
    const double left =
        done > 0 ? (seconds_now() - p->started) / done * (double)(p->steps - step) : 0;
    if (p->teacher)
        snprintf(kd, sizeof kd, "  kd %.4f  ce %.4f", r->kd_loss, r->class_loss);
    snprintf(line, sizeof line,
             "step %lld/%lld  loss %.4f%s  lr %.2e  norm %.2f  %.0f tok/s  ETA %s", (long long)step,
             (long long)p->steps, r->loss, kd, r->lr, r->grad_norm, tokens_per_second,
             duration_text(left, eta, sizeof eta));
    put_line(p, line, step == p->steps);
}

void progress_bytes(struct progress *p, double done, double total)
{
    enum { WIDTH = 30 };
    char line[256], eta[32], bar[WIDTH + 1], read[32], all[32];
    const double now = seconds_now(), took = now - p->started;
    const double part = total > 0 && done < total ? done / total : 1;
    if (!p->terminal || now - p->shown < 0.1)
        return;
    p->shown = now;
    memset(bar, '.', WIDTH);
    memset(bar, '=', (size_t)(part * WIDTH));
    bar[WIDTH] = '\0';
    snprintf(line, sizeof line, "[%s] %s of %s  %.1f MB/s  ETA %s", bar,
             bytes_text(done, read, sizeof read), bytes_text(total, all, sizeof all),
             took > 0 ? 1e-6 * done / took : 0,
             duration_text(part > 0 ? took * (1 - part) / part : 0, eta, sizeof eta));
    put_line(p, line, false);
}
