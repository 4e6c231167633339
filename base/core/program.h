/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_PROGRAM_H
#define BASE_CORE_PROGRAM_H

/*
 * The names under which the programs are installed: WEFT_PREFIX "tok" is "tok", or "weft-tok" in a
 * build with -Dprogram_prefix=weft-. Every message that names a program uses it.
 */

#include "program_config.h" /* made by meson: WEFT_PREFIX */

#endif
