/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/io/file.h"
#include "dataset/shard/manifest.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct manifest_input inputs[2] = {{"a \"b\".jsonl", 1234, 56}, {"-", 0, 7}};
static const struct manifest_option options[2] = {{"json-keys", "text"}, {"specials", "text"}};
static const struct manifest full = {
    .weft_version = "0.1.0",
    .tokenizer_type = "SentencePieceTokenizer",
    .tokenizer_path = "t/x.model",
    .digest = DIGEST_A,
    .meaning = "model=BPE size=2000",
    .vocab_size = 2000,
    .eod = 3,
    .eod_piece = "<EOD>",
    .append_eod = true,
    .documents = 63,
    .sequences = 60,
    .tokens = 123456,
    .bad_records = 2,
    .piece = 3,
    .pieces = 7,
    .dtype = SHARD_U16,
    .bin_bytes = 246912,
    .idx_bytes = 1266,
    .bin_xxh = "0123456789abcdef0123456789abcdef",
    .idx_xxh = "fedcba9876543210fedcba9876543210",
    .inputs = inputs,
    .ninputs = 2,
    .options = options,
    .noptions = 2,
};

static void put(const struct manifest *m, const char *prefix)
{
    struct err e;
    struct buf b = {0};
    char *path = manifest_path(prefix);
    manifest_text(m, &b);
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    free(path);
    buf_finish(&b);
}

static void all_comes_back(void)
{
    struct err e;
    struct manifest m;
    bool found;
    struct buf was = {0}, is = {0};
    put(&full, t_path("f"));
    T_OK(manifest_read(t_path("f"), &m, &found, &e), &e);
    T_CHECK(found);
    T_STR(m.tokenizer_type, "SentencePieceTokenizer");
    T_STR(m.digest, DIGEST_A);
    T_STR(m.meaning, "model=BPE size=2000");
    T_EQ(m.vocab_size, 2000);
    T_EQ(m.dtype, SHARD_U16);
    T_CHECK(m.piece == 3 && m.pieces == 7);
    T_EQ(m.ninputs, 2);
    T_STR(m.inputs[0].path, "a \"b\".jsonl");
    T_EQ(m.inputs[0].documents, 56);
    T_STR(m.options[1].name, "specials");
    manifest_text(&full, &was);
    manifest_text(&m, &is);
    T_STR(buf_str(&is), buf_str(&was));
    buf_finish(&was);
    buf_finish(&is);
    manifest_close(&m);
}

static void an_empty_one_comes_back(void)
{
    struct err e;
    struct manifest m = {.dtype = SHARD_I32, .eod = -1, .weft_version = "x"};
    bool found;
    memset(m.bin_xxh, '0', sizeof(m.bin_xxh) - 1);
    memset(m.idx_xxh, '0', sizeof(m.idx_xxh) - 1);
    put(&m, t_path("e"));
    T_OK(manifest_read(t_path("e"), &m, &found, &e), &e);
    T_CHECK(found && !m.tokenizer_type && !m.eod_piece && !m.digest[0]);
    T_EQ(m.eod, -1);
    manifest_close(&m);
}

static void none_is_no_failure(void)
{
    struct err e;
    struct manifest m;
    bool found = true;
    T_OK(manifest_read(t_path("nothing"), &m, &found, &e), &e);
    T_CHECK(!found);
    manifest_close(&m);
}

static void replace(struct buf *b, const char *from, const char *to)
{
    char *at = strstr(buf_str(b), from);
    T_CHECK(at);
    struct buf r = {0};
    buf_add(&r, b->data, (size_t)(at - b->data));
    buf_adds(&r, to);
    buf_adds(&r, at + strlen(from));
    buf_finish(b);
    *b = r;
}

static void malformed_ones_are_refused(void)
{
    static const char *const c[][3] = {
        {"\"weft_manifest\": 1", "\"weft_manifest\": 2", "weft_manifest"},
        {"\"weft_manifest\": 1", "\"other\": 1", "weft_manifest"},
        {"\"documents\": 63,\n", "", "documents"},
        {"\"documents\": 63,\n", "\"documents\": -1,\n", "documents"},
        {"\"documents\": 63,\n", "\"documents\": \"63\",\n", "documents"},
        {"\"tokens\": 123456", "\"tokens\": 1.5", "tokens"},
        {"\"u16\"", "\"u17\"", "dtype"},
        {"\"u16\"", "null", "dtype"},
        {"\"u16\"", "\"?\"", "dtype"},
        {DIGEST_A, "abc", "sha256"},
        {"\"append_eod\": true", "\"append_eod\": 1", "append_eod"},
        {"\"tokenizer\": {", "\"tokeniser\": {", "tokenizer"},
        {"\"inputs\": [", "\"in\": [", "inputs"},
        {"}\n}\n", "}\n", "f.manifest.json"},
    };
    struct err e;
    struct manifest m;
    bool found;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        struct buf b = {0};
        manifest_text(&full, &b);
        replace(&b, c[i][0], c[i][1]);
        T_OK(file_replace(t_path("f.manifest.json"), b.data, b.len, &e), &e);
        T_ERR(manifest_read(t_path("f"), &m, &found, &e), &e, ERR_DATA, c[i][2]);
        buf_finish(&b);
    }
}

static int compare(const char *who, const char *path, const char *digest, int64_t size,
                   struct err *e)
{
    const struct manifest_tokenizer t = {.path = path, .digest = digest, .vocab_size = size};
    return manifest_compare(&full, "d/x", who, &t, e);
}

static void other_tokenizers_are_told(void)
{
    struct err e;
    T_OK(compare("checkpoint c", "c/t.model", DIGEST_A, 2000, &e), &e);
    T_OK(compare("checkpoint c", NULL, NULL, 0, &e), &e);
    T_OK(compare("checkpoint c", NULL, "", 2000, &e), &e);
    T_ERR(compare("checkpoint c", "c/t.model", DIGEST_B, 2000, &e), &e, ERR_USAGE,
          "d/x was tokenized with t/x.model (SHA-256 aaaaaaaaaaaa), but checkpoint c has c/t.model "
          "(SHA-256 bbbbbbbbbbbb)");
    T_ERR(compare("checkpoint c", "c/t.model", DIGEST_A, 2001, &e), &e, ERR_USAGE,
          "of 2000 tokens, but checkpoint c has c/t.model (SHA-256 aaaaaaaaaaaa) of 2001");
    T_ERR(compare("d/y", NULL, DIGEST_B, 2000, &e), &e, ERR_USAGE,
          "but d/y has a tokenizer with SHA-256 bbbbbbbbbbbb");
    T_ERR(compare("checkpoint c", NULL, NULL, 2001, &e), &e, ERR_USAGE, "2001");
}

/* Another file with the same meaning is the same tokenizer; else what is different is named. */
static void meanings_are_compared(void)
{
    struct err e;
    struct manifest m = full;
    m.meaning = "model=BPE merges=1111 size=2000 tokens=22 template=3 end-of-document=3";
    struct manifest_tokenizer t = {"c.json", DIGEST_B, m.meaning, 2000};
    T_OK(manifest_compare(&m, "d/x", "c", &t, &e), &e);
    t.meaning = "model=Unigram options=7 size=2000 tokens=22 end-of-document=3";
    T_ERR(manifest_compare(&m, "d/x", "c", &t, &e), &e, ERR_USAGE,
          "but c has c.json (SHA-256 bbbbbbbbbbbb); different: model (BPE, Unigram), merges, "
          "template, options");
    t.meaning = "model=BPE merges=1111 size=20000 tokens=222 template=3 end-of-document=3";
    T_ERR(manifest_compare(&m, "d/x", "c", &t, &e), &e, ERR_USAGE,
          "different: size (2000, 20000), tokens");
    t.digest = DIGEST_A; /* the same file does the same */
    T_OK(manifest_compare(&m, "d/x", "c", &t, &e), &e);
    t.digest = DIGEST_B;
    t.meaning = NULL;
    T_ERR(manifest_compare(&m, "d/x", "c", &t, &e), &e, ERR_USAGE, "c.json (SHA-256 bbbbbbbbbbbb)");
}

static void other_data_is_told(void)
{
    struct err e;
    struct shard s;
    struct manifest m = full;
    write_counting(t_path("d"), (uint32_t[]){3, 4}, 2);
    T_OK(shard_open(&s, t_path("d"), &e), &e);
    T_ERR(manifest_fits_shard(&m, &s, &e), &e, ERR_DATA, "63 documents in 60 sequences as u16");
    m.documents = m.sequences = 2;
    m.dtype = SHARD_I32;
    m.bin_bytes = s.bin.size;
    m.idx_bytes = s.idx.size;
    T_OK(manifest_fits_shard(&m, &s, &e), &e);
    T_ERR(manifest_verify(&m, &s, &e), &e, ERR_INTEGRITY, "d.idx");
    xxh_once(s.idx.data, s.idx.size, m.idx_xxh);
    T_ERR(manifest_verify(&m, &s, &e), &e, ERR_INTEGRITY, "d.bin");
    xxh_once(s.bin.data, s.bin.size, m.bin_xxh);
    T_OK(manifest_verify(&m, &s, &e), &e);
    m.bin_bytes++;
    T_ERR(manifest_fits_shard(&m, &s, &e), &e, ERR_DATA, "d.manifest.json");
    shard_close(&s);
}

static void same_work_and_other_work(void)
{
    struct err e;
    struct manifest_input in[2] = {{"elsewhere", 1234, 0, ""}, {"-", 0, 0, ""}};
    struct manifest_option op[3] = {{"specials", "text"}, {"json-keys", "text"}, {"new", "1"}};
    struct manifest now = full;
    now.inputs = in;
    now.options = op;
    now.documents = now.tokens = 0;
    T_OK(manifest_same_work(&full, &now, "p", &e), &e);
    struct manifest other = now;
    memcpy(other.digest, DIGEST_B, sizeof(DIGEST_B));
    other.meaning = NULL;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE,
          "p: was built with tokenizer " DIGEST_A "; this command says " DIGEST_B);
    struct manifest meant = full;
    meant.meaning = "model=bpe size=2000";
    other.meaning = "model=bpe size=2000";
    T_OK(manifest_same_work(&meant, &other, "p", &e), &e); /* another file that does the same */
    other.meaning = "model=bpe size=2000 merges=2";
    T_ERR(manifest_same_work(&meant, &other, "p", &e), &e, ERR_USAGE, "was built with tokenizer");
    other = now;
    other.digest[0] = 0;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE, "was built with tokenizer");
    other = now;
    other.vocab_size = 2001;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE, "a vocabulary of 2000");
    other = now;
    other.eod = -1;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE,
          "end of document 3; this command says -1");
    other = now;
    other.dtype = SHARD_I32;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE, "tokens as");
    other = now;
    other.noptions = 3;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE,
          "--new none; this command says 1");
    other.noptions = 1;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE,
          "--json-keys text; this command says none");
    other = now;
    other.ninputs = 1;
    T_ERR(manifest_same_work(&full, &other, "p", &e), &e, ERR_USAGE,
          "2 inputs; this command names 1");
    in[0].bytes = 7;
    T_ERR(manifest_same_work(&full, &now, "p", &e), &e, ERR_USAGE, "elsewhere has 7");
    struct manifest_input digested[2] = {{"x", 7, 0, "0123456789abcdef0123456789abcdef"},
                                         {"-", 0, 0, ""}};
    other = now;
    other.inputs = digested;
    T_OK(manifest_same_work(&other, &now, "p", &e), &e);
    memcpy(in[0].xxh, "0123456789abcdef0123456789abcdee", XXH_TEXT);
    T_ERR(manifest_same_work(&other, &now, "p", &e), &e, ERR_USAGE, "but that of elsewhere is");
}

T_MAIN(T_CASE(all_comes_back), T_CASE(an_empty_one_comes_back), T_CASE(none_is_no_failure),
       T_CASE(malformed_ones_are_refused), T_CASE(other_tokenizers_are_told),
       T_CASE(meanings_are_compared), T_CASE(other_data_is_told), T_CASE(same_work_and_other_work))
