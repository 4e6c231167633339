// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <new>

#include <simdjson.h>

extern "C" {
#include "base/format/json_walk.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
}

struct json_scan {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> stage;
};

static int json_cxx_bad(struct err *e, size_t at, const char *why)
{
    return err_set(e, ERR_DATA, "byte %zu: %s", at, why);
}

// simdjson reports what is wrong, not where: a second, slow pass over the text finds the place.
static int locate(const char *p, size_t n, simdjson::error_code code, struct err *e)
{
    bool inside = false;
    size_t opened = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 0x80) {
            size_t k = utf8_char(p + i, p + n);
            if (!k)
                return err_set(e, ERR_DATA, "byte %zu: 0x%02x is not UTF-8", i, c);
            i += k - 1;
        } else if (c == '"') {
            inside = !inside;
            opened = i;
        } else if (inside && c < 0x20) {
            return err_set(e, ERR_DATA, "byte %zu: control character 0x%02x inside a string", i, c);
        } else if (c == '\\' && i + 1 < n && (p[i + 1] == '"' || p[i + 1] == '\\')) {
            i++;
        }
    }
    if (inside)
        return json_cxx_bad(e, opened, "the string that begins here has no end");
    return err_set(e, ERR_DATA, "byte 0: %s", simdjson::error_message(code));
}

static simdjson::error_code reserve(struct json_scan *s, size_t n)
{
    if (s->stage && s->stage->capacity() >= n)
        return simdjson::SUCCESS;
    size_t cap = n + n / 4 + (64 << 10);
    if (cap > JSON_MAX_BYTES)
        cap = JSON_MAX_BYTES;
    simdjson::error_code code =
        s->stage ? s->stage->allocate(cap, 1)
                 : simdjson::get_active_implementation()->create_dom_parser_implementation(
                       cap, 1, s->stage);
    if (code == simdjson::SUCCESS)
        mem_large_pages(s->stage->structural_indexes.get(), cap * sizeof(uint32_t));
    return code;
}

extern "C" struct json_scan *json_scan_create(void)
{
    struct json_scan *s = new (std::nothrow) json_scan;
    BUG_ON(!s, "no memory for a JSON scanner");
    return s;
}

extern "C" void json_scan_destroy(struct json_scan *s)
{
    delete s;
}

extern "C" int json_scan_run(struct json_scan *s, const char *p, size_t n, const uint32_t **ret_at,
                             size_t *ret_n, struct err *e)
try {
    if (n > JSON_MAX_BYTES)
        return err_set(e, ERR_DATA, "byte 0: %zu bytes of JSON, at most %u are read", n,
                       JSON_MAX_BYTES);
    if (n == 0)
        return json_cxx_bad(e, 0, "nothing where a JSON value was expected");
    simdjson::error_code code = reserve(s, n);
    if (code == simdjson::SUCCESS)
        code = s->stage->stage1(reinterpret_cast<const uint8_t *>(p), n,
                                simdjson::stage1_mode::regular);
    if (code == simdjson::MEMALLOC)
        return err_set(e, ERR_RESOURCE, "no memory to read %zu bytes of JSON", n);
    if (code == simdjson::EMPTY)
        return json_cxx_bad(e, 0, "nothing but blanks where a JSON value was expected");
    if (code != simdjson::SUCCESS)
        return locate(p, n, code, e);
    *ret_at = s->stage->structural_indexes.get();
    *ret_n = s->stage->n_structural_indexes;
    return 0;
} catch (const std::exception &x) {
    return err_set(e, ERR_FAIL, "JSON reader: %s", x.what());
}
