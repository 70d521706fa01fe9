// SPDX-License-Identifier: Apache-2.0
//
// grid.glsl: the index of a workgroup's block. Workgroups are dispatched in rows of as many as every driver allows, and
// the last row may have too many.
uvec3 nj_block_index;

bool nj_begin()
{
    const uint flat_index = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
    if (flat_index >= nj_grid[0] * nj_grid[1] * nj_grid[2])
        return false;
    nj_block_index.x = flat_index % nj_grid[0];
    nj_block_index.y = flat_index / nj_grid[0] % nj_grid[1];
    nj_block_index.z = flat_index / (nj_grid[0] * nj_grid[1]);
    return true;
}

int block_x()
{
    return int(nj_block_index.x);
}
int block_y()
{
    return int(nj_block_index.y);
}
int block_z()
{
    return int(nj_block_index.z);
}

// The number of a thread in the whole grid, and the number of threads, for ops on unordered elements.
int64_t flat_thread()
{
    return int64_t(nj_block_index.x) * NJ_THREADS + thread();
}
int64_t flat_threads()
{
    return int64_t(nj_grid[0]) * NJ_THREADS;
}
