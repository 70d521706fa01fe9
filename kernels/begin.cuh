// SPDX-License-Identifier: Apache-2.0
//
// begin.cuh: the first statement of every kernel.
#ifndef NOJIT_BEGIN_CUH
#define NOJIT_BEGIN_CUH

// Wait for the previous kernel in the stream, then let the next one start. From sm_90 on a kernel may be launched
// before the previous one has ended (programmatic dependent launch), so that its blocks are resident when they can
// begin. It must not touch memory before this wait, which makes the previous kernel's writes visible.
static __device__ __forceinline__ void nj_kernel_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A kernel that first loads data which the previous kernel does not write redefines this as nothing, loads it with
// load_once() (ptx.cuh), and calls nj_kernel_begin() itself.
#define NJ_BEGIN() nj_kernel_begin()

#endif
