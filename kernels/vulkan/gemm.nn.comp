#version 460
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#define A_TRANSPOSED false
#define B_TRANSPOSED false
#define SIDE 4
#include "gemm.glsl"
