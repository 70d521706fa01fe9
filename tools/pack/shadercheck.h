/* SPDX-License-Identifier: Apache-2.0
 *
 * shadercheck.h: the requirements on the SPIR-V of one key.
 */
#ifndef NOJIT_TOOLS_SHADERCHECK_H
#define NOJIT_TOOLS_SHADERCHECK_H

#include "image/spirv.h"
#include "pack/keyfile.h"

#define SHADER_ENTRY "main"
#define SHADER_ARCH "spirv" /* name in reports, in place of an arch */

/* Limits that every Vulkan device has, or every one with the features that the runtime requires. */
enum { SHADER_SHARED_MAX = 32768, SHADER_PUSH_MAX = 128, SHADER_THREADS_MAX = 1024 };

/* Report the requirements that the module of a key breaks. *shared_bytes is the shared memory of a workgroup. */
void shader_check(struct span module, const struct key *k, uint32_t *shared_bytes,
                  struct report *r);

#endif
