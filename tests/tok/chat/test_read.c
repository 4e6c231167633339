/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/read.h"

#include <string.h>

#include "tests/t.h"

/* role=text, separated by bars. */
static void reads_as(const char *line, const char *want)
{
    struct chat_record r = {0};
    struct buf b = {0};
    struct err e;
    for (int turn = 0; turn < 2; turn++) {
        buf_reset(&b);
        T_OK(chat_read(&r, line, strlen(line), &e), &e);
        for (size_t i = 0; i < r.n; i++) {
            buf_addf(&b, "%s%s=", i ? "|" : "", chat_role_name(r.m[i].role));
            buf_add(&b, r.m[i].text, r.m[i].n);
        }
        T_STR(buf_str(&b), want);
    }
    chat_record_finish(&r);
    buf_finish(&b);
}

static void reads_each_form(void)
{
    reads_as("{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"content\":\"u\\n\","
             "\"role\":\"user\"},{\"role\":\"assistant\",\"content\":\"\",\"x\":1},"
             "{\"role\":\"tool\",\"content\":\"t\"}]}",
             "system=s|user=u\n|assistant=|tool=t");
    reads_as("{\"id\":7,\"conversations\":[{\"from\":\"human\",\"value\":\"u\"},{\"from\":\"gpt\","
             "\"value\":\"a\"},{\"from\":\"observation\",\"value\":\"o\"}]}",
             "user=u|assistant=a|tool=o");
    reads_as("{\"prompt\":\"p\",\"completion\":\"c\"}", "user=p|assistant=c");
    reads_as("{\"completion\":\"c\",\"prompt\":\"p\",\"response\":\"r\"}", "user=p|assistant=r");
    reads_as("{\"prompt\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
             "\"content\":\"u\"}],\"completion\":[{\"role\":\"assistant\",\"content\":\"a\"}]}",
             "system=s|user=u|assistant=a");
    reads_as("{\"instruction\":\"i\",\"input\":\"\",\"output\":\"o\"}", "user=i|assistant=o");
    reads_as("{\"instruction\":\"i\",\"input\":null,\"output\":\"o\"}", "user=i|assistant=o");
    reads_as("{\"instruction\":\"i\",\"output\":\"o\",\"text\":3}", "user=i|assistant=o");
    reads_as("{\"instruction\":\"i\",\"input\":\"n\",\"output\":\"o\"}",
             "user=i|input=n|assistant=o");
}

static void joins_parts_of_a_content(void)
{
    reads_as("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
             "{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":\"c\"},"
             "{\"role\":\"user\",\"content\":[]},"
             "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"d\"}]}]}",
             "user=ab|assistant=c|user=|user=d");
}

static void refuses(const char *line, const char *words)
{
    struct chat_record r = {0};
    struct err e;
    T_ERR(chat_read(&r, line, strlen(line), &e), &e, ERR_DATA, words);
    chat_record_finish(&r);
}

static void says_what_is_wrong(void)
{
    refuses("[]", "is not a JSON object");
    refuses("{", "byte");
    refuses("", "byte 0");
    refuses("{\"text\":\"x\"}", "has none of the keys");
    refuses("{\"messages\":{}}", "the value of \"messages\" is not a list");
    refuses("{\"messages\":[]}", "\"messages\" has no messages");
    refuses("{\"messages\":[1]}", "message 1 has no text under \"role\"");
    refuses("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"king\","
            "\"content\":\"x\"}]}",
            "message 2 has the role 'king'");
    refuses("{\"messages\":[{\"role\":\"user\\u0000\",\"content\":\"x\"}]}", "has the role 'user'");
    refuses("{\"messages\":[{\"role\":\"user\",\"content\":null}]}",
            "message 1: the value of \"content\" is neither a string");
    refuses("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}",
            "nor a list of parts");
    refuses("{\"conversations\":[{\"role\":\"user\",\"content\":\"x\"}]}",
            "message 1 has no text under \"from\"");
    refuses("{\"prompt\":\"x\"}", "no \"response\" or \"completion\"");
    refuses("{\"prompt\":1,\"response\":\"x\"}", "the value of \"prompt\" is not a string");
    refuses("{\"instruction\":\"x\"}", "has no key \"output\"");
    refuses("{\"instruction\":\"x\",\"output\":\"x\",\"input\":1}",
            "the value of \"input\" is not a string");
}

T_MAIN(T_CASE(reads_each_form), T_CASE(joins_parts_of_a_content), T_CASE(says_what_is_wrong))
