/* SPDX-License-Identifier: Apache-2.0
 *
 * trend.c: see trend.h. Single losses are noise, and a model that has lost what it knew often stays below
 * equal odds: it still predicts frequent tokens.
 */
#include "run/trend.h"

#include <math.h>
#include <string.h>

static const double FAR = 1.5, NATS = 1, ERRORS = 5;
enum { END = 20 }; /* the end is one part in END of the steps */

void trend_begin(struct trend *t, int64_t steps)
{
    memset(t, 0, sizeof *t);
    t->width = (steps + TREND_STRETCHES - 1) / TREND_STRETCHES;
    if (t->width < TREND_STEPS_LEAST)
        t->width = TREND_STEPS_LEAST;
}

void trend_add(struct trend *t, double loss)
{
    if (!isfinite(loss))
        return;
    int64_t at = t->steps / t->width;
    if (at > TREND_STRETCHES)
        at = TREND_STRETCHES;
    if (t->steps++ == 0)
        t->first = loss;
    t->stretch[at].count++;
    t->stretch[at].sum += loss;
    t->stretch[at].squares += loss * loss;
}

static double mean_of(const struct stretch_of_losses *s)
{
    return s->sum / (double)s->count;
}

static double variance_of(const struct stretch_of_losses *s)
{
    const double mean = mean_of(s), n = (double)s->count;
    return n > 1 ? fmax(0, s->squares / n - mean * mean) * n / (n - 1) : INFINITY;
}

/* Join the last stretches to the end of the run; returns how many are before it. */
static int join_end(const struct trend *t, struct stretch_of_losses *end)
{
    int count = 0;
    *end = (struct stretch_of_losses){0};
    while (count <= TREND_STRETCHES && t->stretch[count].count > 0)
        count++;
    while (count > 0 && (end->count < TREND_STEPS_LEAST || END * end->count < t->steps)) {
        const struct stretch_of_losses *s = &t->stretch[--count];
        end->count += s->count;
        end->sum += s->sum;
        end->squares += s->squares;
    }
    return count;
}

/* Return whether the difference of two means is larger than the noise of batches. */
static bool is_rise(const struct stretch_of_losses *best, const struct stretch_of_losses *end)
{
    const double variance = fmax(variance_of(best), variance_of(end));
    const double error = sqrt(variance / (double)best->count + variance / (double)end->count);
    const double rise = mean_of(end) - mean_of(best);
    return mean_of(end) > FAR * mean_of(best) && rise > NATS && rise > ERRORS * error;
}

bool trend_diverged(struct trend *t, int vocab)
{
    struct stretch_of_losses end;
    const int before = join_end(t, &end);
    const struct stretch_of_losses *best = before > 0 ? t->stretch : NULL;
    if (end.count == 0)
        return false;
    for (int i = 1; i < before; i++)
        best = mean_of(&t->stretch[i]) < mean_of(best) ? &t->stretch[i] : best;
    t->end = mean_of(&end);
    t->lowest = best != NULL ? fmin(t->first, mean_of(best)) : t->first;
    return (t->end > log(vocab) && t->end > FAR * t->first) ||
           (best != NULL && is_rise(best, &end));
}
