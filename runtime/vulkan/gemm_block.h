/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_block.h: what a launch of a GEMM gives to its shader, which no contract says: the block of push
 * constants, threads and keys. The launcher fills the block, and blobcheck compares the shaders of a
 * binary with it.
 */
#ifndef NOJIT_VULKAN_GEMM_BLOCK_H
#define NOJIT_VULKAN_GEMM_BLOCK_H

#include <stddef.h>
#include <stdint.h>

struct nj_vk_gemm_block {
    void *c;
    const void *a, *b;
    int64_t lda, ldb, ldc;
    int32_t M, N, K;
    float scale, beta;
    uint32_t grid[3];
};

/* X(member) for each member, in their order. */
#define NJ_VK_GEMM_MEMBERS(X)                                                                      \
    X(c) X(a) X(b) X(lda) X(ldb) X(ldc) X(M) X(N) X(K) X(scale) X(beta) X(grid)

enum { NJ_VK_GEMM_BYTES = sizeof(struct nj_vk_gemm_block), NJ_VK_GEMM_THREADS = 256 };

/* Words of a key such as gemm.nt.lp_f32.large: kind, types of operands and result, tile size. */
#define NJ_VK_GEMM_KINDS                                                                           \
    {                                                                                              \
        "nt", "nn", "tn"                                                                           \
    }
#define NJ_VK_GEMM_TYPES                                                                           \
    {                                                                                              \
        "f32", "lp", "lp_f32"                                                                      \
    }
#define NJ_VK_GEMM_SIZES                                                                           \
    {                                                                                              \
        "", ".large"                                                                               \
    }

#endif
