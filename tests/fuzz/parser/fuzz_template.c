/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_template.c: templates, run on a conversation.
 */
#include "fuzz.h"
#include "io/error.h"
#include "template/template.h"

static const char variables[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
    "\"\\u00e9 <b>\"},"
    "{\"role\":\"assistant\",\"content\":\"<think>a</"
    "think>b\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
    "\"arguments\":{\"x\":[1,2.5,null,true]}}}]}],\"tools\":null,\"add_generation_prompt\":true,"
    "\"n\":7,\"x\":2.5,\"text\":\" a\\nb \",\"list\":[3,1,2]}";

static void check_text(const struct template_text *text)
{
    for (size_t i = 0; i < text->spans; i++) {
        FUZZ_CHECK(text->span[i].begin <= text->span[i].end);
        FUZZ_CHECK(text->span[i].end <= text->bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static json_t *values;
    struct template_text text = {0};
    struct template *t;
    if (!values)
        values = json_loads(variables, 0, NULL);
    FUZZ_CHECK(values);
    int rc = template_parse("template", (const char *)data, bytes, &t);
    FUZZ_CHECK((rc == 0) == (t != NULL));
    if (rc == 0)
        rc = template_render(t, values, &text);
    FUZZ_CHECK(rc == 0 || rc == NJ_E_FORMAT || rc == NJ_E_NOMEM);
    fuzz_verdict(rc == 0, fail_text());
    check_text(&text);
    template_text_free(&text);
    template_free(t);
    return 0;
}
