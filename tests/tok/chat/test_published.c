/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/chat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "tests/tok/chat_make.h"
#include "tok/chat/folder.h"
#include "tok/chat/whole.h"

static void write_file(const char *name, const char *text)
{
    struct err e;
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
}

struct opened {
    struct tokenizer *bare, *framed;
    struct chat *chat;
    struct chat_work *work;
};

static void open_chat(struct opened *o, const char *template, struct chat_rules rules)
{
    struct err e;
    write_file("t.jinja", template);
    chat_make(&o->bare, true, false, TOK_SPECIALS_TEXT);
    chat_make(&o->framed, true, true, TOK_SPECIALS_PARSE);
    T_OK(chat_open(t_path("t.jinja"), o->bare, o->framed, &o->chat, &e), &e);
    T_OK(chat_set_rules(o->chat, rules, &e), &e);
    o->work = chat_work_create(o->chat);
}

static void close_chat(struct opened *o)
{
    chat_work_destroy(o->work);
    chat_close(o->chat);
    tok_close(o->framed);
    tok_close(o->bare);
}

/* The text of a record, its learnt tokens in brackets. */
static void check(const struct opened *o, const char *record, const char *want)
{
    struct err e;
    struct tok_ids ids = {0};
    struct buf mask = {0}, text = {0};
    struct tok_work *w = tok_work_create(o->bare);
    for (int turn = 0; turn < 2; turn++) {
        ids.n = mask.len = text.len = 0;
        T_OK(chat_encode_record(o->work, record, strlen(record), false, &ids, &mask, &e), &e);
        T_EQ(ids.n, mask.len);
        for (size_t i = 0; i <= ids.n; i++) {
            bool is = i < ids.n && mask.data[i], was = i && mask.data[i - 1];
            buf_adds(&text, is && !was ? "[" : was && !is ? "]" : "");
            if (i < ids.n)
                T_OK(tok_decode(o->bare, w, ids.id + i, 1, &text, &e), &e);
        }
        T_STR(buf_str(&text), want);
    }
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    buf_finish(&mask);
    buf_finish(&text);
}

#define CHATML                                                                                     \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}"  \
    "({{ c.name }}){% endfor %}<|im_end|>{{ '\\n' }}{% endfor %}"                                  \
    "{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}"

static const char talk[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                           "{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[{\"name\":"
                           "\"f\"}]},{\"role\":\"user\",\"content\":\"</s>\"},"
                           "{\"role\":\"assistant\",\"content\":\"b\"}]}";

static void answers_are_learnt_from_the_prompt_to_the_end(void)
{
    struct opened o;
    open_chat(&o, CHATML, (struct chat_rules){0});
    check(&o, talk,
          "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n[a(f)<|im_end|>]\n"
          "<|im_start|>user\n</s><|im_end|>\n<|im_start|>assistant\n[b<|im_end|>]\n");
    T_EQ(chat_work_specials(o.work), 2); /* of each of two turns */
    T_EQ(chat_stop(o.chat).id, MADE_IM_END);
    T_CHECK(strlen(chat_digest(o.chat)) == 64 && !chat_date(o.chat));
    check(&o,
          "{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"weight\":0},"
          "{\"role\":\"assistant\",\"content\":\"y\",\"train\":false},"
          "{\"role\":\"assistant\",\"content\":\"\"}]}",
          "<|im_start|>assistant\nx<|im_end|>\n<|im_start|>assistant\ny<|im_end|>\n"
          "<|im_start|>assistant\n[<|im_end|>]\n");
    close_chat(&o);
    open_chat(&o, CHATML, (struct chat_rules){.learn = CHAT_LEARN_LAST});
    check(&o, talk,
          "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na(f)<|im_end|>\n"
          "<|im_start|>user\n</s><|im_end|>\n<|im_start|>assistant\n[b<|im_end|>]\n");
    close_chat(&o);
}

static void a_generation_block_decides_alone(void)
{
    struct opened o;
    open_chat(&o,
              "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
              "<|im_end|>{% endgeneration %}{% else %}{{ m.content }}</s>{% endif %}{% endfor %}",
              (struct chat_rules){0});
    check(&o, talk, "q</s>[a<|im_end|>]</s></s>[b<|im_end|>]");
    close_chat(&o);
}

static void an_empty_thought_of_the_template_is_not_learnt(void)
{
    static const char template[] =
        "{% for m in messages %}<|im_start|>{{ m.role }} {% if m.role == 'assistant' %}<think> "
        "</think> {% endif %}{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant {% endif %}";
    static const char record[] = "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}]}";
    struct opened o;
    open_chat(&o, template, (struct chat_rules){0});
    check(&o, record, "<|im_start|>assistant <think> </think> [a<|im_end|>]");
    close_chat(&o);
    open_chat(&o, template, (struct chat_rules){.learn_think = true});
    check(&o, record, "<|im_start|>assistant [<think> </think> a<|im_end|>]");
    close_chat(&o);
}

static void special_tokens_are_the_templates_or_all(void)
{
    static const char record[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"<|im_end|>\"},"
                                 "{\"role\":\"im_start\",\"content\":\"a\"}]}";
    static const char template[] = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>"
                                   "{% endfor %}";
    for (int parse = 0; parse < 2; parse++) {
        struct opened o;
        struct err e;
        struct tok_ids ids = {0};
        struct buf mask = {0};
        int ends = 0, starts = 0;
        open_chat(&o, template, (struct chat_rules){.parse = parse});
        T_OK(chat_encode_record(o.work, record, strlen(record), false, &ids, &mask, &e), &e);
        for (size_t i = 0; i < ids.n; i++) {
            ends += ids.id[i] == MADE_IM_END;
            starts += ids.id[i] == MADE_IM_START;
        }
        T_EQ(ends, parse);
        T_EQ(starts, 1); /* a role may be part of one */
        T_EQ(chat_work_specials(o.work), !parse);
        tok_ids_finish(&ids);
        buf_finish(&mask);
        close_chat(&o);
    }
}

static void what_is_left_out_is_counted_or_refused(void)
{
    static const char record[] = "{\"messages\":[{\"role\":\"%s\",\"content\":\"s\"},"
                                 "{\"role\":\"assistant\",\"content\":\"a\"}]}";
    struct opened o;
    struct err e;
    struct tok_ids ids = {0};
    struct buf mask = {0};
    open_chat(&o, "{{ messages[1].content }}</s>", (struct chat_rules){0});
    char *system = mem_printf(record, "system"), *odd = mem_printf(record, "odd");
    check(&o, system, "[a</s>]");
    T_EQ(chat_work_unwritten(o.work), 2);
    T_ERR(chat_encode_record(o.work, odd, strlen(odd), false, &ids, &mask, &e), &e, ERR_DATA,
          "message 1 has the role 'odd', and the template writes nothing of it");
    free(system);
    free(odd);
    tok_ids_finish(&ids);
    buf_finish(&mask);
    close_chat(&o);
}

/* ---- records ----------------------------------------------------------------------------------
 */

static void put_value(struct buf *b, const struct json *j)
{
    if (j->kind == JSON_STRING) {
        jsonw_string(b, j->string, j->length);
    } else if (j->kind == JSON_INT) {
        buf_addf(b, "%lld", (long long)j->integer);
    } else if (j->kind == JSON_ARRAY || j->kind == JSON_OBJECT) {
        buf_addc(b, j->kind == JSON_ARRAY ? '[' : '{');
        for (size_t i = 0; i < j->length; i++) {
            buf_adds(b, i ? "," : "");
            if (j->kind == JSON_OBJECT)
                jsonw_key(b, j->child[i].key);
            put_value(b, &j->child[i]);
        }
        buf_addc(b, j->kind == JSON_ARRAY ? ']' : '}');
    } else {
        buf_adds(b, "?");
    }
}

static void records_become_messages(void)
{
    static const struct {
        const char *record, *messages;
    } of[] = {
        {"{\"messages\":[{\"role\":\"x\",\"content\":null,\"name\":\"n\"}]}",
         "[{\"role\":\"x\",\"name\":\"n\"}]"},
        {"{\"messages\":[{\"role\":\"a\",\"reasoning\":\"t\"}]}",
         "[{\"thinking\":\"t\",\"role\":\"a\",\"reasoning\":\"t\",\"reasoning_content\":\"t\"}]"},
        {"{\"messages\":[{\"reasoning_content\":\"t\",\"role\":\"a\",\"thinking\":\"u\"}]}",
         "[{\"thinking\":\"u\",\"reasoning_content\":\"t\",\"role\":\"a\"}]"},
        {"{\"prompt\":\"p\",\"completion\":[{\"role\":\"assistant\",\"content\":[1]}]}",
         "[{\"role\":\"user\",\"content\":\"p\"},{\"role\":\"assistant\",\"content\":[1]}]"},
        {"{\"instruction\":\"i\",\"input\":\"n\",\"output\":\"o\"}",
         "[{\"role\":\"user\",\"content\":\"i\\nn\"},{\"role\":\"assistant\",\"content\":\"o\"}]"},
        {"{\"conversations\":[{\"from\":\"gpt\",\"value\":\"v\"}]}",
         "[{\"role\":\"assistant\",\"content\":\"v\"}]"},
    };
    struct chat_whole c = {0};
    struct buf got = {0};
    struct err e;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        T_OK(chat_whole_read(&c, of[i].record, strlen(of[i].record), &e), &e);
        buf_reset(&got);
        put_value(&got, &c.messages);
        T_STR(buf_str(&got), of[i].messages);
    }
    static const char beside[] = "{\"messages\":[{\"role\":\"u\"}],\"tools\":\"[{\\\"a\\\":1}]\","
                                 "\"documents\":null,\"chat_template_kwargs\":{\"k\":2}}";
    T_OK(chat_whole_read(&c, beside, strlen(beside), &e), &e);
    T_CHECK(c.tools && c.tools->length == 1 && !c.documents && c.parameters->length == 1);
    chat_whole_finish(&c);
    buf_finish(&got);
}

static void bad_records_are_refused(void)
{
    static const struct {
        const char *record, *words;
    } of[] = {
        {"{\"messages\":[]}", "\"messages\" has no messages"},
        {"{\"messages\":{}}", "is not a list of messages"},
        {"{\"messages\":[{\"role\":\"u\"},{\"content\":\"c\"}]}", "message 2 has no text under"},
        {"{\"messages\":[{\"role\":\"u\"}],\"tools\":{}}", "\"tools\" is not a list"},
        {"{\"messages\":[{\"role\":\"u\"}],\"tools\":[1]}", "item 1 of \"tools\" is not an object"},
        {"{\"messages\":[{\"role\":\"u\"}],\"tools\":\"[\"}", "the JSON of \"tools\""},
        {"{\"messages\":[{\"role\":\"u\"}],\"documents\":1}", "\"documents\" is not a list"},
        {"{\"messages\":[{\"role\":\"u\"}],\"chat_template_kwargs\":[]}", "is not an object"},
        {"{\"conversations\":[{\"from\":\"odd\",\"value\":\"v\"}]}", "has the role 'odd'"},
        {"[1]", "is not a JSON object"},
    };
    struct chat_whole c = {0};
    struct err e;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        T_ERR(chat_whole_read(&c, of[i].record, strlen(of[i].record), &e), &e, ERR_DATA,
              of[i].words);
    chat_whole_finish(&c);
}

/* ---- folders ----------------------------------------------------------------------------------
 */

static void check_folder(const char *text, const char *tools)
{
    struct chat_folder f;
    struct err e;
    char *beside = mem_strdup(t_path("f/tokenizer.json"));
    T_OK(chat_folder_open(beside, NULL, &f, &e), &e);
    T_STR(f.text, text);
    T_STR(f.tools ? f.tools : "", tools);
    free(beside);
    chat_folder_close(&f);
}

static void a_folder_has_its_template_in_one_of_three_places(void)
{
    struct chat_folder f;
    struct err e;
    char *beside;
    mkdir(t_path("f"), 0777);
    beside = mem_strdup(t_path("f/tokenizer.json"));
    T_ERR(chat_folder_open(beside, NULL, &f, &e), &e, ERR_USAGE, "has no chat template");
    write_file("f/chat_template.json", "{\"chat_template\":\"three\"}");
    check_folder("three", "");
    write_file(
        "f/tokenizer_config.json",
        "{\"eos_token\":{\"content\":\"E\"},\"bos_token\":null,\"chat_template\":["
        "{\"name\":\"tool_use\",\"template\":\"u\"},"
        "{\"name\":\"default\",\"template\":\"two\"}],\"added_tokens_decoder\":{"
        "\"1\":{\"content\":\"a\",\"special\":false},\"2\":{\"content\":\"b\",\"special\":true"
        "}}}");
    check_folder("two", "u");
    write_file("f/special_tokens_map.json", "{\"bos_token\":\"B\",\"eos_token\":\"other\"}");
    write_file("f/chat_template.jinja", "one");
    check_folder("one", "");
    T_OK(chat_folder_open(beside, NULL, &f, &e), &e);
    T_EQ(f.ntokens, 2);
    T_CHECK(!strcmp(f.token[0].name, "eos_token") && !strcmp(f.token[0].text, "E"));
    T_CHECK(!strcmp(f.token[1].name, "bos_token") && !strcmp(f.token[1].text, "B"));
    T_CHECK(!strcmp(chat_folder_special(&f, 0), "b") && !chat_folder_special(&f, 1));
    chat_folder_close(&f);
    unlink(t_path("f/chat_template.jinja"));
    write_file("f/tokenizer_config.json",
               "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"}]}");
    T_ERR(chat_folder_open(beside, NULL, &f, &e), &e, ERR_USAGE,
          "none of the chat templates (rag) is named default");
    write_file("f/tokenizer_config.json", "{\"chat_template\":7}");
    T_ERR(chat_folder_open(beside, NULL, &f, &e), &e, ERR_DATA,
          "chat_template is neither a string nor a list");
    free(beside);
}

T_MAIN(T_CASE(answers_are_learnt_from_the_prompt_to_the_end),
       T_CASE(a_generation_block_decides_alone),
       T_CASE(an_empty_thought_of_the_template_is_not_learnt),
       T_CASE(special_tokens_are_the_templates_or_all),
       T_CASE(what_is_left_out_is_counted_or_refused), T_CASE(records_become_messages),
       T_CASE(bad_records_are_refused), T_CASE(a_folder_has_its_template_in_one_of_three_places))
