/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.h: how heads are rotated by their positions.
 */
#ifndef NOJIT_TRAINER_ROPE_H
#define NOJIT_TRAINER_ROPE_H

#include <stdbool.h>

/* Rules that change the frequencies of a table. */
enum rope_rule {
    ROPE_DEFAULT,
    ROPE_NONE,   /* nothing rotates */
    ROPE_LINEAR, /* positions are divided by `factor` */
    ROPE_LLAMA3, /* low frequencies are divided by `factor` */
    ROPE_YARN,
    ROPE_LONGROPE, /* each frequency has a divisor of its own */
    ROPE_NTK,      /* theta is multiplied by alpha^(R / (R - 2)) */
    ROPE_RULES
};

enum { ROPE_PAIRS_MOST = 128 };

struct rope_scaling {
    float factor;
    float low_freq_factor, high_freq_factor; /* ROPE_LLAMA3 */
    int original_positions;
};

/* All blocks that a table serves have heads of one size. */
struct rope {
    double theta;
    enum rope_rule rule;
    int rotary;      /* number R of elements of a head that rotate, its first ones; 0: all */
    bool neighbors;  /* element 2i rotates with 2i + 1, instead of i with i + R/2 */
    float amplitude; /* factor of the elements that rotate; 0 counts as 1 */
    struct rope_scaling scaling;
    float beta_fast, beta_slow; /* ROPE_YARN: turns within the original positions */
    bool truncate;              /* ROPE_YARN: the bounds of the blend are rounded to whole pairs */
    float alpha;                /* ROPE_NTK */
    /* ROPE_YARN: queries at n times the original positions have the factor 1 + query_beta log(1 + n), n rounded down,
     * which is not computed: config_positions() */
    float query_beta;
    /* ROPE_LONGROPE: divisors for sequences within the original positions, and for longer ones */
    float short_factor[ROPE_PAIRS_MOST], long_factor[ROPE_PAIRS_MOST];
};

/* Return the number of elements that rotate of a head of that size: 0, or an even number. */
int rope_rotary(const struct rope *r, int head_dim);
/* Return frequency i < R/2 in radians per position, without scaling, and the factor that the rule multiplies it by in
 * sequences of at most that many positions. */
double rope_frequency(const struct rope *r, int head_dim, int i);
double rope_slowing(const struct rope *r, int head_dim, int i, int positions);
/* Return the factor of the elements that rotate, and the one that the rule has where none is given. */
float rope_amplitude(const struct rope *r);
float rope_natural_amplitude(const struct rope *r);

#endif
