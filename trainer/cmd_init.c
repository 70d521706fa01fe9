/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_init.c: `nojit init`: a model folder with random weights.
 */
#include <string.h>

#include "error.h"
#include "folder.h"
#include "init.h"
#include "run.h"

static void list_presets(void)
{
    for (const struct preset *p = presets; p->name != NULL; p++)
        printf("%-18s %8.1fM parameters  %s\n", p->name,
               1e-6 * (double)config_parameters(&p->config), p->summary);
}

/* like: folder that the model is to resemble, "" for a preset. */
static int choose_shape(const struct settings *s, struct model_config *out, char *like)
{
    *like = '\0';
    if (s->like != NULL && s->preset != NULL)
        return fail(NJ_E_ARG,
                    "--preset %s and --like %s: the shape is that of one of them; leave "
                    "the other out",
                    s->preset, s->like);
    if (s->like != NULL) {
        const int err = folder_resolve(s->like, like, PATH_BYTES);
        return err ? err : config_read(like, out);
    }
    if (s->preset == NULL)
        return fail(NJ_E_ARG, "--preset or --like is needed; see `nojit init --help`");
    const struct preset *p = preset_find(s->preset);
    if (p == NULL)
        return fail(NJ_E_ARG, "--preset %s: unknown; `nojit init --preset list` lists them",
                    s->preset);
    *out = p->config;
    return 0;
}

int cmd_init(const struct settings *s)
{
    /* By enum dtype_choice; auto is what Hugging Face folders hold. */
    static const enum st_dtype stored[] = {ST_BF16, ST_F32, ST_BF16, ST_F16};
    struct model_config c;
    char like[PATH_BYTES];
    if (s->preset != NULL && strcmp(s->preset, "list") == 0) {
        list_presets();
        return 0;
    }
    int err = choose_shape(s, &c, like);
    if (!err)
        err = need(s->out, "out", "init");
    if (!err)
        err = init_model(s->out, &c, (uint64_t)s->seed, stored[s->dtype], s->shard_bytes,
                         like[0] != '\0' ? like : NULL);
    if (!err)
        printf("%s: %s, %.1fM random parameters\n", s->out, c.model_type,
               1e-6 * (double)config_parameters(&c));
    return err;
}
