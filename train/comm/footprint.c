/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/footprint.h"

#include <stdlib.h>

#include "train/comm/call.h"

/* ---- messages ----------------------------------------------------------------------------- */

static uint64_t bytes_of(struct tensor t)
{
    return tensor_none(t) ? 0 : tensor_bytes(t);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct comm_staged comm_wire_staged(const struct comm *c, const struct comm_call *call)
{
    uint64_t n = (uint64_t)comm_size(c, call->group), to = bytes_of(call->to);
    struct comm_staged s = {0};
    if (n <= 1)
        return s;
    switch (call->kind) {
    case COMM_ALL_REDUCE: /* parts of a slice from each, then slices, each of one round */
    case COMM_REDUCE_SCATTER:
        s.scratch = least(WIRE_SCRATCH, call->kind == COMM_ALL_REDUCE ? to : bytes_of(call->from));
        s.early = s.scratch;
        break;
    case COMM_ALL_GATHER:
        s.early = to - to / n;
        break;
    default:
        s.early = to;
    }
    s.early = least(s.early, WIRE_EARLY);
    return s;
}

static void leave(struct comm_staging *s, struct comm_staged *call)
{
    s->sum.scratch -= call->scratch;
    s->sum.early -= call->early;
    *call = (struct comm_staged){0};
}

struct comm_ticket comm_staging_issue(struct comm_staging *s, struct comm_staged call)
{
    struct comm_staged *at = &s->call[++s->issued % COMM_IN_FLIGHT];
    leave(s, at); /* it is waited for now */
    *at = call;
    s->sum.scratch += call.scratch;
    s->sum.early += call.early;
    uint64_t now = s->sum.scratch + least(s->sum.early, WIRE_EARLY);
    s->most = now > s->most ? now : s->most;
    return (struct comm_ticket){s->issued};
}

void comm_staging_wait(struct comm_staging *s, struct comm_ticket t)
{
    if (t.number && t.number + COMM_IN_FLIGHT > s->issued)
        leave(s, &s->call[t.number % COMM_IN_FLIGHT]);
}

/* ---- NCCL --------------------------------------------------------------------------------- */

/* Of LL: 8 lines of 16 bytes for each of 512 threads, in 8 steps; of LL128: 120 words of 8 bytes
 * for each of 640 threads, in 8 steps. */
enum {
    SIMPLE = 4 << 20,
    LL = 8 * 512 * 8 * 16,
    LL128 = 120 * 640 * 8 * 8,
    RING_CHANNELS = 24,
    MESSAGE_CHANNELS = 32,
    NET_CHANNELS = 4,     /* to one rank, where some are on other machines */
    NODE = 8,             /* GPUs of a machine */
    SHARED = 2 * 64 << 20 /* to and from ranks on other machines: 32 channels of 16 x 128 KiB */
};

/* A variable's number; `usual` where it has none. */
static int64_t number_of(const char *variable, int64_t usual)
{
    const char *text = getenv(variable);
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : 0;
    return n > 0 && !*end ? n : usual;
}

struct nccl_buffers nccl_buffers(void)
{
    int64_t most = number_of("NCCL_MAX_NCHANNELS", MESSAGE_CHANNELS);
    uint64_t simple = (uint64_t)number_of("NCCL_BUFFSIZE", SIMPLE);
    return (struct nccl_buffers){.connection = simple + LL + LL128,
                                 .ring = (int)least((uint64_t)most, RING_CHANNELS),
                                 .messages = (int)least((uint64_t)most, MESSAGE_CHANNELS)};
}

/* Of a communicator of n ranks: in each channel one before it in the ring, and in a tree one above
 * and one below that is not the same; with more machines one more. */
static uint64_t collectives(struct nccl_buffers b, int n)
{
    int peers = n <= NODE ? 2 : 3;
    return b.connection * (uint64_t)b.ring * (uint64_t)(n - 1 < peers ? n - 1 : peers);
}

static uint64_t messages(struct nccl_buffers b, int n)
{
    if (n <= NODE)
        return b.connection * (uint64_t)b.messages * (uint64_t)(n - 1);
    int each = b.messages < NET_CHANNELS ? b.messages : NET_CHANNELS;
    return b.connection * (uint64_t)each * (NODE - 1) + SHARED;
}

uint64_t comm_nccl_bytes(struct mesh m, int rank, struct nccl_buffers b)
{
    uint64_t sum = 0;
    for (int g = 0; g < GROUP_COUNT; g++) {
        int n = mesh_group_size(m, (enum group)g);
        bool ring = g == GROUP_PP || g == GROUP_CP;
        if (n == 1 || mesh_group_index(m, rank, (enum group)g) < 0)
            continue;
        sum += collectives(b, n);
        if (ring || g == GROUP_EP)
            sum += messages(b, n);
        if (ring) /* to and from the next, and the one before */
            sum += (n > 2 ? 4 : 2) * (collectives(b, 2) + messages(b, 2));
    }
    return sum;
}
