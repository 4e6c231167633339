/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/greet.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/core/bytes.h"
#include "base/core/utf8.h"

#define MAGIC "weftmeet"

/* Where the parts of a hello and of an answer begin. */
enum {
    MAGIC_BYTES = 8,
    AT_VERSION = 8,
    AT_WORLD = 12,
    AT_FROM = 16,
    AT_TO = 20,
    AT_PORT = 24,
    AT_JOB = 32,
    AT_HELLO_RANDOM = 48,
    AT_VERDICT = 12,
    AT_ANSWER_RANDOM = 16,
    AT_ANSWER_PROOF = 48,
    RANDOM = 32
};

static void fill_random(uint8_t *at)
{
    ssize_t n = getrandom(at, RANDOM, 0);
    BUG_ON(n != RANDOM, "the system gave %zd random bytes", n);
}

/* Of the side that `label` names, over the hello and n bytes of the answer. */
static void prove(const struct greet *g, const char label[16], size_t n, uint8_t ret[SHA_BYTES])
{
    uint8_t text[16 + GREET_HELLO + GREET_ANSWER];
    memcpy(text, label, 16);
    memcpy(text + 16, g->hello, GREET_HELLO);
    memcpy(text + 16 + GREET_HELLO, g->answer, n);
    hmac_once(g->self->token->key, SHA_BYTES, text, 16 + GREET_HELLO + n, ret);
}

static const char accepts_label[16] = "weft accepts", connects_label[16] = "weft connects";

static void expect(struct greet *g, uint8_t *at, size_t n)
{
    g->in = at;
    g->in_bytes = n;
    g->got = 0;
}

static void speak(struct greet *g, const uint8_t *at, size_t n)
{
    g->out = at;
    g->out_bytes = n;
}

static void end(struct greet *g, enum greet_verdict v)
{
    g->over = true;
    g->verdict = v;
}

void greet_connect(struct greet *g, const struct greet_self *self, int to)
{
    *g = (struct greet){.self = self, .rank = (uint32_t)to, .world = (uint32_t)self->world};
    memcpy(g->hello, MAGIC, MAGIC_BYTES);
    store_u32(g->hello + AT_VERSION, GREET_VERSION);
    store_u32(g->hello + AT_WORLD, (uint32_t)self->world);
    store_u32(g->hello + AT_FROM, (uint32_t)self->rank);
    store_u32(g->hello + AT_TO, (uint32_t)to);
    store_u32(g->hello + AT_PORT, (uint32_t)self->port);
    memcpy(g->hello + AT_JOB, self->token->job, TOKEN_JOB);
    fill_random(g->hello + AT_HELLO_RANDOM);
    speak(g, g->hello, GREET_HELLO);
    expect(g, g->answer, GREET_ANSWER);
}

void greet_accept(struct greet *g, const struct greet_self *self)
{
    *g = (struct greet){.self = self, .accepts = true};
    expect(g, g->hello, GREET_HELLO);
}

/* ---- the side that accepts --------------------------------------------------------------------
 */

static void start_answer(struct greet *g, enum greet_verdict v)
{
    memcpy(g->answer, MAGIC, MAGIC_BYTES);
    store_u32(g->answer + AT_VERSION, GREET_VERSION);
    store_u32(g->answer + AT_VERDICT, (uint32_t)v);
    speak(g, g->answer, GREET_ANSWER);
}

static void hear_hello(struct greet *g)
{
    g->world = load_u32(g->hello + AT_WORLD);
    g->rank = load_u32(g->hello + AT_FROM);
    g->port = load_u32(g->hello + AT_PORT);
    enum greet_verdict v = GREET_FINE;
    if (memcmp(g->hello + AT_JOB, g->self->token->job, TOKEN_JOB) != 0)
        v = GREET_OTHER_JOB;
    else if (load_u32(g->hello + AT_TO) != (uint32_t)g->self->rank)
        v = GREET_OTHER_RANK;
    start_answer(g, v);
    expect(g, g->proof, GREET_PROOF);
    if (v != GREET_FINE) {
        end(g, v);
        return;
    }
    fill_random(g->answer + AT_ANSWER_RANDOM);
    prove(g, accepts_label, AT_ANSWER_PROOF, g->answer + AT_ANSWER_PROOF);
}

static void hear_proof(struct greet *g)
{
    uint8_t want[SHA_BYTES];
    prove(g, connects_label, GREET_ANSWER, want);
    end(g, hash_equal(want, g->proof, SHA_BYTES) ? GREET_FINE : GREET_NO_TOKEN);
}

/* ---- the side that connects -------------------------------------------------------------------
 */

static void hear_answer(struct greet *g)
{
    uint8_t want[SHA_BYTES];
    uint32_t verdict = load_u32(g->answer + AT_VERDICT);
    if (verdict != GREET_FINE) {
        end(g, verdict < GREET_VERDICTS ? (enum greet_verdict)verdict : GREET_GARBAGE);
        return;
    }
    prove(g, accepts_label, AT_ANSWER_PROOF, want);
    if (!hash_equal(want, g->answer + AT_ANSWER_PROOF, SHA_BYTES)) {
        end(g, GREET_NO_TOKEN);
        return;
    }
    prove(g, connects_label, GREET_ANSWER, g->proof);
    speak(g, g->proof, GREET_PROOF);
    end(g, GREET_FINE);
}

/* ---- bytes ------------------------------------------------------------------------------------
 */

size_t greet_room(const struct greet *g, uint8_t **ret)
{
    *ret = g->in + g->got;
    return g->over ? 0 : g->in_bytes - g->got;
}

void greet_take(struct greet *g, size_t n)
{
    BUG_ON(g->over || n > g->in_bytes - g->got, "%zu bytes of a greeting", n);
    g->got += n;
    bool opening = g->in != g->proof;
    size_t known = g->got < MAGIC_BYTES ? g->got : MAGIC_BYTES;
    if (opening && memcmp(g->in, MAGIC, known) != 0) {
        end(g, GREET_GARBAGE);
        return;
    }
    if (opening && g->got >= AT_VERSION + 4) { /* what follows may be laid out in another way */
        g->version = load_u32(g->in + AT_VERSION);
        if (g->version != GREET_VERSION) {
            if (g->accepts)
                start_answer(g, GREET_OTHER_VERSION);
            end(g, GREET_OTHER_VERSION);
            return;
        }
    }
    if (g->got < g->in_bytes)
        return;
    if (!g->accepts)
        hear_answer(g);
    else if (opening)
        hear_hello(g);
    else
        hear_proof(g);
}

size_t greet_output(const struct greet *g, const uint8_t **ret)
{
    *ret = g->out;
    return g->out_bytes;
}

void greet_sent(struct greet *g, size_t n)
{
    BUG_ON(n > g->out_bytes, "%zu bytes of a greeting", n);
    if (n) /* a NULL without bytes stays one */
        g->out += n;
    g->out_bytes -= n;
}

void greet_reason(const struct greet *g, char *ret, size_t size)
{
    static const char *const reason[GREET_VERDICTS] = {
        [GREET_FINE] = "it did not finish its greeting",
        [GREET_OTHER_JOB] = "it is of another job: its job token is another",
        [GREET_OTHER_RANK] = "it calls another rank",
        [GREET_NO_TOKEN] = "it does not have the job token"};
    char plain[48];
    if (g->verdict == GREET_GARBAGE) {
        utf8_plain((const char *)g->in, g->got < 16 ? g->got : 16, plain, sizeof(plain));
        snprintf(ret, size, "it does not speak the protocol of a job: \"%s\"", plain);
    } else if (g->verdict == GREET_OTHER_VERSION) {
        snprintf(ret, size,
                 "it is another version of the program (its protocol is %u, expected %d)",
                 g->version, GREET_VERSION);
    } else if (!g->over && !g->got && g->in != g->proof) {
        snprintf(ret, size, "it said nothing");
    } else {
        snprintf(ret, size, "%s", reason[g->verdict]);
    }
}
