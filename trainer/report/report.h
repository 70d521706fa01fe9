/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h: the sources of a page of curves: runs as JSON, what may be compared, and the page's fixed parts.
 */
#ifndef NOJIT_TRAINER_REPORT_H
#define NOJIT_TRAINER_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* Read DIR/metrics.jsonl and, if they are present, receipt.json and samples.jsonl. The object has name, path, rows,
 * steps, series {metric: {x: [step...], y: [...]}}, receipt (or null), samples, notes. Values that are not finite
 * numbers are left out, and so are metrics of a teacher in a run without one; in a long series, x and y hold the
 * extremes of each stretch of steps, `at` and `mean` its mean. */
int report_read(const char *dir, json_t **out);

/* Add to {runs: [...]} what may be compared: apart {metric: {groups: [[number of a run...]...], why: [text...]}} for
 * each metric whose runs are not all alike, and lowest, the runs with the lowest held-out cross-entropy among those
 * that are. */
int report_alike(json_t *data);

/* Write the page, which the browser loads again every data.refresh seconds, if that is set; every '<' of the data is
 * escaped, so no text of a run can end its element. */
int report_page(FILE *f, const json_t *data);

#endif
