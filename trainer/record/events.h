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
    int64_t step; /* step of the event that is being built */
    uint8_t *summary;
    size_t bytes, capacity;
};

/* Create a new file in DIR/runs. first: the first step that this run can write; a reader drops the values that an
 * earlier file of the folder has for it and later steps. */
int events_open(struct events *e, const char *dir, int64_t first);
/* Build the event of one step; values that are not finite are left out. */
void events_begin(struct events *e, int64_t step);
int events_scalar(struct events *e, const char *name, double value);
int events_end(struct events *e);
int events_close(struct events *e);

/* Return the CRC-32C (Castagnoli), masked as in TFRecord. */
uint32_t events_checksum(const void *data, size_t bytes);

#endif
