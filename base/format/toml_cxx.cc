// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

extern "C" {
#include "base/format/json.h"
#include "base/io/path.h"
#include "base/format/toml.h"
}

struct toml_file {
    std::deque<std::string> texts; // a deque: c_str() stays where it is
    std::deque<std::vector<const char *>> lists;
    std::vector<toml_entry> entries;
};

namespace
{

// What went wrong, and where; toml_parse prepends the file's name.
struct refusal {
    unsigned line, column;
    std::string why;
};

[[noreturn]] void refuse(const toml::source_region &at, const std::string &why)
{
    throw refusal{at.begin.line, at.begin.column, why};
}

const char *keep(struct toml_file &t, std::string_view s, const toml::source_region &at)
{
    if (s.find('\0') != s.npos)
        refuse(at, "a NUL inside a text");
    t.texts.emplace_back(s);
    return t.texts.back().c_str();
}

std::string real_text(double v)
{
    struct buf b = {};
    if (v == v && v - v == 0)
        jsonw_real(&b, v);
    else
        buf_adds(&b, v != v ? "nan" : v > 0 ? "inf" : "-inf");
    std::string s(b.data, b.len);
    buf_finish(&b);
    return s;
}

const char *scalar_text(struct toml_file &t, const toml::node &v)
{
    const toml::source_region &at = v.source();
    switch (v.type()) {
    case toml::node_type::string:
        return keep(t, v.as_string()->get(), at);
    case toml::node_type::integer:
        return keep(t, std::to_string(v.as_integer()->get()), at);
    case toml::node_type::floating_point:
        return keep(t, real_text(v.as_floating_point()->get()), at);
    case toml::node_type::boolean:
        return v.as_boolean()->get() ? "true" : "false";
    case toml::node_type::array:
        refuse(at, "an array inside an array");
    case toml::node_type::table:
        refuse(at, "a table where a value was expected");
    default:
        refuse(at, "dates and times are not understood here: write them in quotes");
    }
}

void add_entry(struct toml_file &t, const char *section, const toml::key &key, const toml::node &v)
{
    toml_entry e = {};
    e.section = section;
    e.key = keep(t, key.str(), key.source());
    e.line = key.source().begin.line;
    e.column = key.source().begin.column;
    t.lists.emplace_back();
    if (const toml::array *a = v.as_array()) {
        e.is_array = 1;
        for (const toml::node &item : *a)
            t.lists.back().push_back(scalar_text(t, item));
    } else {
        t.lists.back().push_back(scalar_text(t, v));
    }
    e.values = t.lists.back().data();
    e.nvalues = t.lists.back().size();
    t.entries.push_back(e);
}

void add_table(struct toml_file &t, const toml::key &name, const toml::table &table)
{
    const char *section = keep(t, name.str(), name.source());
    for (auto &&[key, value] : table) {
        if (value.is_table())
            refuse(key.source(), "table '" + std::string(key.str()) + "' inside table '" +
                                     std::string(name.str()) + "': there is only one level");
        add_entry(t, section, key, value);
    }
}

void flatten(struct toml_file &t, const toml::table &root)
{
    for (auto &&[key, value] : root) {
        if (const toml::table *table = value.as_table())
            add_table(t, key, *table);
        else
            add_entry(t, "", key, value);
    }
    std::stable_sort(t.entries.begin(), t.entries.end(),
                     [](const toml_entry &a, const toml_entry &b) {
                         return a.line != b.line ? a.line < b.line : a.column < b.column;
                     });
}

// toml++ bounds the nesting of values, not that of tables by dotted keys, and destroys tables by
// recursion: a key of 100,000 parts would overflow the stack. So the parts of every key are counted
// first, by a reader that knows strings and comments.
class key_guard
{
  public:
    explicit key_guard(std::string_view text) : s(text)
    {
    }

    void check()
    {
        while (i < s.size() && step())
            ;
    }

  private:
    enum { MAX_DOTS = 7 };

    std::string_view s;
    size_t i = 0, line = 1, begin = 0, dots = 0;

    bool at(std::string_view text) const
    {
        return s.substr(i, text.size()) == text;
    }

    void new_line()
    {
        line++;
        begin = i + 1;
    }

    // False if a string has no end: toml++ stops there, too.
    bool skip_string(char quote)
    {
        const char three[] = {quote, quote, quote, 0};
        bool many = at(three);
        for (i += many ? 3 : 1; i < s.size(); i++) {
            if (s[i] == '\n' && !many)
                return false;
            if (s[i] == '\n') {
                new_line();
            } else if (s[i] == '\\' && quote == '"' && i + 1 < s.size() && s[i + 1] != '\n') {
                i++;
            } else if (many ? at(three) : s[i] == quote) {
                i += many ? 3 : 1;
                for (int more = 0; many && more < 2 && i < s.size() && s[i] == quote; more++)
                    i++; // """a""""" ends in two quotes of its own
                return true;
            }
        }
        return false;
    }

    bool step()
    {
        char c = s[i];
        if (c == '"' || c == '\'')
            return skip_string(c);
        if (c == '#') {
            i = s.find('\n', i);
            return i != s.npos;
        }
        if (c == '.' && ++dots > MAX_DOTS)
            throw refusal{(unsigned)line, (unsigned)(i - begin + 1), "a key of too many parts"};
        if (std::strchr("\n=,[]{}", c))
            dots = 0;
        if (c == '\n')
            new_line();
        i++;
        return true;
    }
};

int report(struct err *e, const char *name, unsigned line, unsigned column, std::string_view why)
{
    return err_set(e, ERR_USAGE, "%s:%u:%u: %.*s", name, line, column, (int)why.size(), why.data());
}

} // namespace

extern "C" int toml_parse(const char *name, const char *p, size_t n, struct toml_file **ret,
                          struct err *e)
try {
    auto t = std::make_unique<struct toml_file>();
    key_guard(std::string_view(p, n)).check();
    flatten(*t, toml::parse(std::string_view(p, n)));
    *ret = t.release();
    return 0;
} catch (const toml::parse_error &x) {
    return report(e, name, x.source().begin.line, x.source().begin.column, x.description());
} catch (const refusal &x) {
    return report(e, name, x.line, x.column, x.why);
} catch (const std::bad_alloc &) {
    return err_set(e, ERR_RESOURCE, "%s: no memory for %zu bytes of TOML", name, n);
} catch (const std::exception &x) {
    return err_set(e, ERR_FAIL, "%s: TOML reader: %s", name, x.what());
}

extern "C" int toml_open(const char *path, struct toml_file **ret, struct err *e)
{
    struct buf b = {};
    int rc = file_read(path, TOML_MAX_BYTES, &b, e);
    if (!rc)
        rc = toml_parse(path, b.data, b.len, ret, e);
    buf_finish(&b);
    return rc;
}

extern "C" size_t toml_count(const struct toml_file *t)
{
    return t->entries.size();
}

extern "C" const struct toml_entry *toml_at(const struct toml_file *t, size_t i)
{
    return &t->entries.at(i);
}

extern "C" void toml_close(struct toml_file *t)
{
    delete t;
}
