/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_COMPAT_H
#define TRAIN_SPEC_COMPAT_H

/* Versions of Megatron whose users' scripts `train run` takes, and by which names it knows them. */

#include "base/cli/opt.h"

#define COMPAT_FLAG_ROW(S, m, v)                                                                   \
    OPT_ROW(.name = "compat", .type = OPT_CHOICE, .offset = offsetof(S, m), .def = "core",         \
            .meta = "core|v1.1.5|megatron-deepspeed", .group = "machine", .verbs = v,              \
            .resumed = RESUMED_FREE, .brief = "whose rules: learning rate, data, log lines",       \
            .help = "whose --lr-rules, --data-rules and --log-format there are unless these are "  \
                    "given: Megatron core's, Megatron-LM v1.1.5's or Megatron-DeepSpeed's; "       \
                    "without it, options that one of the latter two alone has choose that one, "   \
                    "and --deepspeed chooses Megatron-DeepSpeed")

/* In the order of the option's choices; ended by a NULL name. */
extern const struct opt_dialect train_dialects[];

#endif
