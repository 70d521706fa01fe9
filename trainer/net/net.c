/* SPDX-License-Identifier: Apache-2.0
 *
 * net.c: see net.h.
 */
#include "net/net.h"

size_t dtype_bytes(enum nj_dtype T)
{
    return T == NJ_F32 ? 4 : 2;
}

void *net_weight(const struct net *n, int64_t first)
{
    return first < 0 ? NULL : n->w + (size_t)first * dtype_bytes(n->T);
}

int net_qkv(const struct model_config *c)
{
    return (c->heads + 2 * c->kv_heads) * c->head_dim;
}

struct linear product_shape(const struct net *n, int rows, enum product which)
{
    const struct model_config *c = &n->c;
    int C = c->hidden_size, I = c->intermediate_size, HD = c->heads * c->head_dim;
    const struct {
        int out, in;
    } size[PRODUCTS] = {
        [PRODUCT_QKV] = {net_qkv(c), C},
        [PRODUCT_O] = {C, HD},
        [PRODUCT_GATE_UP] = {2 * I, C},
        [PRODUCT_DOWN] = {C, I},
    };
    return (struct linear){n->T, rows, size[which].out, size[which].in, .ldy = size[which].out};
}

const char *product_name(enum product which)
{
    static const char *const name[PRODUCTS] = {
        [PRODUCT_QKV] = "qkv",
        [PRODUCT_O] = "o",
        [PRODUCT_GATE_UP] = "gate_up",
        [PRODUCT_DOWN] = "down",
    };
    return name[which];
}

bool *net_f8_refused(const struct net *n, enum product which)
{
    return n->f8_refused ? &n->f8_refused->product[which] : NULL;
}

int product_widest_input(const struct model_config *c)
{
    int widest = c->heads * c->head_dim;
    widest = widest > c->hidden_size ? widest : c->hidden_size;
    return widest > c->intermediate_size ? widest : c->intermediate_size;
}

int net_head(const struct net *n)
{
    return n->c.layers * PRODUCTS;
}

int net_matrix(const struct net *n, const struct tensor_spec *s)
{
    static const struct {
        bool multiplies;
        enum product product;
    } of_role[ROLE_COUNT] = {
        [ROLE_Q_WEIGHT] = {true, PRODUCT_QKV},        [ROLE_K_WEIGHT] = {true, PRODUCT_QKV},
        [ROLE_V_WEIGHT] = {true, PRODUCT_QKV},        [ROLE_O_WEIGHT] = {true, PRODUCT_O},
        [ROLE_GATE_WEIGHT] = {true, PRODUCT_GATE_UP}, [ROLE_UP_WEIGHT] = {true, PRODUCT_GATE_UP},
        [ROLE_DOWN_WEIGHT] = {true, PRODUCT_DOWN},
    };
    if (s->role == ROLE_HEAD || (s->role == ROLE_EMBED && n->c.tied))
        return net_head(n);
    if (!of_role[s->role].multiplies)
        return -1;
    return s->layer * PRODUCTS + (int)of_role[s->role].product;
}
