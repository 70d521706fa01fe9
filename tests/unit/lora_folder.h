/* SPDX-License-Identifier: Apache-2.0
 *
 * lora_folder.h: folders of adapters for tests, in the fixture's folder. Include it after the fixture.
 */
#ifndef NOJIT_TEST_LORA_FOLDER_H
#define NOJIT_TEST_LORA_FOLDER_H

#include <stdio.h>
#include <sys/stat.h>

static inline void make_folder(const char *name)
{
    assert_int_equal(mkdir(path_of(name), 0700), 0);
}

/* Write the adapter_config.json of adapters of rank 4, with further fields. */
static inline void write_config(const char *dir, const char *fields)
{
    char path[160];
    snprintf(path, sizeof path, "%s/adapter_config.json", path_of(dir));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8%s}", fields);
    assert_int_equal(fclose(f), 0);
}

#endif
