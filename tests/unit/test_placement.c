/* SPDX-License-Identifier: Apache-2.0
 *
 * test_placement.c: buffers share memory where their lifetimes do not meet, and nowhere else.
 */
#include "state/placement.h"
#include "unit.h"

#include <stdlib.h>

struct block {
    size_t bytes, arrays; /* `arrays` arrays of `bytes` bytes each */
    char *at;             /* address of the first array */
    size_t from, to;
};

static void carve_block(void *user, struct carve *c)
{
    struct block *b = user;
    b->from = c->used;
    for (size_t i = 0; i < b->arrays; i++) {
        char *at = carve_take(c, b->bytes);
        b->at = i == 0 ? at : b->at;
    }
    b->to = c->used;
}

static char *add(struct placement *p, size_t from, unsigned phases, size_t bytes)
{
    struct block b = {.bytes = bytes, .arrays = 1};
    placement_add(p, from, phases, carve_block, &b);
    return b.at;
}

static bool lend(struct placement *p, size_t from, size_t to, unsigned phases, size_t bytes,
                 char **at)
{
    struct block b = {.bytes = bytes, .arrays = 1};
    const bool lent = placement_lend(p, from, to, phases, carve_block, &b);
    *at = b.at;
    return lent;
}

static void lifetimes_that_do_not_meet_share_memory(void **state)
{
    (void)state;
    static char memory[4096];
    struct placement p = {.arena = {.base = memory}};
    assert_ptr_equal(add(&p, 0, PHASE_FORWARD | PHASE_LOSS, 512), memory);
    assert_ptr_equal(add(&p, 0, PHASE_FORWARD, 256), memory + 512);
    assert_ptr_equal(add(&p, 0, PHASE_TEACHER, 1024), memory);
    assert_ptr_equal(add(&p, 0, PHASE_LOSS, 256), memory + 512);
    assert_int_equal(p.arena.used, 1024);
    assert_ptr_equal(add(&p, 0, PHASES, 256), memory + 1024);
    assert_int_equal(p.arena.used, 1280);
}

/* Sizes are exact to the byte: a buffer may end where the memory does, and a larger one does not fit. */
static void lent_memory_ends_where_it_ends(void **state)
{
    (void)state;
    static char memory[4096];
    struct placement p = {.arena = {.base = memory}};
    char *at;
    (void)add(&p, 0, PHASE_BACKWARD, 1024);
    (void)add(&p, 1024, PHASE_BACKWARD, 1024);
    assert_false(lend(&p, 0, 1024, PHASE_BACKWARD, 256, &at));
    assert_false(lend(&p, 0, 1024, PHASE_LOSS, 1025, &at));
    assert_true(lend(&p, 0, 1024, PHASE_LOSS, 700, &at));
    assert_ptr_equal(at, memory);
    assert_false(lend(&p, 0, 1024, PHASE_LOSS, 257, &at));
    assert_true(lend(&p, 0, 1024, PHASE_LOSS, 256, &at));
    assert_ptr_equal(at, memory + 768);
    assert_int_equal(p.arena.used, 2048);
}

/* A part of a buffer that is in use in fewer phases lends memory; the rest of the buffer does not. */
static void a_part_of_a_buffer_is_lent(void **state)
{
    (void)state;
    static char memory[4096];
    struct placement p = {.arena = {.base = memory}};
    char *at;
    (void)add(&p, 0, PHASES, 2048);
    placement_narrow(&p, 512, 1536, PHASE_BACKWARD);
    assert_false(lend(&p, 0, 2048, PHASE_LOSS, 1025, &at));
    assert_false(lend(&p, 0, 2048, PHASE_LOSS | PHASE_BACKWARD, 256, &at));
    assert_true(lend(&p, 0, 2048, PHASE_LOSS, 1024, &at));
    assert_ptr_equal(at, memory + 512);
}

/* In an arena in cells, a buffer begins after the unused rest of a cell, and does not enlarge the arena. */
static void cells_lend_what_is_allocated(void **state)
{
    (void)state;
    static char memory[4][1024];
    struct carve_cells cells = {.limit = 1024};
    struct placement p = {.arena = {.cells = &cells}};
    char *at;
    for (int i = 0; i < 4; i++)
        carve_place(&cells, i, memory[i]);
    (void)add(&p, 0, PHASES, 768);
    const size_t from = p.arena.used;
    assert_ptr_equal(add(&p, from, PHASE_LOSS, 512), memory[1]);
    const size_t to = p.arena.used, bytes = carve_bytes(&p.arena);
    assert_false(lend(&p, from, to, PHASE_FORWARD, 513, &at));
    assert_true(lend(&p, from, to, PHASE_FORWARD, 512, &at));
    assert_ptr_equal(at, memory[1]);
    assert_int_equal(carve_bytes(&p.arena), bytes);
    /* An array larger than a cell is one allocation, all of which is lent. */
    const size_t large = p.arena.used;
    (void)add(&p, large, PHASE_LOSS, 1536);
    assert_true(lend(&p, large, p.arena.used, PHASE_FORWARD, 1536, &at));
    assert_ptr_equal(at, memory[2]);
}

/* Any two buffers that are in use in the same phase are separate, in a contiguous arena and in one in cells. */
static void buffers_in_use_at_once_never_overlap(void **state)
{
    (void)state;
    enum { BLOCKS = 20 };
    for (unsigned seed = 1; seed <= 500; seed++) {
        struct carve_cells cells = {.limit = 8192};
        struct placement p = {.arena = {.cells = seed % 2 ? &cells : NULL}};
        struct block b[BLOCKS] = {{0}};
        unsigned phases[BLOCKS];
        srand(seed);
        for (int i = 0; i < BLOCKS; i++) {
            b[i].bytes = 1 + (size_t)(rand() % 5000);
            b[i].arrays = 1 + (size_t)(rand() % 3);
            phases[i] = 1 + (unsigned)(rand() % PHASES);
            placement_add(&p, 0, phases[i], carve_block, &b[i]);
        }
        assert_int_not_equal(p.arena.used, SIZE_MAX);
        for (int i = 0; i < BLOCKS; i++)
            for (int k = 0; k < i; k++)
                if ((phases[i] & phases[k]) && b[i].from < b[k].to && b[k].from < b[i].to)
                    fail_msg("seed %u: buffers %d and %d overlap", seed, k, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lifetimes_that_do_not_meet_share_memory),
        cmocka_unit_test(lent_memory_ends_where_it_ends),
        cmocka_unit_test(a_part_of_a_buffer_is_lent),
        cmocka_unit_test(cells_lend_what_is_allocated),
        cmocka_unit_test(buffers_in_use_at_once_never_overlap),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
