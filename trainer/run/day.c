/* SPDX-License-Identifier: Apache-2.0
 *
 * day.c: see day.h.
 */
#include "run/day.h"

#include <stdio.h>
#include <string.h>

#include "io/error.h"
#include "template/template.h"
#include "text/chat.h"

/* Read a day, with its day of the week and of the year; false if it does not exist. */
static bool read_day(const char *text, struct tm *out)
{
    *out = (struct tm){0};
    const char *end = strptime(text, "%Y-%m-%d", out);
    struct tm same = *out;
    const bool exists = end != NULL && *end == '\0' && timegm(&same) != -1 &&
                        same.tm_mday == out->tm_mday && same.tm_mon == out->tm_mon;
    *out = same;
    return exists;
}

int day_use(const char *given, char day[DAY_BYTES])
{
    const time_t now = time(NULL);
    struct tm at;
    if (given == NULL) {
        localtime_r(&now, &at);
        strftime(day, DAY_BYTES, "%Y-%m-%d", &at);
        given = day;
    }
    if (!read_day(given, &at))
        return fail(NJ_E_ARG, "--template-date %s: there is no such day; write it as 2026-11-27",
                    given);
    strftime(day, DAY_BYTES, "%Y-%m-%d", &at);
    template_set_day(&at);
    return 0;
}

int run_take_day(struct run *r)
{
    char was[DAY_BYTES];
    const char *given = r->s->template_date;
    if (given == NULL && checkpoints_setting(&r->checkpoints, "template-date", was, sizeof was))
        given = was;
    int rc = group_leads(r->group) ? day_use(given, r->day) : 0;
    if (rc == 0)
        rc = group_share(r->group, r->day, sizeof r->day);
    return rc != 0 || group_leads(r->group) ? rc : day_use(r->day, r->day);
}

int run_say_day(struct run *r)
{
    const struct prompts *p = r->rollouts.prompts;
    bool writes;
    if (!group_leads(r->group) || !(data_chats(r->data) || (p != NULL && prompts_chats(p))))
        return 0;
    TRY(chat_writes_day(r->student, &writes));
    if (writes)
        progress_say(&r->progress,
                     "the chat template writes the date, which is %s in this run; --template-date "
                     "sets another",
                     r->day);
    return 0;
}
