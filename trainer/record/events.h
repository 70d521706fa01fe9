/* SPDX-License-Identifier: Apache-2.0
 *
 * events.h: event files for TensorBoard, a scalar per metric and step.
 */
#ifndef NOJIT_TRAINER_EVENTS_H
#define NOJIT_TRAINER_EVENTS_H

#include <stdint.h>
#include <stdio.h>

struct events {
    FILE *file; /* NULL: nothing is written */
    char path[4200];
    int64_t step; /* of the event being built */
    uint8_t *summary;
    size_t bytes, capacity;
};

/* Creates a new file in DIR/runs. first: the first step that this run can write; a reader drops
 * what an earlier file of the folder says about it and later steps. */
int events_open(struct events *e, const char *dir, int64_t first);
/* Builds the event of one step; values that are not finite are left out. */
void events_begin(struct events *e, int64_t step);
int events_scalar(struct events *e, const char *name, double value);
int events_end(struct events *e);
int events_close(struct events *e);

/* CRC-32C (Castagnoli) as TFRecord masks it. */
uint32_t events_checksum(const void *data, size_t bytes);

#endif
