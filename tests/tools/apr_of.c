/* SPDX-License-Identifier: Apache-2.0
 *
 * apr-of: writes the APR file of a Hugging Face folder, with matrices of a type, and the tokenizer of a GGUF file.
 *
 *   apr-of FOLDER FILE.apr [F32 | F16 | BF16 | Q4_K | Q6_K | Q4 | Q8 [FILE.gguf]]
 */
#include "unit/apr_fixture.h"
#include "unit/gguf_fixture.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int dtype;
    } types[] = {{"F32", APR_FILE_F32},   {"F16", APR_FILE_F16},   {"BF16", APR_FILE_BF16},
                 {"Q4_K", APR_FILE_Q4_K}, {"Q6_K", APR_FILE_Q6_K}, {"Q4", APR_FILE_Q4},
                 {"Q8", APR_FILE_Q8}};
    float divisors[CONFIG_HEAD_DIM_MOST / 2];
    struct model_config c;
    struct gguf g = {0};
    struct apr_form form = {.dtype = -1};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, argc > 3 ? argv[3] : "F32") == 0)
            form.dtype = types[i].dtype;
    if (argc < 3 || form.dtype < 0) {
        fprintf(stderr, "usage: apr-of FOLDER FILE.apr [TYPE [FILE.gguf]]\n");
        return 2;
    }
    if (config_read(argv[1], &c) != 0 || (argc > 4 && gguf_open(argv[4], &g) != 0)) {
        fprintf(stderr, "apr-of: %s\n", fail_text());
        return 1;
    }
    gguf_llama3_divisors(&c, divisors);
    form.divisors = c.arch.rope[0].rule == ROPE_LLAMA3 ? divisors : NULL;
    form.tokenizer = argc > 4 ? &g : NULL;
    const int rc = apr_write(argv[2], apr_of(argv[1], &form));
    gguf_close(&g);
    return rc != 0;
}
