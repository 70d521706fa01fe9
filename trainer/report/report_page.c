/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.c: the page: report.html with style, script and data inserted at its marks.
 */
#include <stdbool.h>
#include <string.h>

#include "io/error.h"
#include "nojit.h"
#include "report/report.h"
#include "report_parts.h"

static int put_escaped(const char *buffer, size_t size, void *f)
{
    for (size_t i = 0; i < size; i++)
        if ((buffer[i] == '<' ? fputs("\\u003c", f) : fputc(buffer[i], f)) == EOF)
            return -1;
    return 0;
}

static int put_data(FILE *f, const json_t *data)
{
    return json_dump_callback(data, put_escaped, f, JSON_COMPACT | JSON_REAL_PRECISION(7));
}

static void put_html(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else
            fputc(*s, f);
    }
}

/* Write a row per run, for a browser that runs no scripts. */
static int put_last(FILE *f, const json_t *data)
{
    static const char *const metrics[] = {"loss", "kd_loss", "ce_loss", "eval_ce_loss",
                                          "tokens_per_second"};
    size_t i;
    const json_t *run;
    fputs("<div class=\"scroll\"><table><thead><tr><th>run</th><th>step</th>", f);
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++)
        fprintf(f, "<th>%s</th>", metrics[m]);
    fputs("</tr></thead><tbody>\n", f);
    json_array_foreach(json_object_get(data, "runs"), i, run)
    {
        fputs("<tr><th>", f);
        put_html(f, json_string_value(json_object_get(run, "name")));
        fprintf(f, "</th><td>%lld</td>",
                (long long)json_integer_value(json_object_get(run, "steps")));
        const json_t *series = json_object_get(run, "series");
        for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
            const json_t *y = json_object_get(json_object_get(series, metrics[m]), "y");
            const size_t n = json_array_size(y);
            if (n > 0)
                fprintf(f, "<td>%.5g</td>", json_number_value(json_array_get(y, n - 1)));
            else
                fputs("<td></td>", f);
        }
        fputs("</tr>\n", f);
    }
    return fputs("</tbody></table></div>\n", f) == EOF ? -1 : 0;
}

static int put_css(FILE *f, const json_t *data)
{
    (void)data;
    return fputs(report_css, f) == EOF ? -1 : 0;
}

static int put_js(FILE *f, const json_t *data)
{
    (void)data;
    return fputs(report_js, f) == EOF ? -1 : 0;
}

static int put_refresh(FILE *f, const json_t *data)
{
    const json_int_t seconds = json_integer_value(json_object_get(data, "refresh"));
    if (seconds == 0)
        return 0;
    return fprintf(f, "<meta http-equiv=\"refresh\" content=\"%lld\">\n", (long long)seconds) < 0
               ? -1
               : 0;
}

struct mark {
    const char *text;
    int (*put)(FILE *f, const json_t *data);
};

/* The marks in the order of report.html. */
static const struct mark marks[] = {
    {"<!--refresh-->", put_refresh}, {"<!--css-->", put_css}, {"<!--last-->", put_last},
    {"<!--data-->", put_data},       {"<!--js-->", put_js},
};

int report_page(FILE *f, const json_t *data)
{
    const char *rest = report_html;
    bool bad = false;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *mark = strstr(rest, marks[i].text);
        const size_t n = (size_t)(mark - rest);
        bad = bad || fwrite(rest, 1, n, f) != n || marks[i].put(f, data) != 0;
        rest = mark + strlen(marks[i].text);
    }
    bad = bad || fputs(rest, f) == EOF || ferror(f);
    return bad ? NJ_E_IO : 0;
}
