/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_AGREE_BUILD_H
#define TRAIN_AGREE_BUILD_H

#include "base/core/hash.h"

/*
 * The build that runs: a digest of the code and the constants of this program, without the
 * libraries that are loaded beside it. Builds of the same sources by the same compiler with the
 * same options have the same one, stripped or not.
 */
void agree_build(char ret[SHA_TEXT]);

#endif
