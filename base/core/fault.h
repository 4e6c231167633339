/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_FAULT_H
#define BASE_CORE_FAULT_H

/*
 * Planted faults. In a build with -Dfault=true the environment variable WEFT_FAULT names the fault
 * that is planted: FAULT("NAME") is then true and every other false. It is read once, when the
 * program starts. In an ordinary build all are false and the compiler drops them. Each name has a
 * row in tests/fault/faults.txt, with the test that must turn red.
 */

#include <stdbool.h>

#include "fault_config.h" /* made by meson: WEFT_FAULTS, 0 in an ordinary build */

#if WEFT_FAULTS
/*
 * Whether WEFT_FAULT is `name`, or `name:at` if `at` is not NULL. If so, the file that
 * WEFT_FAULT_SEEN names is created: a fault that a test never reaches proves nothing.
 */
bool fault_is(const char *name, const char *at);
/* Whether WEFT_FAULT is `name:` with anything after it. Creates no file. */
bool fault_kind(const char *name);
#define FAULT(name) fault_is(name, 0)
#else
#define FAULT(name) false
#endif

#endif
