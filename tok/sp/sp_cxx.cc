// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

extern "C" {
#include "tok/sp/sp_cxx.h"
}

// Exported by the library, declared in none of its installed headers.
namespace sentencepiece
{
namespace logging
{
void SetMinLogLevel(int v);
}
} // namespace sentencepiece

namespace
{

enum { LOG_FATAL_ONLY = 3 };

// "src/x.cc(12) [a == b] Vocabulary size too high" -> "Vocabulary size too high"
std::string plain(const std::string &s)
{
    size_t at = s.find(") [");
    size_t end = at == std::string::npos ? at : s.find("] ", at);
    if (end != std::string::npos && end + 2 < s.size())
        return s.substr(end + 2);
    at = s.find("Internal: ");
    return at == 0 ? s.substr(10) : s;
}

// Runs f, which returns a code, and turns what it throws into an error.
template <class F> int guarded(const char *name, struct err *e, F f) noexcept
{
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return err_set(e, ERR_RESOURCE, "%s: SentencePiece ran out of memory", name);
    } catch (const std::exception &x) {
        return err_set(e, ERR_DATA, "%s: SentencePiece: %s", name, x.what());
    } catch (...) {
        return err_set(e, ERR_DATA, "%s: SentencePiece failed", name);
    }
}

class Sentences : public sentencepiece::SentenceIterator
{
  public:
    Sentences(sp_next_fn *next, void *arg) : next_(next), arg_(arg)
    {
        Next();
    }
    bool done() const override
    {
        return state_ != 1;
    }
    void Next() override
    {
        const char *text = nullptr;
        size_t n = 0;
        state_ = next_(arg_, &text, &n);
        if (state_ == 1)
            value_.assign(text, n);
    }
    const std::string &value() const override
    {
        return value_;
    }
    sentencepiece::util::Status status() const override
    {
        using sentencepiece::util::Status;
        using sentencepiece::util::StatusCode;
        return state_ >= 0 ? Status() : Status(StatusCode::kDataLoss, "the input cannot be read");
    }

  private:
    sp_next_fn *next_;
    void *arg_;
    int state_ = 0;
    std::string value_;
};

} // namespace

struct sp_lib {
    sentencepiece::SentencePieceProcessor processor;
    std::string name;
};

struct sp_room {
    std::vector<int> ids;
    std::string text;
};

int sp_lib_open(const char *name, const void *p, size_t n, struct sp_lib **ret, struct err *e)
{
    return guarded(name, e, [&] {
        sentencepiece::logging::SetMinLogLevel(LOG_FATAL_ONLY);
        auto l = std::make_unique<sp_lib>();
        l->name = name;
        auto status = l->processor.LoadFromSerializedProto({static_cast<const char *>(p), n});
        if (!status.ok())
            return err_set(e, ERR_DATA, "%s: SentencePiece refuses the model: %s", name,
                           plain(status.ToString()).c_str());
        *ret = l.release();
        return 0;
    });
}

void sp_lib_close(struct sp_lib *l)
{
    delete l;
}

struct sp_room *sp_room_create(void)
{
    return new (std::nothrow) sp_room();
}

void sp_room_destroy(struct sp_room *r)
{
    delete r;
}

int sp_lib_encode(const struct sp_lib *l, struct sp_room *r, const char *text, size_t n,
                  const int **ret_id, size_t *ret_n, struct err *e)
{
    return guarded(l->name.c_str(), e, [&] {
        auto status = l->processor.Encode({text, n}, &r->ids);
        if (!status.ok())
            return err_set(e, ERR_DATA, "%s: SentencePiece cannot encode a text of %zu bytes: %s",
                           l->name.c_str(), n, plain(status.ToString()).c_str());
        *ret_id = r->ids.data();
        *ret_n = r->ids.size();
        return 0;
    });
}

int sp_lib_decode(const struct sp_lib *l, struct sp_room *r, const int *id, size_t n,
                  struct buf *text, struct err *e)
{
    return guarded(l->name.c_str(), e, [&] {
        r->ids.assign(id, id + n);
        auto status = l->processor.Decode(r->ids, &r->text);
        if (!status.ok())
            return err_set(e, ERR_DATA, "%s: SentencePiece cannot decode %zu ids: %s",
                           l->name.c_str(), n, plain(status.ToString()).c_str());
        buf_add(text, r->text.data(), r->text.size());
        return 0;
    });
}

int sp_lib_train(const char *const *keys, const char *const *values, size_t n, int64_t seed,
                 sp_next_fn *next, void *arg, struct buf *ret, struct err *e)
{
    return guarded("tok train", e, [&] {
        std::unordered_map<std::string, std::string> options;
        for (size_t i = 0; i < n; i++)
            options[keys[i]] = values[i];
        if (seed >= 0)
            sentencepiece::SetRandomGeneratorSeed(static_cast<unsigned>(seed));
        Sentences sentences(next, arg);
        std::string model;
        auto status = sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
        if (!status.ok())
            return err_set(e, ERR_USAGE, "%s", plain(status.ToString()).c_str());
        buf_add(ret, model.data(), model.size());
        return 0;
    });
}
