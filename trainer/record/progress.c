/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: see progress.h.
 */
#include "record/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "io/error.h"
#include "io/waits.h"
#include "record/run_files.h"

static const double REWRITE_SECONDS = 0.1;
static const double FIRST_ROWS_SECONDS = 10;

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

static FILE *screen(const struct progress *p)
{
    return p->aside ? stderr : stdout;
}

/* Open a device. A character device, such as /dev/null, holds nothing that could be lost. The name may have become that
 * of another file meanwhile; until that is known, a pipe is not waited for. */
static int open_device(const char *path, int *fd)
{
    struct stat info;
    *fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (fstat(*fd, &info) == 0 && S_ISCHR(info.st_mode) && fcntl(*fd, F_SETFL, O_APPEND) == 0)
        return 0;
    close(*fd);
    return fail(NJ_E_ARG, "%s: is no longer a device; choose another file", path);
}

static int open_log(struct progress *p)
{
    struct stat info;
    int fd;
    const bool device = stat(p->log_path, &info) == 0 && S_ISCHR(info.st_mode);
    const int rc = device ? open_device(p->log_path, &fd)
                          : own_open(p->log_path, O_WRONLY | O_APPEND | O_CREAT, &fd);
    if (rc != 0)
        return fail(rc, "--log %s", fail_text());
    p->log = fdopen(fd, "a");
    if (p->log == NULL)
        close(fd);
    return p->log != NULL ? 0 : fail(NJ_E_NOMEM, "out of memory for --log %s", p->log_path);
}

static void say_wait(void *progress, const char *line)
{
    progress_say(progress, "%s", line);
}

int progress_open(struct progress *p, const char *log_path, bool aside)
{
    memset(p, 0, sizeof *p);
    p->aside = aside;
    const char *kind = getenv("TERM");
    p->terminal = isatty(fileno(screen(p))) && (kind == NULL || strcmp(kind, "dumb") != 0);
    p->started = clock_seconds();
    p->log_path = log_path;
    p->log_new = log_path != NULL && access(log_path, F_OK) != 0;
    const int rc = log_path != NULL ? open_log(p) : 0;
    waits_to(say_wait, p); /* last, since another thread writes lines from here on */
    return rc;
}

int progress_check(const struct progress *p)
{
    if (p->log_error != 0)
        return fail(NJ_E_IO, "--log %s lacks lines: %s; the run itself is whole", p->log_path,
                    strerror(p->log_error));
    if (p->line_error != 0)
        return fail(NJ_E_IO, "standard %s lacks lines: %s; the run itself is whole",
                    p->aside ? "error" : "output", strerror(p->line_error));
    return 0;
}

void progress_close(struct progress *p)
{
    waits_to(NULL, NULL);
    if (p->open_line)
        fputc('\n', screen(p));
    p->open_line = false;
    if (p->log == NULL)
        return;
    const bool empty = fseek(p->log, 0, SEEK_END) == 0 && ftell(p->log) == 0;
    fclose(p->log);
    p->log = NULL;
    if (empty && p->log_new)
        (void)remove(p->log_path);
}

/* The lock of the terminal lines and the log; the thread that reports waits writes them, too. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static void show_line(struct progress *p, const char *line, bool lasting)
{
    FILE *f = screen(p);
    const bool rewrite = p->terminal && !lasting;
    pthread_mutex_lock(&writing);
    if (p->open_line)
        fputs("\r\033[K", f);
    if ((fputs(line, f) < 0 || (!rewrite && fputc('\n', f) < 0) || fflush(f) != 0) &&
        p->line_error == 0)
        p->line_error = errno;
    p->open_line = rewrite;
    pthread_mutex_unlock(&writing);
    waits_spoke();
}

static void log_line(struct progress *p, const char *line)
{
    if (p->log == NULL)
        return;
    pthread_mutex_lock(&writing);
    if ((fprintf(p->log, "%s\n", line) < 0 || fflush(p->log) != 0) && p->log_error == 0)
        p->log_error = errno;
    pthread_mutex_unlock(&writing);
}

enum { RANK_LAST = 9 };

/* A line that is rewritten, in parts. */
struct line {
    struct part {
        /* rank of the part, up to RANK_LAST; if there is no room for all, the highest goes first; 0 stays */
        int rank;
        char text[80];
    } part[13];
    size_t count;
};

__attribute__((format(printf, 3, 4))) static void add(struct line *l, int rank, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    l->part[l->count].rank = rank;
    vsnprintf(l->part[l->count++].text, sizeof l->part->text, format, args);
    va_end(args);
}

/* Join the parts of at most `rank`, separated by two spaces. */
static size_t join(const struct line *l, int rank, char *out, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->part[i].rank <= rank)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? "  " : "",
                                     l->part[i].text);
    return used;
}

/* Fit as many parts as there is room for. The width is queried each time, as a window changes; its last column stays
 * free, because some terminals go on to the next row when it is filled. */
static void fit(const struct progress *p, const struct line *l, char *out, size_t bytes)
{
    struct winsize w = {0};
    const bool known = ioctl(fileno(screen(p)), TIOCGWINSZ, &w) == 0 && w.ws_col > 1;
    const size_t room = known ? w.ws_col - 1u : 79;
    for (int rank = RANK_LAST; join(l, rank, out, bytes) > room && rank > 0; rank--)
        ;
    if (room < bytes)
        out[room] = '\0';
}

void progress_say(struct progress *p, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    make_printable(line);
    show_line(p, line, true);
    log_line(p, line);
}

/* Show how much is measured; what, unit: "held out", "rows". */
static void measured(struct progress *p, const char *what, const char *unit, int64_t rows,
                     int64_t total)
{
    char text[256], eta[32];
    struct line line = {0};
    const double now = clock_seconds();
    if (rows == 0) {
        p->rows_started = now;
        p->rows_due = FIRST_ROWS_SECONDS;
    }
    const double took = now - p->rows_started;
    if (p->terminal ? now - p->shown < REWRITE_SECONDS : took < p->rows_due)
        return;
    add(&line, 0, "%s: %lld of %lld %s", what, (long long)rows, (long long)total, unit);
    if (rows > 0)
        add(&line, 1, "ETA %s",
            duration_text(took / (double)rows * (double)(total - rows), eta, sizeof eta));
    if (p->terminal) {
        p->shown = now;
        fit(p, &line, text, sizeof text);
    } else {
        p->rows_due *= 2;
        join(&line, RANK_LAST, text, sizeof text);
    }
    show_line(p, text, !p->terminal);
}

void progress_rows(void *progress, int64_t rows, int64_t total)
{
    measured(progress, "held out", "rows", rows, total);
}

void progress_choices(void *progress, int64_t choices, int64_t total)
{
    measured(progress, "scored", "choices", choices, total);
}

void progress_texts(struct progress *p, int64_t done, int64_t total, int64_t tokens)
{
    char text[256];
    struct line line = {0};
    const double now = clock_seconds(), took = now - p->started;
    if (!p->terminal)
        wait_detail("%lld of %lld, %lld tokens", (long long)done, (long long)total,
                    (long long)tokens);
    if (!p->terminal || now - p->shown < REWRITE_SECONDS || took <= 0)
        return;
    p->shown = now;
    add(&line, 0, "%lld of %lld texts", (long long)done, (long long)total);
    add(&line, 1, "%lld tokens", (long long)tokens);
    add(&line, 2, "%.0f tokens/s", (double)tokens / took);
    fit(p, &line, text, sizeof text);
    show_line(p, text, false);
}

void progress_clear(struct progress *p)
{
    pthread_mutex_lock(&writing);
    if (p->open_line)
        fputs("\r\033[K", screen(p));
    p->open_line = false;
    fflush(screen(p));
    pthread_mutex_unlock(&writing);
}

void progress_passed_over(struct progress *p, const struct passed_over *passed)
{
    char text[256];
    if (passed->split[0] != '\0')
        progress_say(p, "%s", passed->split);
    if (passed_over_text(passed, text, sizeof text) != NULL)
        progress_say(p, "%s", text);
}

void progress_data(struct progress *p, const struct passed_over *passed,
                   const struct row_notes *notes)
{
    char text[sizeof p->columns];
    progress_passed_over(p, passed);
    if (row_columns_text(notes, text, sizeof text) != NULL && strcmp(text, p->columns) != 0) {
        progress_say(p, "%s", text);
        memcpy(p->columns, text, sizeof text);
    }
    if (row_unusable_text(notes, text, sizeof text) != NULL)
        progress_say(p, "%s", text);
}

void progress_measured(struct progress *p, int64_t step, double seconds)
{
    p->measure_seconds = seconds;
    if (step > p->first_step)
        p->measured_seconds += seconds;
}

/* Return the number of evaluations after this step that are to come: each `measure_every`-th, and the last. */
static int64_t measurements_left(const struct progress *p, int64_t step)
{
    const int64_t n = p->measure_every;
    return n > 0 ? p->steps / n - (step - 1) / n + (p->steps % n != 0) : 1;
}

static double seconds_left(const struct progress *p, int64_t step)
{
    const double done = (double)(step - p->first_step);
    const double trained = clock_seconds() - p->started - p->measured_seconds;
    return (done > 0 ? trained / done * (double)(p->steps - step) : 0) +
           p->measure_seconds * (double)measurements_left(p, step);
}

/* Add the parts about answers: their length, how many of them are cut off, and the share of the step's time that
 * writing them took. */
static void answer_parts(const struct rollout_stats *a, double seconds, struct line *out)
{
    if (a->answers == 0)
        return;
    add(out, 3, "answers %.0f tok", (double)a->tokens / (double)a->answers);
    add(out, 3, "cut %.0f %%", 100 * (double)a->truncated / (double)a->answers);
    add(out, 5, "writing %.0f %%", 100 * a->seconds / (a->seconds + seconds));
}

static void step_parts(const struct progress *p, int64_t step, const struct step_result *r,
                       struct line *out)
{
    char text[32];
    const double seconds = r->step_ms * 1e-3;
    add(out, 0, "step %lld/%lld", (long long)step, (long long)p->steps);
    if (r->passed_over) {
        add(out, 1, "no target: skipped");
        return;
    }
    add(out, 1, "loss %.4f", r->loss);
    if (p->teacher) {
        add(out, 6, "kd %.4f", r->kd_loss);
        add(out, 7, "ce %.4f", r->ce_loss);
    }
    add(out, 8, "lr %.2e", r->lr);
    add(out, 9, "norm %.2f", r->grad_norm);
    if (p->answers != NULL)
        answer_parts(p->answers, seconds, out);
    add(out, 2, "%.0f tok/s",
        (double)r->tokens / (seconds + (p->answers != NULL ? p->answers->seconds : 0)));
    if (isfinite(p->ideal_seconds))
        add(out, 4, "MFU %.1f %%", 100 * p->ideal_seconds / seconds);
    add(out, 5, "%s", bytes_text(p->memory_bytes, text, sizeof text));
    add(out, 3, "ETA %s", duration_text(seconds_left(p, step), text, sizeof text));
}

void progress_step(struct progress *p, int64_t step, const struct step_result *r)
{
    char text[1024];
    struct line line = {0};
    const bool last = step == p->steps, due = step % p->every == 0 || last;
    const double now = clock_seconds();
    if (!due && !p->terminal)
        return;
    step_parts(p, step, r, &line);
    join(&line, RANK_LAST, text, sizeof text);
    if (due)
        log_line(p, text);
    if (p->terminal && !last && now - p->shown < REWRITE_SECONDS)
        return;
    p->shown = now;
    if (p->terminal && !last)
        fit(p, &line, text, sizeof text);
    show_line(p, text, last);
}

void progress_bytes(struct progress *p, double done, double total)
{
    enum { WIDTH = 30 };
    char text[256], eta[32], bar[WIDTH + 1], read[32], all[32];
    struct line line = {0};
    const double now = clock_seconds(), took = now - p->started;
    const double part = total > 0 && done < total ? done / total : 1;
    if (!p->terminal)
        wait_detail("%s of %s", bytes_text(done, read, sizeof read),
                    bytes_text(total, all, sizeof all));
    if (!p->terminal || now - p->shown < REWRITE_SECONDS)
        return;
    p->shown = now;
    memset(bar, '.', WIDTH);
    memset(bar, '=', (size_t)(part * WIDTH));
    bar[WIDTH] = '\0';
    add(&line, 3, "[%s]", bar);
    add(&line, 0, "%s of %s", bytes_text(done, read, sizeof read),
        bytes_text(total, all, sizeof all));
    add(&line, 2, "%.1f MB/s", took > 0 ? 1e-6 * done / took : 0);
    add(&line, 1, "ETA %s",
        duration_text(part > 0 ? took * (1 - part) / part : 0, eta, sizeof eta));
    fit(p, &line, text, sizeof text);
    show_line(p, text, false);
}
