/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/tok/letters.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/piece.h"
#include "tok/text/base64.h"

/* The simpler files: GPT-2's two, tiktoken's ranks, BERT's vocab.txt. */

static const char *put(const char *name, const char *text)
{
    struct err e;
    const char *path = t_path(name);
    T_OK(file_replace(path, text, strlen(text), &e), &e);
    return path;
}

static const char *put_vocab(const char *some)
{
    struct buf b = {0};
    put_letters_vocab(&b, some, 6);
    const char *path = put("vocab.json", buf_str(&b));
    buf_finish(&b);
    return path;
}

/* Text of bytes that have no symbol would vanish. */
static void gpt2_needs_all_bytes(void)
{
    struct tokenizer *t;
    struct err e;
    put("merges.txt", "a b\n");
    struct tok_options o = {.path = put("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}"),
                            .type = TOK_GPT2_BPE};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA,
          "vocab.json: has no entry for 254 of the 256 bytes, the first is 0x00");
}

static void gpt2(void)
{
    struct tokenizer *t;
    struct err e;
    const char *merges = put("merges.txt", "#version: 0.2\na b\r\n\n\u0120 ab\n");
    struct tok_options o = {
        .path = put_vocab("{\"a\":0,\"b\":1,\"ab\":2,\"\u0120\":3,\"\u0120ab\":4,"
                          "\"<|endoftext|>\":5}"),
    };
    T_OK(tok_open(&o, &t, &e), &e); /* with merges.txt next to it */
    T_STR(tok_info(t)->type_name, "GPT2BPETokenizer");
    T_EQ(tok_info(t)->eod, 5);
    gives(t, "ab ab<|endoftext|>", "2 4 65 127 104 113 103 114 105 119 104 123 119 127 67");
    tok_close(t);
    o.path = put_vocab("{\"<unk>\":0,\"a\":1,\"b\":2,\"ab\":3,\"\u0120\":4,\"\u0120ab\":5}");
    T_OK(tok_open(&o, &t, &e), &e); /* RoBERTa's has an <unk> */
    gives(t, "ab ab", "3 5");
    tok_close(t);
    o.path =
        put("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"a</w>\":3,\"\u0120\":4,\"\u0120ab\":5}");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "1 pieces end in </w>");
    o.path = put_vocab("{\"a\":0,\"b\":1,\"ab\":2,\"a</w>\":3,\"\u0120\":4,\"\u0120ab\":5}");
    o.type = TOK_GPT2_BPE; /* by its type, it is read as Megatron-LM does */
    T_OK(tok_open(&o, &t, &e), &e);
    tok_close(t);
    o.type = TOK_AUTO;
    o.path = put("vocab.json", "{\"<unk>\":0,\"a\":1,\"ab\":2}");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "not spelled as GPT-2's");
    o.type = TOK_WHITESPACE;
    T_OK(tok_open(&o, &t, &e), &e);
    T_STR(tok_info(t)->type_name, "WhitespaceTokenizer");
    tok_close(t);
    o.type = TOK_AUTO;
    o.path = put_vocab("{\"a\":0,\"b\":1,\"ab\":2,\"\u0120\":3,\"\u0120ab\":4,"
                       "\"<|endoftext|>\":5}");
    o.specials = TOK_SPECIALS_PARSE;
    o.type = TOK_GPT2_BPE;
    o.merges = merges;
    T_OK(tok_open(&o, &t, &e), &e);
    gives(t, "ab<|endoftext|>", "2 5");
    tok_close(t);
    o.merges = put("bad", "a b\na x\n");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "line 2");
    o.merges = put("bad", "a b c\n");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "not two pieces");
    o.merges = t_path("missing");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_IO, "missing");
}

static void put_bytes(struct buf *b)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned c = 0; c < 256; c++)
        buf_addf(b, "%c%c== %u\n", digit[c >> 2], digit[(c & 3) << 4], c);
}

static int open_ranks(const char *more, const char *pattern, struct tokenizer **ret, struct err *e)
{
    struct buf b = {0};
    put_bytes(&b);
    buf_adds(&b, more);
    struct tok_options o = {.path = put("x.tiktoken", buf_str(&b)), .pattern = pattern};
    buf_finish(&b);
    return tok_open(&o, ret, e);
}

static void tiktoken(void)
{
    struct tokenizer *t;
    struct err e;
    /* ab, bc, abc and abcd */
    const char *more = "YWI= 256\nYmM= 257\nYWJj 258\nYWJjZA== 300\n";
    T_OK(open_ranks(more, "gpt2", &t, &e), &e);
    T_STR(tok_info(t)->type_name, "TikTokenizer");
    T_EQ(tok_info(t)->vocab_size, 301);
    T_EQ(tok_info(t)->eod, -1);
    gives(t, "abc ab", "258 32 256");
    gives(t, "abcd", "300");
    gives(t, "abcdx", "300 120");
    gives(t, "bcd", "257 100");
    tok_close(t);
    T_OK(open_ranks("YWI= 256\n= 257\n", "gpt2", &t, &e), &e); /* as in Whisper's */
    T_EQ(tok_info(t)->vocab_size, 258);
    gives(t, "abb", "256 98");
    T_PIECE(t, 257, "");
    tok_close(t);
    T_ERR(open_ranks(more, NULL, &t, &e), &e, ERR_USAGE, "no known encoding");
    T_ERR(open_ranks("YWI= 256\nYWI= 257\n", "gpt2", &t, &e), &e, ERR_DATA, "twice");
    T_ERR(open_ranks("YWI= 255\n", "gpt2", &t, &e), &e, ERR_DATA, "same id");
    T_ERR(open_ranks("YW= 256\n", "gpt2", &t, &e), &e, ERR_DATA, "line 257");
    T_ERR(open_ranks("YWI=\n", "gpt2", &t, &e), &e, ERR_DATA, "line 257");
    T_ERR(open_ranks("YWI= 99999999999999999999\n", "gpt2", &t, &e), &e, ERR_DATA, "line 257");
    struct tok_options o = {.path = put("few", "YWI= 0\n"), .pattern = "gpt2"};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "single byte 0x00");
}

/* Bytes, and then four of them for each rank. */
static void many_ranks(struct buf *b, size_t n)
{
    buf_reset(b);
    for (size_t i = 0; i < n; i++) {
        char bytes[4] = {(char)i, (char)(i >> 8), (char)(i >> 16), 'x'};
        base64_put(b, bytes, i < 256 ? 1 : 4);
        buf_addf(b, " %zu\n", i);
    }
    buf_str(b);
}

/* The number of ranks determines pattern, normal form and special tokens of published files. */
static void known_ranks(void)
{
    static const struct {
        const char *name, *last, *eod, *bos;
        size_t ranks;
        int64_t size, eod_id;
    } is[] = {
        {"llama3", "<|reserved_special_token_245|>", "<|end_of_text|>", "<|begin_of_text|>", 128000,
         128256, 128001},
        {"llama4", "<|reserved_special_token_903|>", "<|end_of_text|>", "<|begin_of_text|>", 200000,
         202048, 200001},
        {"qwen", "<|extra_204|>", "<|endoftext|>", NULL, 151643, 151851, 151643},
        {"cl100k", "<|endofprompt|>", "<|endoftext|>", NULL, 100256, 100277, 100257},
    };
    struct buf b = {0};
    struct tokenizer *t;
    struct err e;
    /* by name alone: the other numbering of the same ranks */
    many_ranks(&b, 128000);
    struct tok_options hf = {.path = put("ranks", b.data), .pattern = "llama3-hf"};
    T_OK(tok_open(&hf, &t, &e), &e);
    T_EQ(tok_info(t)->vocab_size, 128256);
    T_EQ(tok_info(t)->eod, 128001);
    T_EQ(tok_find(t, "<|start_header_id|>"), 128006);
    T_EQ(tok_find(t, "<|eot_id|>"), 128009);
    T_EQ(tok_find(t, "<|reserved_special_token_2|>"), 128005);
    T_EQ(tok_find(t, "<|reserved_special_token_247|>"), 128255);
    tok_close(t);
    for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
        many_ranks(&b, is[i].ranks);
        struct tok_options o = {.path = put("ranks", b.data)};
        T_OK(tok_open(&o, &t, &e), &e);
        const struct tok_info *info = tok_info(t);
        T_EQ(info->vocab_size, is[i].size);
        T_EQ(info->eod, is[i].eod_id);
        T_STR(info->eod_piece, is[i].eod);
        T_EQ(info->bos, is[i].bos ? tok_find(t, is[i].bos) : -1);
        T_EQ(tok_find(t, is[i].last), is[i].size - 1);
        gives(t, "e\u0301", !strcmp(is[i].name, "qwen") ? "195 169" : "101 204 129");
        tok_close(t);
    }
    T_OK(open_ranks("", "qwen", &t, &e),
         &e); /* by name: with other ranks, the special tokens are dropped */
    T_EQ(tok_info(t)->vocab_size, 256);
    gives(t, "e\u0301", "195 169");
    tok_close(t);
    buf_finish(&b);
}

/* All bytes, then ab and abc. */
static void ranks_in_json(struct buf *b, int bytes, const char *more)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buf_reset(b);
    for (int i = 0; i < bytes; i++)
        buf_addf(b, "%s{\"rank\":%d,\"token_bytes\":\"%c%c==\",\"token_str\":null}", i ? "," : "[",
                 i, digit[i >> 2], digit[(i & 3) << 4]);
    buf_adds(b, more);
    buf_adds(b, "]");
    buf_str(b);
}

#define RANK(n, text) ",{\"rank\":" #n ",\"token_bytes\":\"" text "\",\"token_str\":\"?\"}"

static void tiktoken_in_json(void)
{
    static const char *const few[] = {"<unk>", "</s>"}, *const own[] = {"<s>", "</s>", "<unk>",
                                                                        "@"};
    struct tokenizer *t;
    struct err e;
    struct buf b = {0};
    ranks_in_json(&b, 256, RANK(256, "YWI=") RANK(257, "YWJj") RANK(258, "YmM="));
    struct tok_options o = {
        .path = put("t.json", b.data), .pattern = "v2", .vocab_size = 268, .num_special = 10};
    T_OK(tok_open(&o, &t, &e), &e);
    T_STR(tok_info(t)->type_name, "TikTokenizer");
    T_EQ(tok_info(t)->vocab_size, 268); /* the last rank does not fit */
    T_EQ(tok_info(t)->eod, 2);
    T_EQ(tok_info(t)->bos, 1);
    T_EQ(tok_info(t)->unk, 0);
    T_PIECE(t, 9, "<SPECIAL_9>");
    gives(t, "abc bc", "267 42 108 109");
    gives(t, "</s>", "70 57 125 72"); /* text */
    tok_close(t);
    o.special = own;
    o.nspecial = 4;
    o.specials = TOK_SPECIALS_PARSE;
    o.pattern = "v1";
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "'@' is also a token of text");
    o.nspecial = 3;
    T_OK(tok_open(&o, &t, &e), &e);
    T_EQ(tok_info(t)->eod, 1);
    gives(t, "ab</s><SPECIAL_3>", "266 1 3");
    tok_close(t);
    o.special = few;
    o.nspecial = 2;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "lack <s>");
    o.nspecial = 0;
    o.vocab_size = 300;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "a list of 259 tokens");
    o.vocab_size = 10;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "10 (--tiktoken-num-special-tokens)");
    o.pattern = NULL;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "pre-tokenizer pattern");
    o = (struct tok_options){.path = o.path, .pattern = "v2", .vocab_size = 267, .num_special = 10};
    ranks_in_json(&b, 256, RANK(255, "YWI="));
    put("t.json", b.data);
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "entry 256 is not an object with rank 256");
    ranks_in_json(&b, 256, RANK(256, "YWI"));
    put("t.json", b.data);
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "are not base64");
    ranks_in_json(&b, 255, RANK(255, "YWI=") RANK(256, "YWJj"));
    put("t.json", b.data);
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "rank 255 is not the byte 0xff");
    o.type = TOK_HUGGINGFACE;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "holds tiktoken's ranks in JSON");
    buf_finish(&b);
}

#define TEKKEN(config, special)                                                                    \
    "{\"config\":{\"pattern\":\"\\\\p{N}|\\\\P{N}+\"," config                                      \
    "\"default_num_special_tokens\":22}," special "\"vocab\":"

static int open_tekken(const char *head, const struct buf *list, struct tokenizer **ret,
                       struct err *e)
{
    struct buf b = {0};
    struct tok_options o = {.path = t_path("tekken.json"), .specials = TOK_SPECIALS_PARSE};
    buf_addf(&b, "%s%s}", head, list->data);
    put("tekken.json", buf_str(&b));
    buf_finish(&b);
    return tok_open(&o, ret, e);
}

static void tekken(void)
{
    struct tokenizer *t;
    struct err e;
    struct buf b = {0};
    ranks_in_json(&b, 256, RANK(256, "YWI=") RANK(257, "YWJj") RANK(258, "YmM="));
    const char *usual =
        TEKKEN("\"version\":\"v3\",\"default_vocab_size\":280,", "\"special_tokens\":null,");
    T_OK(open_tekken(usual, &b, &t, &e), &e);
    T_STR(tok_info(t)->type_name, "TikTokenizer");
    T_EQ(tok_info(t)->vocab_size, 280); /* the last rank does not fit */
    T_EQ(tok_info(t)->eod, 2);
    T_EQ(tok_info(t)->pad, 11);
    T_PIECE(t, 19, "[TOOL_CONTENT]");
    T_PIECE(t, 21, "<SPECIAL_21>");
    gives(t, "abc1bc[INST]", "279 71 120 121 3");
    tok_close(t);
    T_OK(open_tekken(TEKKEN("\"version\":\"v13\",\"default_vocab_size\":281,",
                            "\"special_tokens\":[{\"rank\":0,\"token_str\":\"<unk>\"},{\"rank\":1,"
                            "\"token_str\":\"</s>\"},{\"rank\":2,\"token_str\":\"<s>\"}],"),
                     &b, &t, &e),
         &e);
    T_EQ(tok_info(t)->eod, 1);
    gives(t, "bc<s><SPECIAL_3>", "280 2 3");
    tok_close(t);
    T_ERR(open_tekken(TEKKEN("\"version\":\"v13\",\"default_vocab_size\":281,", ""), &b, &t, &e),
          &e, ERR_DATA, "lacks special_tokens, which version v13 must have");
    T_ERR(open_tekken(TEKKEN("\"version\":\"v3\",\"default_vocab_size\":282,", ""), &b, &t, &e), &e,
          ERR_DATA, "a list of 259 tokens, but a vocabulary of 282");
    T_ERR(open_tekken(TEKKEN("\"version\":\"v3\",\"default_vocab_size\":22,", ""), &b, &t, &e), &e,
          ERR_DATA, "22 special tokens in a vocabulary of 22");
    T_ERR(open_tekken(TEKKEN("\"default_vocab_size\":280,", ""), &b, &t, &e), &e, ERR_DATA,
          "version");
    T_ERR(open_tekken(TEKKEN("\"version\":\"v11\",\"default_vocab_size\":280,",
                             "\"special_tokens\":[{\"rank\":1,\"token_str\":\"<unk>\"}],"),
                      &b, &t, &e),
          &e, ERR_DATA, "entry 0 is not a token_str of rank 0");
    T_ERR(open_tekken("{\"config\":3,\"vocab\":", &b, &t, &e), &e, ERR_DATA, "lacks the object");
    struct tok_options o = {.path = t_path("tekken.json"), .pattern = "v2"};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "itself includes");
    buf_finish(&b);
}

static void bert(void)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.path = put("vocab.txt", "[PAD]\n[UNK]\r\n[CLS]\na\n##b \n,\ne\n")};
    T_OK(tok_open(&o, &t, &e), &e);
    T_STR(tok_info(t)->type_name, "BertWordPieceLowerCase");
    T_EQ(tok_info(t)->vocab_size, 9);
    T_EQ(tok_info(t)->bos, 7);
    gives(t, "A,ab \u00c9 abc", "3 5 3 4 6 1");
    tok_close(t);
    o.type = TOK_BERT_CASE;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "lacks [SEP], which BertWordPieceCase needs");
    o.path = put("vocab.txt", "[PAD]\n[UNK]\r\n[CLS]\na\n##b \n,\ne\n[SEP]\n[MASK]\n");
    T_OK(tok_open(&o, &t, &e), &e);
    gives(t, "A,ab", "1 5 3 4");
    T_EQ(tok_info(t)->eod, 10);
    tok_close(t);
    o.type = TOK_TIKTOKEN;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "holds BERT's vocab.txt");
    o = (struct tok_options){.path = put("vocab.txt", "[UNK]\na\na\n")};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_DATA, "twice");
}

static void long_texts_in_parts(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false"), .added = HF_TOKEN("b a", "")};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids whole = {0}, parts = {0};
    struct buf text = {0};
    for (int i = 0; i < 60000; i++)
        buf_adds(&text, &"abc ab  b a\u00e9\n"[t_rand(1, (uint64_t)i) % 12]);
    T_OK(tok_encode(t, w, text.data, text.len, &whole, &e), &e);
    for (size_t at = 0, k; at < text.len; at += k) {
        k = text.len - at < 10007 ? text.len - at : 10007;
        T_OK(tok_encode_part(t, w, text.data + at, k, at + k == text.len, &parts, &e), &e);
        T_CHECK(at < 200000 || parts.n); /* not all of it is kept */
    }
    T_EQ(whole.n, parts.n);
    T_MEM(whole.id, parts.id, whole.n * sizeof(*whole.id));
    buf_finish(&text);
    tok_ids_finish(&whole);
    tok_ids_finish(&parts);
    tok_work_destroy(w);
    tok_close(t);
}

T_MAIN(T_CASE(gpt2), T_CASE(gpt2_needs_all_bytes), T_CASE(tiktoken), T_CASE(known_ranks),
       T_CASE(tiktoken_in_json), T_CASE(tekken), T_CASE(bert), T_CASE(long_texts_in_parts))
