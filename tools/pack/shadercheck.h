/* SPDX-License-Identifier: Apache-2.0
 *
 * shadercheck.h: what must hold for the SPIR-V of one key.
 */
#ifndef NOJIT_TOOLS_SHADERCHECK_H
#define NOJIT_TOOLS_SHADERCHECK_H

#include "image/spirv.h"
#include "pack/keyfile.h"

#define SHADER_ENTRY "main"
#define SHADER_ARCH "spirv" /* in the place of an arch, where problems are named */

/* The limits of every Vulkan device, or of all that have the features that the runtime asks for. */
enum { SHADER_SHARED_MAX = 32768, SHADER_PUSH_MAX = 128, SHADER_THREADS_MAX = 1024 };

/* Reports what the module of a key breaks. *shared_bytes is what its workgroups share. */
void shader_check(struct span module, const struct key *k, uint32_t *shared_bytes,
                  struct report *r);

#endif
