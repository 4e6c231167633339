/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/same_tokenizer.h"

int same_tokenizer(const struct manifest *m, const char *prefix, const struct tok_info *t,
                   bool goes_on, struct err *e)
{
    const struct manifest_tokenizer given = {t->path, t->digest, t->meaning, t->vocab_size};
    return manifest_judge(goes_on, manifest_compare(m, prefix, "the command line", &given, e), e);
}
