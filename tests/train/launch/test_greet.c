/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/greet.h"

#include <string.h>

#include "base/core/bytes.h"
#include "tests/t.h"

/* What is sent from one side to the other, in pieces of at most `piece` bytes; a copy of it. */
struct heard {
    uint8_t at[256];
    size_t n;
};

static void pass(struct greet *from, struct greet *to, size_t piece, struct heard *copy)
{
    const uint8_t *out;
    uint8_t *in;
    for (size_t n, room; (n = greet_output(from, &out)) > 0 && (room = greet_room(to, &in)) > 0;) {
        n = n < room ? n : room;
        n = n < piece ? n : piece;
        memcpy(in, out, n);
        if (copy) {
            memcpy(copy->at + copy->n, out, n);
            copy->n += n;
        }
        greet_sent(from, n);
        greet_take(to, n);
    }
}

static void meet(struct greet *c, struct greet *a, size_t piece, struct heard *copy)
{
    pass(c, a, piece, copy);
    pass(a, c, piece, NULL);
    pass(c, a, piece, copy);
}

static void feed(struct greet *g, const uint8_t *at, size_t n)
{
    uint8_t *in;
    for (size_t room; n && (room = greet_room(g, &in)) > 0;) {
        room = room < n ? room : n;
        memcpy(in, at, room);
        greet_take(g, room);
        at += room;
        n -= room;
    }
}

static struct job_token ours, others;

static struct greet_self self(const struct job_token *t, int rank, int world)
{
    return (struct greet_self){.rank = rank, .world = world, .port = 1000 + rank, .token = t};
}

static void prepare(void)
{
    token_of_text(&ours, "the token of this job");
    token_of_text(&others, "the token of another");
}

static void both_prove_themselves(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 4), three = self(&ours, 3, 4);
    for (size_t piece = 1; piece < 100; piece += 7) {
        struct greet a, c;
        struct heard sent = {0};
        greet_accept(&a, &zero);
        greet_connect(&c, &three, 0);
        meet(&c, &a, piece, &sent);
        T_CHECK(a.over && c.over);
        T_EQ(a.verdict, GREET_FINE);
        T_EQ(c.verdict, GREET_FINE);
        T_EQ(a.rank, 3);
        T_EQ(a.world, 4);
        T_EQ(a.port, 1003);
        T_EQ(sent.n, GREET_HELLO + GREET_PROOF); /* two messages of its own */
    }
}

/* Another world is no stranger's, if the token is right: the caller tells. */
static void another_world_is_proven(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 4), three = self(&ours, 3, 5);
    struct greet a, c;
    greet_accept(&a, &zero);
    greet_connect(&c, &three, 0);
    meet(&c, &a, 100, NULL);
    T_EQ(a.verdict, GREET_FINE);
    T_EQ(a.world, 5);
}

static void another_job(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 2), one = self(&others, 1, 2);
    struct greet a, c;
    greet_accept(&a, &zero);
    greet_connect(&c, &one, 0);
    meet(&c, &a, 100, NULL);
    T_CHECK(a.over && c.over);
    T_EQ(a.verdict, GREET_OTHER_JOB);
    T_EQ(c.verdict, GREET_OTHER_JOB);
}

/* Who has heard the job's id still lacks the key; on either side. */
static void the_id_is_not_enough(void)
{
    prepare();
    struct job_token thief = others;
    memcpy(thief.job, ours.job, sizeof(thief.job));
    struct greet_self zero = self(&ours, 0, 2), one = self(&thief, 1, 2);
    struct greet a, c;
    greet_accept(&a, &zero);
    greet_connect(&c, &one, 0);
    meet(&c, &a, 100, NULL);
    T_EQ(c.verdict, GREET_NO_TOKEN); /* rank 0 has another key than the thief */
    T_CHECK(!a.over);
    feed(&a, c.hello, GREET_PROOF);
    T_CHECK(a.over);
    T_EQ(a.verdict, GREET_NO_TOKEN);
    struct greet_self false_zero = self(&thief, 0, 2), true_one = self(&ours, 1, 2);
    greet_accept(&a, &false_zero);
    greet_connect(&c, &true_one, 0);
    meet(&c, &a, 100, NULL);
    T_EQ(c.verdict, GREET_NO_TOKEN);
    T_CHECK(!a.over);
}

static void nothing_can_be_said_again(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 4), one = self(&ours, 1, 4);
    struct greet a, c;
    struct heard sent = {0};
    greet_accept(&a, &zero);
    greet_connect(&c, &one, 0);
    meet(&c, &a, 100, &sent);
    T_EQ(a.verdict, GREET_FINE);
    struct greet again;
    greet_accept(&again, &zero);
    feed(&again, sent.at, sent.n);
    T_CHECK(again.over);
    T_EQ(again.verdict, GREET_NO_TOKEN);

    /* rank 0's own proof sent back, and that of a connection to another rank */
    struct greet mirror;
    greet_accept(&mirror, &zero);
    feed(&mirror, sent.at, GREET_HELLO);
    feed(&mirror, mirror.answer + 48, GREET_PROOF);
    T_EQ(mirror.verdict, GREET_NO_TOKEN);
    struct greet_self two = self(&ours, 2, 4);
    greet_accept(&mirror, &two);
    feed(&mirror, sent.at, GREET_HELLO);
    T_CHECK(mirror.over);
    T_EQ(mirror.verdict, GREET_OTHER_RANK);
}

/* Any bit of what was sent counts. */
static void every_bit_is_proven(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 4), one = self(&ours, 1, 4);
    for (size_t bit = 0; bit < 8 * GREET_HELLO; bit++) {
        struct greet a, c;
        greet_accept(&a, &zero);
        greet_connect(&c, &one, 0);
        uint8_t hello[GREET_HELLO];
        memcpy(hello, c.hello, sizeof(hello));
        hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
        feed(&a, hello, sizeof(hello));
        greet_sent(&c, GREET_HELLO);
        pass(&a, &c, 100, NULL);
        T_CHECK(c.verdict != GREET_FINE || !c.over);
        pass(&c, &a, 100, NULL);
        T_CHECK(a.verdict != GREET_FINE || !a.over);
    }
}

static void garbage_is_known_early_and_made_plain(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 2);
    struct greet a;
    char why[160];
    greet_accept(&a, &zero);
    greet_reason(&a, why, sizeof(why));
    T_STR(why, "it said nothing");
    feed(&a, (const uint8_t *)"weft", 4);
    T_CHECK(!a.over);
    greet_reason(&a, why, sizeof(why));
    T_STR(why, "it did not finish its greeting");
    greet_accept(&a, &zero);
    feed(&a, (const uint8_t *)"\033[31mGET / HTTP/1.1\r\n", 20);
    T_CHECK(a.over);
    T_EQ(a.verdict, GREET_GARBAGE);
    greet_reason(&a, why, sizeof(why));
    T_STR(why, "it does not speak the protocol of a job: \"\\x1b[31mGET / HTTP/\"");
    const uint8_t *out;
    T_EQ(greet_output(&a, &out), 0);
}

static void another_version_is_named(void)
{
    prepare();
    struct greet_self zero = self(&ours, 0, 2), one = self(&ours, 1, 2);
    struct greet a, c;
    uint8_t hello[24] = "weftmeet\1\0\0\0"; /* version 1, which had 24 bytes */
    char why[160];
    greet_accept(&a, &zero);
    feed(&a, hello, sizeof(hello));
    T_EQ(a.verdict, GREET_OTHER_VERSION);
    greet_reason(&a, why, sizeof(why));
    T_STR(why, "it is another version of the program (its protocol is 1, expected 2)");
    greet_connect(&c, &one, 0);
    greet_sent(&c, GREET_HELLO);
    store_u32(a.answer + 8, 3);
    pass(&a, &c, 100, NULL);
    T_EQ(c.verdict, GREET_OTHER_VERSION);
    greet_connect(&c, &one, 0);
    uint8_t answer[GREET_ANSWER] = "weftmeet\2\0\0\0\xff\xff\xff\x7f"; /* an unknown verdict */
    feed(&c, answer, sizeof(answer));
    T_EQ(c.verdict, GREET_GARBAGE);
}

T_MAIN(T_CASE(both_prove_themselves), T_CASE(another_world_is_proven), T_CASE(another_job),
       T_CASE(the_id_is_not_enough), T_CASE(nothing_can_be_said_again), T_CASE(every_bit_is_proven),
       T_CASE(garbage_is_known_early_and_made_plain), T_CASE(another_version_is_named))
