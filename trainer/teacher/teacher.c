/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.c: see teacher.h.
 */
#include "teacher/teacher.h"

bool teacher_has(const struct teacher *t, enum teacher_buffer which)
{
    return t->ops && t->ops->buffer[which].carve &&
           (!t->ops->buffer[which].wanted || t->ops->buffer[which].wanted(t));
}

void teacher_carve(struct teacher *t, enum teacher_buffer which, struct carve *c, size_t end)
{
    if (teacher_has(t, which))
        t->ops->buffer[which].carve(t, c, end);
}

int teacher_choose(struct teacher *t)
{
    return t->ops ? t->ops->choose(t) : 0;
}

void teacher_connect(struct teacher *t, nj_comm *comm)
{
    if (t->ops)
        t->ops->connect(t, comm);
}

int teacher_loaded(const struct teacher *t, uint64_t *hash)
{
    return t->ops && t->ops->loaded ? t->ops->loaded(t, hash) : 0;
}

void teacher_close(struct teacher *t)
{
    if (t->ops)
        t->ops->close(t);
}

const struct net *teacher_net(const struct teacher *t)
{
    return t->ops ? &t->net : NULL;
}

const struct model_config *teacher_model_config(const struct teacher *t)
{
    return t->ops ? &t->net.c : NULL;
}

int teacher_batches(const struct teacher *t)
{
    return t->schedule.batches > 1 ? t->schedule.batches : 1;
}

void teacher_send(struct work *r, struct teacher *t, const struct rows *staged, int at, int count)
{
    if (t->ops)
        t->ops->send(r, t, staged, at, count);
}

void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows, int count)
{
    if (t->ops && t->ops->forward)
        t->ops->forward(r, t, rows, count);
}

void teacher_take(struct work *r, struct teacher *t, int at)
{
    if (t->ops && t->ops->take)
        t->ops->take(r, t, at);
}

void teacher_keep(struct work *r, struct teacher *t, const struct rows *rows)
{
    if (t->ops && t->ops->keep)
        t->ops->keep(r, t, rows);
}

void *teacher_logits(struct work *r, struct teacher *t, int first)
{
    return t->ops ? t->ops->logits(r, t, first) : NULL;
}

void teacher_attend(struct work *r, struct teacher *t)
{
    if (t->ops && t->ops->attend)
        t->ops->attend(r, t);
}
