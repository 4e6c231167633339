/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/device_io.h"

/* Two buffers of a piece: one is written to a file while the other comes from the device. */
enum { PIECE = 32 << 20, BUFFERS = 2, EVENT_PIECE = 8 };

/* Rows of the box that a piece holds. */
static int64_t piece_rows(struct box_mem m)
{
    int64_t rows = PIECE / (m.box.count[1] * (int64_t)dtype_size(m.dtype));
    return rows > 1 ? rows : 1;
}

/* Bytes of the largest piece. */
static size_t piece_bytes(struct box_mem m)
{
    return (size_t)(piece_rows(m) * m.box.count[1]) * dtype_size(m.dtype);
}

static char *address_of_row(struct box_mem m, int64_t row)
{
    return (char *)m.data + (size_t)(row * m.stride) * dtype_size(m.dtype);
}

/* Rows row0 .. row0 + n - 1 of the box between the device and `buffer`, where they have no gaps. */
static void move(struct dev *d, struct box_mem m, int64_t row0, int64_t n, char *buffer, bool out)
{
    size_t row = (size_t)m.box.count[1] * dtype_size(m.dtype);
    bool whole = m.stride == m.box.count[1];
    size_t bytes = whole ? row * (size_t)n : row;
    for (int64_t i = 0; i < (whole ? 1 : n); i++) {
        char *host = buffer + (size_t)i * row, *there = address_of_row(m, row0 + i);
        d->fn->copy(d, STREAM_COPY, out ? host : there, out ? there : host, bytes);
    }
}

int device_io_load(struct dev *d, struct box_mem to, device_io_read *read, void *arg, struct err *e)
{
    int64_t rows = to.box.count[0], at_once = piece_rows(to);
    void *buffer;
    int code = dev_fault(d, e);
    if (code || !box_count(to.box))
        return code;
    code = d->fn->alloc(d, PLACE_PINNED, piece_bytes(to), &buffer, e);
    if (code)
        return code;
    d->fn->sync(d, STREAM_COMPUTE);
    for (int64_t row = 0; row < rows && !code; row += at_once) {
        int64_t n = rows - row < at_once ? rows - row : at_once;
        struct box_mem piece = {.data = buffer, .dtype = to.dtype, .stride = to.box.count[1]};
        piece.box = to.box;
        piece.box.begin[0] += row;
        piece.box.count[0] = n;
        code = read(arg, piece, e);
        if (code)
            break;
        move(d, to, row, n, buffer, false);
        d->fn->sync(d, STREAM_COPY);
        code = dev_fault(d, e);
    }
    d->fn->release(d, PLACE_PINNED, buffer);
    return code;
}

/* A piece that was sent to a buffer and is not yet written. */
struct sent {
    size_t entry;
    uint64_t at;
    size_t bytes; /* 0: none */
    char *buffer;
    int event;
};

/* Who takes the pieces. */
struct taker {
    device_io_write *write;
    void *arg;
};

static int write_sent(struct dev *d, const struct taker *t, struct sent *p, struct err *e)
{
    if (!p->bytes)
        return 0;
    d->fn->await(d, p->event);
    int code = dev_fault(d, e);
    if (!code)
        code = t->write(t->arg, p->entry, p->at, p->buffer, p->bytes, e);
    p->bytes = 0;
    return code;
}

static int send_entry(struct dev *d, const struct taker *t, struct box_mem m, size_t entry,
                      struct sent sent[BUFFERS], struct err *e)
{
    int64_t rows = m.box.count[0], at_once = piece_rows(m);
    size_t row_bytes = (size_t)m.box.count[1] * dtype_size(m.dtype);
    int code = 0;
    for (int64_t row = 0; row < rows && !code; row += at_once) {
        int64_t n = rows - row < at_once ? rows - row : at_once;
        struct sent now = sent[0];
        move(d, m, row, n, now.buffer, true);
        d->fn->record(d, STREAM_COPY, now.event);
        now.entry = entry;
        now.at = (uint64_t)row * row_bytes;
        now.bytes = (size_t)n * row_bytes;
        code = write_sent(d, t, &sent[1], e);
        sent[0] = sent[1];
        sent[1] = now;
    }
    return code;
}

int device_io_rows(struct dev *d, const struct box_mem *mem, const size_t *order, size_t n,
                   device_io_write *write, void *arg, struct err *e)
{
    const struct taker t = {write, arg};
    size_t most = 1;
    void *buffer;
    for (size_t i = 0; i < n; i++)
        if (box_count(mem[i].box) && piece_bytes(mem[i]) > most)
            most = piece_bytes(mem[i]);
    int code = dev_fault(d, e);
    if (!code)
        code = d->fn->alloc(d, PLACE_PINNED, BUFFERS * most, &buffer, e);
    if (code)
        return code;
    struct sent sent[BUFFERS] = {{.buffer = buffer, .event = EVENT_PIECE},
                                 {.buffer = (char *)buffer + most, .event = EVENT_PIECE + 1}};
    d->fn->sync(d, STREAM_COMPUTE);
    for (size_t i = 0; i < n && !code; i++) {
        size_t k = order ? order[i] : i;
        if (box_count(mem[k].box))
            code = send_entry(d, &t, mem[k], k, sent, e);
    }
    if (!code)
        code = write_sent(d, &t, &sent[1], e);
    d->fn->sync(d, STREAM_COPY);
    if (!code)
        code = dev_fault(d, e);
    d->fn->release(d, PLACE_PINNED, buffer);
    return code;
}

static int write_shard(void *arg, size_t entry, uint64_t at, const void *bytes, size_t n,
                       struct err *e)
{
    return ckpt_shard_write(arg, entry, at, bytes, n, e);
}

int device_io_save(struct dev *d, struct ckpt_shard *s, const struct box_mem *mem, struct err *e)
{
    size_t n;
    const size_t *order = ckpt_shard_order(s, &n);
    return device_io_rows(d, mem, order, n, write_shard, s, e);
}
