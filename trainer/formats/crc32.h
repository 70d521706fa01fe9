/* SPDX-License-Identifier: Apache-2.0
 *
 * crc32.h: the checksum of zlib, PNG and APR files.
 */
#ifndef NOJIT_TRAINER_CRC32_H
#define NOJIT_TRAINER_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Return the CRC-32 of the data, computed on all cores. */
uint32_t crc32_of(const void *data, size_t bytes);

#endif
