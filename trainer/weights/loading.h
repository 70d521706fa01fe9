/* SPDX-License-Identifier: Apache-2.0
 *
 * loading.h: loads the weights of a model to the device. Several threads read, hash and convert, each a chunk of a
 * file at a time, while converted chunks are copied: a lane is a thread with two slots of the pinned staging buffer,
 * and fills one while the other is copied. The result on the device does not depend on the number of threads.
 */
#ifndef NOJIT_TRAINER_LOADING_H
#define NOJIT_TRAINER_LOADING_H

#include "formats/tensor_hash.h"
#include "state/engine_struct.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOADING_WEIGHTS "loading weights"

struct load_way;

/* A tensor and its destination: `units` rows or elements. */
struct load_item {
    const struct load_way *way; /* way to load it; NULL: it is only hashed */
    const struct tensor *tensor;
    int64_t units;
    size_t unit_bytes; /* bytes of a unit in the staging buffer */
    char *to;          /* destination on the device */
    /* Fields for its way. */
    const char *path; /* path of the model, for messages */
    /* Set once the user is told that the model has a weight which is not finite. */
    atomic_flag *told;
    enum nj_dtype T;
    enum nj_tensor_type type;
    float *scale;
};

struct load_way {
    const char *doing; /* phrase for messages */
    bool through;      /* send() uses mem.staging */
    /* Convert units into the staging buffer, in several threads at once. Return 0 or a code for refuse(). */
    int (*fill)(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                char *staged);
    /* Enqueue the work that brings them to their destination, in one thread at a time. */
    void (*send)(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                 int64_t count, const char *staged);
    /* Report why fill() failed. */
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
    /* Lock of the next item, of failures and of all enqueuing. The thread sanitizer does not see libgomp's own
     * locks. */
    pthread_mutex_t mutex;
    bool (*next)(void *user, struct load_item *out);
    void *user;
    struct load_item item;
    size_t part, parts; /* part of the item, and number of parts */
    bool hashing;       /* the item is hashed, for the first time */
    int64_t number;     /* number of the job, among all */
    struct load_failure {
        int rc;
        int64_t number;
        bool refused; /* refused by fill() */
        struct load_item item;
    } failure;
};

/* Begin to load. path: for messages. w: tensors to hash as they are read, or NULL. columns: of the widest row. Call
 * loading_end() afterwards, even if it fails. */
int loading_begin(struct loading *l, struct engine *e, const char *path, const struct tensors *w,
                  int64_t columns);
/* Load the items that next() names, until it returns false; it is called by one thread at a time. All work is
 * enqueued on return. If tensors are refused, the first of them is reported. */
int loading_run(struct loading *l, bool (*next)(void *user, struct load_item *out), void *user);
/* Hash the tensors that have not been hashed, and wait for the device. hash: NULL if nothing is hashed. rc: an
 * earlier failure. */
int loading_end(struct loading *l, int rc, uint64_t *hash);

/* Convert elements of a tensor to T, for fill(). */
void loading_convert(const struct engine *e, const struct tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T, char *to);
/* Return whether elements of T are all finite. */
bool loading_finite(const struct engine *e, const char *data, int64_t count, enum nj_dtype T);

#endif
