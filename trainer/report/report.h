/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h: what a page of curves is made from: runs as JSON, what may be compared, and the page's fixed parts.
 */
#ifndef NOJIT_TRAINER_REPORT_H
#define NOJIT_TRAINER_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* Reads DIR/metrics.jsonl and, if they are there, receipt.json and samples.jsonl. The object has name, path, rows,
 * steps, series {metric: {x: [step...], y: [...]}}, receipt (or null), samples, notes. Values that are no finite
 * numbers are left out, and so are metrics of a teacher in a run without one; of a long series, x and y hold the
 * extremes of each stretch of steps, at and mean its mean. */
int report_read(const char *dir, json_t **out);

/* Adds to {runs: [...]} what may be compared: apart {metric: {groups: [[number of a run...]...], why: [text...]}} for
 * each metric whose runs are not all alike, and lowest, the runs with the lowest held-out cross-entropy among those
 * that are. */
int report_alike(json_t *data);

/* Writes the page, which the browser loads again every data.refresh seconds, where that is there; every '<' of the data
 * is escaped, so no text of a run can end its element. */
int report_page(FILE *f, const json_t *data);

#endif
