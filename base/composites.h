/* SPDX-License-Identifier: Apache-2.0
 *
 * composites.h: the table of files of models of text and images.
 */
#ifndef NOJIT_COMPOSITES_H
#define NOJIT_COMPOSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Files of text and images, the family of their text_config if that does not name one, and whether the head is tied if
 * the file does not say. */
static const struct composite {
    const char *model_type, *text;
    bool tied;
} composites[] = {
    {"gemma3", "gemma3_text", true},
    {"mistral3", "mistral", true},
    {"muse_glimmer", "muse_glimmer_text", false},
    {"qwen3_5", "qwen3_5_text", false},
    {"qwen3_5_moe", "qwen3_5_moe_text", false},
};

static inline const struct composite *composite_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (strcmp(composites[i].model_type, model_type) == 0)
            return &composites[i];
    return NULL;
}

#endif
