/* SPDX-License-Identifier: Apache-2.0
 *
 * grow.h: arrays from malloc() that grow ahead of what is asked for.
 */
#ifndef NOJIT_GROW_H
#define NOJIT_GROW_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Make room for so many elements in the array whose pointer is at `array`, and for half as many more if it has to be
 * moved. Return false if there is no memory; pointer and capacity are as before then. */
static inline bool grow_array(void *array, size_t *capacity, size_t elements, size_t element_bytes)
{
    void *old, *grown = NULL;
    if (elements <= *capacity)
        return true;
    const size_t room = size_add(elements, elements / 2 + 16);
    const size_t bytes = size_mul(room, element_bytes);
    memcpy(&old, array, sizeof old);
    if (bytes < SIZE_MAX)
        grown = realloc(old, bytes);
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = room;
    return true;
}

/* The same for a pointer and its capacity, a size_t, by their names. */
#define GROW(array, capacity, elements) grow_array(&(array), &(capacity), elements, sizeof *(array))

#endif
