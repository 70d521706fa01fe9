/* SPDX-License-Identifier: Apache-2.0
 *
 * blobs.S: puts what pack and gen wrote into sections of the binary. Assembled by the C compiler
 * with -I of the folders that hold the three files, which no compiler reports as prerequisites:
 * list them in the make rule. With NJ_SHADERS, the two files of pack-shaders in their place.
 */
.macro embed name, file
    .section .nojit.\name, "a", %progbits
    .balign 64
    .globl nj_\name\()_start
    .hidden nj_\name\()_start
    .globl nj_\name\()_end
    .hidden nj_\name\()_end
nj_\name\()_start:
    .incbin "\file"
nj_\name\()_end:
.endm

#ifdef NJ_SHADERS
embed shader_index, "shader_index.bin"
embed shaders, "shaders.bin"
#else
embed index, "index.bin"
embed blobs, "blobs.bin"
embed keys, "keys.txt"
#endif

.section .note.GNU-stack, "", %progbits

/* No code, so nothing here hinders checks of branches and returns (NT_GNU_PROPERTY_TYPE_0: IBT and SHSTK, or BTI and PAC). */
#if defined __x86_64__
#define FEATURES 0xc0000002
#elif defined __aarch64__
#define FEATURES 0xc0000000
#endif
#ifdef FEATURES
.section .note.gnu.property, "a", %note
    .balign 8
    .4byte 4, 16, 5
    .asciz "GNU"
    .4byte FEATURES, 4, 3, 0
#endif
