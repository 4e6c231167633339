/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/format/proto.h"
#include "base/io/file.h"
#include "base/io/path.h"

enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};
enum { HEADER = 12, FOOTER = 4, RECORD_MAX = 1 << 24, EVENTS_MAX = 1 << 30 };

static const char version[] = "brain.Event:2";

/* ---- records ------------------------------------------------------------------------------- */

uint32_t events_crc32c(const void *p, size_t n)
{
    static const uint32_t nibble[16] = {0x00000000u, 0x105EC76Fu, 0x20BD8EDEu, 0x30E349B1u,
                                        0x417B1DBCu, 0x5125DAD3u, 0x61C69362u, 0x7198540Du,
                                        0x82F63B78u, 0x92A8FC17u, 0xA24BB5A6u, 0xB21572C9u,
                                        0xC38D26C4u, 0xD3D3E1ABu, 0xE330A81Au, 0xF36E6F75u};
    const unsigned char *s = p;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc = crc >> 4 ^ nibble[(crc ^ s[i]) & 15];
        crc = crc >> 4 ^ nibble[(crc ^ s[i] >> 4) & 15];
    }
    return ~crc;
}

static uint32_t masked_crc(const void *p, size_t n)
{
    uint32_t crc = events_crc32c(p, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void add_u32(struct buf *out, uint32_t v)
{
    unsigned char b[4];
    store_u32(b, v);
    buf_add(out, b, sizeof(b));
}

/* One record. */
static void events_record(struct buf *out, const void *payload, size_t n)
{
    unsigned char length[8];
    store_u64(length, n);
    buf_add(out, length, sizeof(length));
    add_u32(out, masked_crc(length, sizeof(length)));
    buf_add(out, payload, n);
    add_u32(out, masked_crc(payload, n));
}

/* The payload of the record at `at`; 0 if it is not whole. */
static size_t whole_record(const struct buf *b, size_t at)
{
    const char *p = b->data + at;
    if (b->len - at < HEADER || masked_crc(p, 8) != load_u32(p + 8))
        return 0;
    uint64_t n = load_u64(p);
    if (n > RECORD_MAX || b->len - at < HEADER + n + FOOTER)
        return 0;
    return masked_crc(p + HEADER, n) == load_u32(p + HEADER + n) ? (size_t)n : 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void begin_event(struct buf *b, double wall_time, int64_t step)
{
    protow_double(b, EVENT_TIME, wall_time);
    if (step)
        protow_varint(b, EVENT_STEP, (uint64_t)step);
}

static void end_event(struct events *ev, struct buf *event, const struct buf *value)
{
    struct buf summary = {0};
    protow_bytes(&summary, SUMMARY_VALUE, value->data, value->len);
    protow_bytes(event, EVENT_SUMMARY, summary.data, summary.len);
    events_record(&ev->pending, event->data, event->len);
    buf_finish(&summary);
}

void events_scalar(struct events *ev, double wall_time, int64_t step, const char *tag, double value)
{
    struct buf event = {0}, v = {0};
    begin_event(&event, wall_time, step);
    protow_bytes(&v, VALUE_TAG, tag, strlen(tag));
    protow_float(&v, VALUE_SIMPLE, (float)value);
    end_event(ev, &event, &v);
    buf_finish(&event);
    buf_finish(&v);
}

/* TensorProto { 1 dtype: 7 (string), 8 string_val }, without dimensions: one text. */
static void add_string_tensor(struct buf *value, const char *text)
{
    struct buf t = {0};
    protow_varint(&t, 1, 7);
    protow_bytes(&t, 2, "", 0);
    protow_bytes(&t, 8, text, strlen(text));
    protow_bytes(value, VALUE_TENSOR, t.data, t.len);
    buf_finish(&t);
}

/* SummaryMetadata { 1 plugin_data { 1 plugin_name } } */
static void add_plugin(struct buf *value, const char *plugin)
{
    struct buf data = {0}, metadata = {0};
    protow_bytes(&data, 1, plugin, strlen(plugin));
    protow_bytes(&metadata, 1, data.data, data.len);
    protow_bytes(value, VALUE_METADATA, metadata.data, metadata.len);
    buf_finish(&data);
    buf_finish(&metadata);
}

void events_text(struct events *ev, double wall_time, int64_t step, const char *tag,
                 const char *text)
{
    struct buf event = {0}, v = {0};
    begin_event(&event, wall_time, step);
    protow_bytes(&v, VALUE_TAG, tag, strlen(tag));
    add_string_tensor(&v, text);
    add_plugin(&v, "text");
    end_event(ev, &event, &v);
    buf_finish(&event);
    buf_finish(&v);
}

/* ---- files --------------------------------------------------------------------------------- */

static char *new_path(const char *dir, double now)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    char *path = NULL;
    for (int n = 0; !path || file_exists(path); n++) {
        free(path);
        path = mem_printf("%s/events.out.tfevents.%010lld.%s.%d.%d", dir, (long long)now,
                          host[0] ? host : "localhost", (int)getpid(), n);
    }
    return path;
}

int events_open(struct events *ret, const char *dir, double now, struct err *e)
{
    struct buf event = {0};
    *ret = (struct events){0};
    int code = file_mkdirs(dir, e);
    if (code)
        return code;
    ret->path = new_path(dir, now);
    ret->file = fopen(ret->path, "wxe");
    if (!ret->file)
        return err_sys(e, errno, "%s: cannot create it", ret->path);
    protow_double(&event, EVENT_TIME, now);
    protow_bytes(&event, EVENT_VERSION, version, sizeof(version) - 1);
    events_record(&ret->pending, event.data, event.len);
    buf_finish(&event);
    return events_flush(ret, false, e);
}

int events_flush(struct events *ev, bool sync, struct err *e)
{
    size_t n = ev->pending.len;
    if (!ev->file)
        return 0;
    if (fwrite(ev->pending.data, 1, n, ev->file) != n || fflush(ev->file))
        return err_sys(e, errno, "%s: cannot write %zu bytes", ev->path, n);
    buf_reset(&ev->pending);
    if (sync && fsync(fileno(ev->file)))
        return err_sys(e, errno, "%s: cannot sync", ev->path);
    return 0;
}

void events_close(struct events *ev)
{
    struct err ignored;
    events_flush(ev, false, &ignored);
    if (ev->file)
        fclose(ev->file);
    free(ev->path);
    buf_finish(&ev->pending);
    *ev = (struct events){0};
}

/* ---- cutting ------------------------------------------------------------------------------- */

static bool ends_in(const unsigned char *s, size_t n, const char *with)
{
    size_t k = strlen(with);
    return n >= k && !memcmp(s + n - k, with, k);
}

/* A curve over samples or tokens, by its tag: "lm loss vs samples", ".../y=steps,x=samples". */
static bool is_over(const struct proto_field *tag, const char *what)
{
    char vs[16], x[16];
    snprintf(vs, sizeof(vs), " vs %s", what);
    snprintf(x, sizeof(x), ",x=%s", what);
    return ends_in(tag->bytes, tag->length, vs) || ends_in(tag->bytes, tag->length, x);
}

/* The field of that number and type in a message, the last one; false if there is none. */
static bool find_field(struct proto m, uint32_t number, enum proto_type type,
                       struct proto_field *ret)
{
    struct proto_field f;
    struct err ignored;
    bool more = true, found = false;
    while (!proto_next(&m, &f, &more, &ignored) && more)
        if (f.number == number && f.type == type) {
            *ret = f;
            found = true;
        }
    return found;
}

/* Whether an event is of a step that stays. */
static bool stays(const char *payload, size_t n, const struct events_limit *most)
{
    struct proto m;
    struct proto_field step, f;
    int64_t limit = most->iteration;
    proto_init(&m, "event", payload, n);
    if (!find_field(m, EVENT_STEP, PROTO_VARINT, &step))
        return true;
    if (find_field(m, EVENT_SUMMARY, PROTO_BYTES, &f)) {
        struct proto summary = proto_inside(&m, &f), value;
        if (find_field(summary, SUMMARY_VALUE, PROTO_BYTES, &f)) {
            value = proto_inside(&summary, &f);
            if (find_field(value, VALUE_TAG, PROTO_BYTES, &f))
                limit = is_over(&f, "samples")  ? most->samples
                        : is_over(&f, "tokens") ? most->tokens
                                                : limit;
        }
    }
    return (int64_t)step.value <= limit;
}

int events_cut(const char *path, const struct events_limit *most, struct err *e)
{
    struct buf old = {0}, kept = {0};
    size_t at = 0, n;
    int code = file_read(path, EVENTS_MAX, &old, e);
    if (!code && old.len && !whole_record(&old, 0))
        code = err_set(e, ERR_DATA, "%s: not an event file of TensorBoard", path);
    for (; !code && (n = whole_record(&old, at)) != 0; at += HEADER + n + FOOTER)
        if (stays(old.data + at + HEADER, n, most))
            buf_add(&kept, old.data + at, HEADER + n + FOOTER);
    if (!code && kept.len != old.len)
        code = file_replace(path, kept.data, kept.len, e);
    buf_finish(&old);
    buf_finish(&kept);
    return code;
}
