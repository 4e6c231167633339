/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "convert/hf/hf_adapter.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct hf_adapter_config c;
    struct err e;
    int code = hf_adapter_parse(&c, "input", (const char *)p, n, NULL, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (code)
        return 0;
    BUG_ON(c.r < 1 || !isfinite(c.alpha), "r %lld", (long long)c.r);
    for (size_t i = 0; i < c.nranks; i++)
        BUG_ON(!c.rank_of[i].pattern || !isfinite(c.rank_of[i].value), "rank %zu", i);
    for (size_t i = 0; i < c.nalphas; i++)
        BUG_ON(!c.alpha_of[i].pattern || !isfinite(c.alpha_of[i].value), "alpha %zu", i);
    hf_adapter_config_finish(&c);
    return 0;
}
