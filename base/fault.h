/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

/*
 * Planted faults. A build with -Dfault=NAME makes FAULT("NAME") true and every other false; an
 * ordinary build has none of it in its code. tests/fault builds each fault in turn and demands that
 * the test named for it turns red.
 */

#include <string.h>

#ifdef WEFT_FAULT
#define FAULT(name) (strcmp(WEFT_FAULT, name) == 0)
#else
#define FAULT(name) 0
#endif

#endif
