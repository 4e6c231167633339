/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_UTF8_CXX_H
#define BASE_CORE_UTF8_CXX_H

/* For utf8.c alone: whether n bytes are UTF-8, at the speed of simdjson. */

#include <stdbool.h>
#include <stddef.h>

bool utf8_all_good(const char *p, size_t n);

#endif
