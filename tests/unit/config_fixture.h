/* SPDX-License-Identifier: Apache-2.0
 *
 * config_fixture.h: configurations of small models as JSON, and their reading.
 */
#ifndef NOJIT_TESTS_CONFIG_FIXTURE_H
#define NOJIT_TESTS_CONFIG_FIXTURE_H

#include "base/families.h"
#include "model/config.h"
#include "plain_layers.h"
#include "unit.h"

/* The fields that a reader must handle, without braces, so that cases can add to them. */
#define SIZES_WITHOUT_LAYERS                                                                       \
    "\"hidden_size\":128,\"intermediate_size\":256,\"num_attention_heads\":2,\"vocab_size\":264"
#define SIZES SIZES_WITHOUT_LAYERS ",\"num_hidden_layers\":2"
#define OF(type) "\"model_type\":\"" type "\"," SIZES ",\"num_key_value_heads\":1"
/* A model of eight layers, where the patterns of families repeat. */
#define EIGHT(type)                                                                                \
    "\"model_type\":\"" type "\"," SIZES_WITHOUT_LAYERS                                            \
    ",\"num_hidden_layers\":8,\"num_key_value_heads\":1"

static inline int read_json(const char *json, struct model_config *c)
{
    write_text(at("config.json"), json);
    return config_read(scratch, c);
}

/* Fields of a config.json, and the refusal of them. */
struct refused_fields {
    const char *json;
    int code;
    const char *part;
};

static inline void check_fields_refused(const struct refused_fields *rows, size_t count)
{
    struct model_config c;
    char json[1024];
    for (size_t i = 0; i < count; i++) {
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_refused(read_json(json, &c), rows[i].code, rows[i].part, json);
    }
}

/* Write the model, and check that what is read back is the same. */
static inline void check_written(const struct model_config *c, const char *where)
{
    struct model_config back;
    check_ok(config_write(scratch, c, "bfloat16"), where);
    check_ok(config_read(scratch, &back), where);
    if (memcmp(&back, c, sizeof back) != 0)
        fail_msg("%s: the written file is read differently", where);
}

#endif
