// SPDX-License-Identifier: Apache-2.0

// simdjson's check of UTF-8 in plain C.

#include <simdjson.h>

extern "C" {
#include "base/core/utf8_cxx.h"
}

bool utf8_all_good(const char *p, size_t n)
{
    return simdjson::validate_utf8(p, n);
}
