// SPDX-License-Identifier: Apache-2.0
//
// experts.cuh: the tiles of a product in which each expert has a stretch of the rows. Blocks are persistent: block b
// computes tiles b, b + grid, ... in an order that the numbers of rows alone decide.
#ifndef NOJIT_EXPERTS_CUH
#define NOJIT_EXPERTS_CUH

#include "ptx.cuh"

struct expert_tile {
    int expert;
    int place; // the first
    int rows;  // places from there on that the expert has
    int column;
};

template <int ROWS, int COLUMNS> struct expert_tiles {
    const int *first;
    int experts, across; // tiles side by side
    int expert = 0;
    int start;     // its first place
    int begin = 0; // tiles of the experts before it

    __device__ __forceinline__ expert_tiles(const int *starts, int E, int columns)
        : first(starts), experts(E), across((columns + COLUMNS - 1) / COLUMNS), start(starts[0])
    {
    }
    // Find the i-th tile, which must be behind the one that was found last; return false if there are not so many.
    // Tiles that are computed at the same time share rows and columns in the L2 cache.
    __device__ __forceinline__ bool at(int i, expert_tile &t)
    {
        constexpr int GROUP = 16;
        for (; expert < experts; expert++) {
            const int rows = first[expert + 1] - start, down = (rows + ROWS - 1) / ROWS;
            if (i - begin >= down * across) {
                begin += down * across;
                start += rows;
                continue;
            }
            i -= begin;
            const int group = i / (GROUP * across) * GROUP, size = min(GROUP, down - group);
            i -= group * across;
            const int row = (group + i % size) * ROWS;
            t.expert = expert;
            t.place = start + row;
            t.rows = rows - row;
            t.column = i / size * COLUMNS;
            return true;
        }
        return false;
    }
};

#endif
