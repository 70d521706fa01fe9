/* SPDX-License-Identifier: Apache-2.0
 *
 * library_known.c: what others report of versions of cuBLASLt, as far as it touches GEMMs that are asked for here: not,
 * for one, that 13.0.2 lacks FP8 GEMMs that do not transpose the first operand on sm_120, or that scales of NVFP4 are
 * ignored by 13.2. Nothing here refuses a library: what an algorithm computes is looked at anyway
 * (cuda_gemm_check.c), and one that is refused makes room for the next.
 */
#include <stdio.h>

#include "backend.h"
#include "library.h"

static const struct {
    size_t from, below; /* range of versions, 130501 = 13.5.1 */
    int sm_from, sm_to; /* range of SMs, both included */
    const char *reported, *advice;
} known[] = {
    {130400, 130500, 120, 120,
     "FP8 GEMMs refused where a number of rows is no power of two (kekzl/imp issue 446)",
     "such GEMMs run in 16 bits, and the run says which"},
    {130501, 130502, 120, 121,
     "errors of memory on GeForce RTX 50, not with 13.4.0 (conda-forge/pytorch-cpu-feedstock issue "
     "521)",
     "a run may end with an error of the GPU; take another version: pip install "
     "'nvidia-cublas==13.4.0.*', and name its folder by NOJIT_CUBLASLT"},
    {130600, 130700, 0, 999,
     "algorithm 68 fails where an operand has 2^31 float32 elements (NVIDIA/raft issue 3098)",
     "an algorithm that fails is left out"},
};

void nj_library_reports(size_t version, int sm, char *out, size_t bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (version >= known[i].from && version < known[i].below && sm >= known[i].sm_from &&
            sm <= known[i].sm_to && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used,
                                     "%scuBLASLt %zu.%zu.%zu on sm_%d: reported: %s; %s",
                                     used ? "; " : "", version / 10000, version % 10000 / 100,
                                     version % 100, sm, known[i].reported, known[i].advice);
}
