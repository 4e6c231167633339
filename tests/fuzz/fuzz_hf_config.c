/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "train/spec/hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A model of few tensors: its names and sizes are all there. */
static void check(const struct hf_model *m)
{
    struct hf_map map;
    if (m->spec.layers > 8 || m->spec.experts > 16 || m->spec.heads > 256)
        return;
    for (int fused = 0; fused < 2; fused++) {
        hf_map_build(&map, m, (enum hf_experts)fused);
        for (size_t i = 0; i < map.links; i++) {
            const struct hf_link *l = &map.link[i];
            const struct hf_global *g = &map.global[l->global];
            BUG_ON(l->tensor >= map.tensors || l->global >= map.globals, "link");
            for (int d = 0; d < 2; d++)
                BUG_ON(l->at[d] < 0 || l->count[d] < 1 || l->at[d] + l->count[d] > g->size[d], "%s",
                       g->name);
        }
        hf_map_finish(&map);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct hf_model m;
    struct err e;
    int code = hf_config_parse("input", (const char *)p, n, NULL, &m, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (!code)
        check(&m);
    return 0;
}
