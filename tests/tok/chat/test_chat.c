/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/chat.h"
#include "tok/chat/form.h"
#include "tok/chat/templates.h"

#include <string.h>

#include "tests/t.h"
#include "tests/tok/chat_make.h"

#define SAYS(r, s)                                                                                 \
    {                                                                                              \
        .role = r, .text = s, .n = sizeof(s) - 1                                                   \
    }

struct case_of {
    const char *name;
    bool framed;
    const struct chat_message *m;
    size_t n;
    bool open;
    const char *text;   /* the result of chat_text */
    const char *learnt; /* the tokens of mask 1, decoded */
};

/* Ids decode to the text with special tokens spelled out, and those of mask 1 to what is to be
 * learnt. */
static void check(const struct case_of *c)
{
    struct err e;
    struct tokenizer *bare, *framed = NULL;
    struct chat *chat;
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    if (c->framed)
        chat_make(&framed, true, true, TOK_SPECIALS_PARSE);
    T_OK(chat_open(c->name, bare, framed, &chat, &e), &e);
    struct chat_work *w = chat_work_create(chat);
    struct tok_work *tw = tok_work_create(bare);
    struct tok_ids ids = {0}, kept = {0};
    struct buf mask = {0}, text = {0}, back = {0}, learnt = {0};
    for (int turn = 0; turn < 2; turn++) { /* the second time with a used work struct */
        ids.n = kept.n = 0;
        buf_reset(&mask);
        buf_reset(&text);
        buf_reset(&back);
        buf_reset(&learnt);
        T_OK(chat_text(chat, w, c->m, c->n, c->open, &text, &e), &e);
        T_STR(buf_str(&text), c->text);
        T_OK(chat_encode(chat, w, c->m, c->n, c->open, &ids, &mask, &e), &e);
        T_EQ(ids.n, mask.len);
        T_OK(tok_decode(bare, tw, ids.id, ids.n, &back, &e), &e);
        T_STR(buf_str(&back), c->text);
        for (size_t i = 0; i < ids.n; i++)
            if (mask.data[i]) {
                *tok_ids_reserve(&kept, 1) = ids.id[i];
                kept.n++;
            }
        T_OK(tok_decode(bare, tw, kept.id, kept.n, &learnt, &e), &e);
        T_STR(buf_str(&learnt), c->learnt);
    }
    tok_ids_finish(&ids);
    tok_ids_finish(&kept);
    buf_finish(&mask);
    buf_finish(&text);
    buf_finish(&back);
    buf_finish(&learnt);
    tok_work_destroy(tw);
    chat_work_destroy(w);
    chat_close(chat);
    tok_close(framed);
    tok_close(bare);
}

static const struct chat_message talk[] = {
    SAYS(CHAT_SYSTEM, "Be good."), SAYS(CHAT_USER, " hi?\n"),    SAYS(CHAT_ASSISTANT, "hi hi"),
    SAYS(CHAT_USER, "more"),       SAYS(CHAT_ASSISTANT, "no\n"),
};
static const struct chat_message task[] = {SAYS(CHAT_USER, "Add."), SAYS(CHAT_INPUT, "1 2"),
                                           SAYS(CHAT_ASSISTANT, "3")};

static void writes_chatml(void)
{
    check(&(struct case_of){.name = "chatml",
                            .m = talk,
                            .n = 5,
                            .text = "<|im_start|>system\nBe good.<|im_end|>\n"
                                    "<|im_start|>user\n hi?\n<|im_end|>\n"
                                    "<|im_start|>assistant\nhi hi<|im_end|>\n"
                                    "<|im_start|>user\nmore<|im_end|>\n"
                                    "<|im_start|>assistant\nno\n<|im_end|>\n",
                            .learnt = "hi hi<|im_end|>no\n<|im_end|>"});
    check(&(struct case_of){.name = "chatml",
                            .m = task,
                            .n = 2,
                            .open = true,
                            .text = "<|im_start|>user\nAdd.\n1 2<|im_end|>\n"
                                    "<|im_start|>assistant\n",
                            .learnt = ""});
}

static void writes_llama3(void)
{
    check(&(struct case_of){
        .name = "llama3",
        .m = talk,
        .n = 5,
        .text = "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe good.<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\nhi?<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\nhi hi<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\nmore<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\nno<|eot_id|>",
        .learnt = "hi hi<|eot_id|>no<|eot_id|>"});
}

static void trims_as_python_does(void)
{
    static const struct chat_message m[] = {SAYS(CHAT_USER, "\x1c\xe3\x80\x80 a b\xc2\xa0\t"),
                                            SAYS(CHAT_ASSISTANT, "\n \xe2\x80\x8b \n")};
    check(&(struct case_of){
        .name = "llama3",
        .m = m,
        .n = 2,
        .text = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\na b<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n\xe2\x80\x8b<|eot_id|>",
        .learnt = "\xe2\x80\x8b<|eot_id|>"});
    static const struct chat_message blank[] = {SAYS(CHAT_USER, "  "), SAYS(CHAT_ASSISTANT, "")};
    check(&(struct case_of){
        .name = "llama3",
        .m = blank,
        .n = 2,
        .text = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>",
        .learnt = "<|eot_id|>"});
}

#define ALPACA "Below is an instruction that describes a task"
#define REQUEST "Write a response that appropriately completes the request.\n\n"

static void writes_alpaca(void)
{
    check(&(struct case_of){.name = "alpaca",
                            .m = task,
                            .n = 3,
                            .text = ALPACA
                            ", paired with an input that provides further context. " REQUEST
                            "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n"
                            "### Response:\n3</s>",
                            .learnt = "3</s>"});
    check(&(struct case_of){.name = "alpaca",
                            .framed = true,
                            .m = talk + 1,
                            .n = 4,
                            .text = "<s>" ALPACA ". " REQUEST
                                    "### Instruction:\n hi?\n\n\n### Response:\nhi hi</s>"
                                    "### Instruction:\nmore\n\n### Response:\nno\n</s>",
                            .learnt = "hi hi</s>no\n</s>"});
    check(&(struct case_of){.name = "alpaca",
                            .m = talk,
                            .n = 3,
                            .text = "Be good.\n\n### Instruction:\n hi?\n\n\n"
                                    "### Response:\nhi hi</s>",
                            .learnt = "hi hi</s>"});
}

static void writes_vicuna(void)
{
    check(&(struct case_of){
        .name = "vicuna",
        .framed = true,
        .m = talk + 1,
        .n = 4,
        .text = "<s>A chat between a curious user and an artificial intelligence assistant. The "
                "assistant gives helpful, detailed, and polite answers to the user's questions. "
                "USER:  hi?\n ASSISTANT: hi hi</s>USER: more ASSISTANT: no\n</s>",
        .learnt = " hi hi</s> no\n</s>"});
}

static void writes_forms_without_special_tokens(void)
{
    check(&(struct case_of){.name = "guanaco",
                            .framed = true,
                            .m = talk + 1,
                            .n = 4,
                            .text = "<s>### Human:  hi?\n### Assistant: hi hi### Human: more"
                                    "### Assistant: no\n</s>",
                            .learnt = " hi hi no\n</s>"});
    check(&(struct case_of){.name = "llm-jp",
                            .m = task,
                            .n = 3,
                            .text = "### 指示：Add. ### 質問：1 2 ### 回答：3",
                            .learnt = "3"});
    check(&(struct case_of){.name = "guanaco",
                            .m = task,
                            .n = 2,
                            .open = true,
                            .text = "### Human: Add.\n1 2### Assistant:",
                            .learnt = ""});
}

/* A token that spans the border of the template and an answer is learnt: here "\n\n". */
static void learns_a_token_that_reaches_across(void)
{
    static const struct chat_message m[] = {SAYS(CHAT_ASSISTANT, "\n\n")};
    check(&(struct case_of){.name = "chatml",
                            .m = m,
                            .n = 1,
                            .text = "<|im_start|>assistant\n\n\n<|im_end|>\n",
                            .learnt = "\n\n\n<|im_end|>"});
}

static void takes_special_strings_for_text(void)
{
    struct err e;
    struct tokenizer *bare;
    struct chat *chat;
    static const struct chat_message m[] = {SAYS(CHAT_USER, "<|im_end|>"),
                                            SAYS(CHAT_ASSISTANT, "</s> <|im_start|>")};
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    T_OK(chat_open("chatml", bare, NULL, &chat, &e), &e);
    struct chat_work *w = chat_work_create(chat);
    struct tok_ids ids = {0};
    struct buf mask = {0};
    T_OK(chat_encode(chat, w, m, 2, false, &ids, &mask, &e), &e);
    size_t starts = 0, ends = 0;
    for (size_t i = 0; i < ids.n; i++) {
        starts += ids.id[i] == MADE_IM_START;
        ends += ids.id[i] == MADE_IM_END;
        T_CHECK(ids.id[i] != MADE_EOS);
    }
    T_EQ(starts, 2);
    T_EQ(ends, 2);
    T_EQ(chat_work_specials(w), 3);
    tok_ids_finish(&ids);
    buf_finish(&mask);
    chat_work_destroy(w);
    chat_close(chat);
    tok_close(bare);
}

static void refuses_what_has_no_place(void)
{
    struct err e;
    struct tokenizer *bare, *poor;
    struct chat *chat;
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    chat_make(&poor, false, false, TOK_SPECIALS_TEXT);
    T_ERR(chat_open("chatmi", bare, NULL, &chat, &e), &e, ERR_USAGE,
          "unknown template 'chatmi'; the templates are chatml, llama3, alpaca, vicuna, guanaco, "
          "llm-jp");
    T_ERR(chat_open("llama3", poor, NULL, &chat, &e), &e, ERR_USAGE,
          "the template llama3 needs the token <|begin_of_text|>, which the vocabulary lacks");
    static const struct {
        const char *name;
        size_t n;
        struct chat_message m[2];
        const char *words;
    } bad[] = {
        {"vicuna", 1, {SAYS(CHAT_TOOL, "x")}, "message 1 has the role 'tool'"},
        {"guanaco", 1, {SAYS(CHAT_SYSTEM, "x")}, "no place"},
        {"alpaca",
         2,
         {SAYS(CHAT_USER, "x"), SAYS(CHAT_SYSTEM, "x")},
         "allows it only as the first"},
        {"chatml", 1, {SAYS(CHAT_INPUT, "x")}, "an input without an instruction"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct tok_ids ids = {0};
        struct buf mask = {0};
        T_OK(chat_open(bad[i].name, bare, NULL, &chat, &e), &e);
        struct chat_work *w = chat_work_create(chat);
        T_ERR(chat_encode(chat, w, bad[i].m, bad[i].n, false, &ids, &mask, &e), &e, ERR_DATA,
              bad[i].words);
        T_EQ(ids.n, 0);
        chat_work_destroy(w);
        chat_close(chat);
    }
    tok_close(bare);
    tok_close(poor);
}

static void says_what_ends_an_answer(void)
{
    static const struct {
        const char *name;
        int64_t id;
        const char *text;
    } all[] = {{"chatml", MADE_IM_END, NULL},
               {"llama3", MADE_EOT, NULL},
               {"alpaca", MADE_EOS, NULL},
               {"vicuna", MADE_EOS, NULL},
               {"guanaco", MADE_EOS, "### Human:"},
               {"llm-jp", MADE_EOS, "### \xe6\x8c\x87\xe7\xa4\xba\xef\xbc\x9a"}};
    struct err e;
    struct tokenizer *bare, *framed;
    struct chat *chat;
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    chat_make(&framed, true, true, TOK_SPECIALS_PARSE);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        T_OK(chat_open(all[i].name, bare, framed, &chat, &e), &e);
        struct chat_stop s = chat_stop(chat);
        T_EQ(s.id, all[i].id);
        T_EQ(s.n, all[i].text ? strlen(all[i].text) : 0);
        T_CHECK(!s.n || !memcmp(s.text, all[i].text, s.n));
        chat_close(chat);
    }
    T_OK(chat_open("guanaco", bare, NULL, &chat, &e), &e);
    T_EQ(chat_stop(chat).id, -1);
    chat_close(chat);
    tok_close(bare);
    tok_close(framed);
}

static void cuts_an_answer(void)
{
    static const struct {
        const char *text;
        size_t kept;
        bool ended;
    } all[] = {{"", 0, false},      {"abc", 3, false},     {"abc#", 3, false},
               {"abc#x", 5, false}, {"a## Q: b", 2, true}, {"a### Q", 3, false},
               {"a# # Q:", 3, true}};
    const struct chat_stop s = {.id = -1, .text = "# Q:", .n = 4};
    bool ended;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        size_t n = strlen(all[i].text);
        T_EQ(chat_answer(&s, all[i].text, n, &ended), all[i].kept);
        T_EQ(ended, all[i].ended);
    }
    T_EQ(chat_answer(&(struct chat_stop){.id = 5}, "# Q:", 4, &ended), 4);
    T_CHECK(!ended);
}

static void every_name_has_a_form(void)
{
#define NAME_TEMPLATE(name) name,
    static const char *const names[] = {CHAT_TEMPLATE_LIST(NAME_TEMPLATE, NAME_TEMPLATE)};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct chat_form *form = chat_form_find(names[i]);
        T_CHECK(form && form->turn[CHAT_USER].open && form->turn[CHAT_ASSISTANT].open);
    }
}

T_MAIN(T_CASE(every_name_has_a_form), T_CASE(writes_chatml), T_CASE(writes_llama3),
       T_CASE(trims_as_python_does), T_CASE(writes_alpaca), T_CASE(writes_vicuna),
       T_CASE(writes_forms_without_special_tokens), T_CASE(learns_a_token_that_reaches_across),
       T_CASE(takes_special_strings_for_text), T_CASE(refuses_what_has_no_place),
       T_CASE(says_what_ends_an_answer), T_CASE(cuts_an_answer))
