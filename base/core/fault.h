/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_FAULT_H
#define BASE_CORE_FAULT_H

/*
 * Planted faults. A build with -Dfault=NAME makes FAULT("NAME") true and every other false; in an
 * ordinary build all are false and the compiler drops them. tests/fault builds each fault in turn
 * and demands that the test named for it turns red.
 */

#include <string.h>

#include "fault_config.h" /* made by meson: WEFT_FAULT, "" in an ordinary build */

#define FAULT(name) (sizeof(WEFT_FAULT) > 1 && strcmp(WEFT_FAULT, name) == 0)

#endif
