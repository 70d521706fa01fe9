/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf-of: writes the GGUF file of a Hugging Face folder and its tokenizer.json, with matrices of a type or of a
 * mixture (q4_k_m); `fused` puts q, k and v into one tensor, `no_vocab` says that there is no tokenizer, which
 * llama.cpp asks for, and `split` makes FILE.gguf-00001-of-00003.gguf and so on of it.
 *
 *   gguf-of FOLDER FILE.gguf [TYPE [fused | no_vocab | split]]
 */
#include "unit/gguf_fixture.h"
#include "unit/gguf_parts.h"

int main(int argc, char **argv)
{
    static const struct gguf_change no_vocab[] = {
        {"tokenizer.ggml.model", CHANGE_TEXT, 0, "no_vocab", {0}},
        {NULL, CHANGE_DROP, 0, NULL, {0}},
    };
    const char *name = argc > 3 ? argv[3] : "F32", *how = argc > 4 ? argv[4] : "";
    const bool bare = strcmp(how, "no_vocab") == 0;
    const struct gguf_ftype *mixture = gguf_ftype_find(name);
    const int type = mixture ? (int)mixture->type : tensor_type_find(name);
    if (argc < 3 || type < 0) {
        fprintf(stderr, "usage: gguf-of FOLDER FILE.gguf [TYPE [fused | no_vocab | split]]\n");
        return 2;
    }
    struct tokenizer t;
    int rc = tokenizer_open(argv[1], &t);
    const struct gguf_form form = {.dtype = (enum nj_tensor_type)type,
                                   .ftype = mixture,
                                   .fused = strcmp(how, "fused") == 0,
                                   .vocab_size = bare,
                                   .change = bare ? no_vocab : NULL,
                                   .tokenizer = t.bpe && !bare ? &t : NULL};
    if (rc == 0)
        rc = gguf_of(argv[1], argv[2], &form);
    tokenizer_close(&t);
    if (rc != 0)
        fprintf(stderr, "gguf-of: %s\n", fail_text());
    else if (strcmp(how, "split") == 0)
        gguf_split(argv[2], argv[2], 3);
    return rc != 0;
}
