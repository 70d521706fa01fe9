/* SPDX-License-Identifier: Apache-2.0
 *
 * blobs.S: puts what pack and gen wrote into sections of the binary. Assembled by the C compiler
 * with -I of the folders that hold the three files, which no compiler reports as prerequisites:
 * list them in the make rule.
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

embed index, "index.bin"
embed blobs, "blobs.bin"
embed keys, "keys.txt"

.section .note.GNU-stack, "", %progbits
