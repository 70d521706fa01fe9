/* SPDX-License-Identifier: Apache-2.0
 *
 * loading.h: the weights of a model on their way to the device. Several threads read, hash and convert, each a chunk
 * of a file at a time, while what they have converted is copied: a lane is a thread with two slots of the pinned
 * staging buffer, of which it fills one while the other is copied. What reaches the device does not depend on their
 * number.
 */
#ifndef NOJIT_TRAINER_LOADING_H
#define NOJIT_TRAINER_LOADING_H

#include "formats/tensor_hash.h"
#include "state/engine_struct.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOADING_WEIGHTS "loading weights"

struct load_way;

/* A tensor and where it goes: `units` rows or elements. */
struct load_item {
    const struct load_way *way; /* NULL: it is hashed only */
    const struct tensor *tensor;
    int64_t units;
    size_t unit_bytes; /* of each in the staging buffer */
    char *to;          /* on the device */
    /* What its way needs. */
    const char *path;  /* of the model, for sentences */
    atomic_flag *told; /* that the model has a weight which is not finite */
    enum nj_dtype T;
    enum nj_tensor_type type;
    float *scale;
};

struct load_way {
    const char *doing; /* for sentences */
    bool through;      /* send() uses mem.staging */
    /* In several threads at once: units into the staging buffer. Returns 0 or a code for refuse(). */
    int (*fill)(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                char *staged);
    /* In one thread at a time: enqueues what brings them to their place. */
    void (*send)(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                 int64_t count, const char *staged);
    /* Says why, where fill() can fail. */
    int (*refuse)(const struct engine *e, const char *path, const struct load_item *i, int rc);
};

enum { LANES_MOST = 16, LANE_SLOTS = 2 };

struct load_lane {
    struct load_slot {
        char *data;
        nj_event *copied;
        bool used;
    } slot[LANE_SLOTS];
    int next;
};

struct loading {
    struct engine *e;
    const char *path;
    struct tensor_hashes hashes; /* w NULL: nothing is hashed */
    struct load_lane lane[LANES_MOST];
    int lanes;
    size_t slot_bytes;
    /* Of what comes next, what went wrong, and all that is enqueued. libgomp's own locks are none that a thread
     * sanitizer sees. */
    pthread_mutex_t mutex;
    bool (*next)(void *user, struct load_item *out);
    void *user;
    struct load_item item;
    size_t part, parts; /* of the item */
    bool hashing;       /* it, for the first time */
    int64_t number;     /* of all jobs */
    struct load_failure {
        int rc;
        int64_t number;
        bool refused; /* by fill() */
        struct load_item item;
    } failure;
};

/* path: for sentences. w: hashed as they are read, or NULL. columns: of the widest row. loading_end() comes after it,
 * whether it fails or not. */
int loading_begin(struct loading *l, struct engine *e, const char *path, const struct tensors *w,
                  int64_t columns);
/* What next() names, until it returns false; it is called by one thread at a time. All is enqueued when this returns.
 * A tensor that is refused is the first of those that would be. */
int loading_run(struct loading *l, bool (*next)(void *user, struct load_item *out), void *user);
/* Hashes what has not been, and waits for the device. hash: NULL where nothing is hashed. rc: what failed before. */
int loading_end(struct loading *l, int rc, uint64_t *hash);

/* For fill(): elements of a tensor as T. */
void loading_convert(const struct engine *e, const struct tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T, char *to);
/* Whether elements of T are all finite. */
bool loading_finite(const struct engine *e, const char *data, int64_t count, enum nj_dtype T);

#endif
