// SPDX-License-Identifier: Apache-2.0
//
// begin.cuh: what each kernel begins with.
#ifndef NOJIT_BEGIN_CUH
#define NOJIT_BEGIN_CUH

// From sm_90 on a kernel may be launched before the one ahead of it in the stream has ended (programmatic dependent
// launch), so that its blocks are there when they can begin. It waits here until that one has ended and its writes are
// seen, before it touches memory; then the next one may come.
static __device__ __forceinline__ void nj_kernel_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A kernel that has something to ask for first, which the kernel ahead of it does not write, redefines this as nothing
// and calls nj_kernel_begin() itself. It asks by load_once() (ptx.cuh).
#define NJ_BEGIN() nj_kernel_begin()

#endif
