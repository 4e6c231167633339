/* SPDX-License-Identifier: Apache-2.0 */

/* GB/s of jsonl_parse on lines of about 2 KB with one wanted key, by kind of text; best of 10,
 * processor time. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/buf.h"
#include "base/format/jsonl.h"
#include "tests/t.h"

enum { LINES = 2000, LINE_BYTES = 2000, ROUNDS = 10, REPEATS = 5 };

struct line {
    size_t at, n;
};

static void add_word(struct buf *b, int kind, uint64_t i)
{
    static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz";
    uint32_t r = t_rand(5, i), n = 2 + r % 8;
    switch (kind) {
    case 2: /* Japanese as UTF-8 */
        for (uint32_t k = 0; k < n; k++)
            buf_addf(b, "\xe3\x81%c", (char)(0x81 + (r >> k) % 0x3e));
        return;
    case 3: /* and as Python writes it by default */
        for (uint32_t k = 0; k < n; k++)
            buf_addf(b, "\\u30%02x", 0x41 + (r >> k) % 0x3e);
        return;
    default:
        for (uint32_t k = 0; k < n; k++)
            buf_addc(b, letters[(r >> (2 * k)) % 26]);
        buf_adds(b, kind == 1 && i % 14 == 0 ? "\\n" : kind == 1 && i % 31 == 0 ? "\\\"" : " ");
    }
}

static void add_line(struct buf *b, int kind, uint64_t number)
{
    size_t start = b->len;
    buf_addf(b, "{\"id\":%llu,\"url\":\"https://example.org/%llu\",\"%s\":%s",
             (unsigned long long)number, (unsigned long long)number,
             kind == 4   ? "ids"
             : kind == 5 ? "fields"
                         : "text",
             kind < 4 ? "\"" : "[");
    for (uint64_t i = 0; b->len - start < LINE_BYTES; i++) {
        uint64_t at = number * 1000 + i;
        if (kind < 4)
            add_word(b, kind, at);
        else if (kind == 4)
            buf_addf(b, "%s%u", i ? "," : "", t_rand(6, at) % 32000);
        else
            buf_addf(b, "%s{\"word\":\"w%u\",\"n\":%u,\"ok\":true}", i ? "," : "",
                     t_rand(6, at) % 1000, t_rand(7, at) % 100);
    }
    buf_adds(b, kind < 4 ? "\"}" : "]}");
}

/* Of the processor, so that other work on the machine counts less. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double one_round(struct jsonl *j, const struct buf *b, const struct line *line)
{
    struct jsonl_value v[2];
    struct err e;
    double start = seconds();
    for (int r = 0; r < REPEATS; r++)
        for (int i = 0; i < LINES; i++)
            if (jsonl_parse(j, b->data + line[i].at, line[i].n, v, &e)) {
                fprintf(stderr, "line %d: %s\n", i, e.msg);
                exit(1);
            }
    return (double)b->len * REPEATS / (seconds() - start) * 1e-9;
}

int main(void)
{
    static const char *const name[] = {
        "ASCII", "ASCII, \\n", "Japanese UTF-8", "Japanese \\uXXXX", "token ids", "small fields"};
    static const char *const keys[] = {"text", "ids"};
    static struct line line[LINES];
    for (int kind = 0; kind < 6; kind++) {
        struct buf b = {0};
        double best = 0;
        for (uint64_t i = 0; i < LINES; i++) {
            line[i].at = b.len;
            add_line(&b, kind, i);
            line[i].n = b.len - line[i].at;
        }
        memset(buf_reserve(&b, JSONL_PADDING), 0, JSONL_PADDING);
        struct jsonl *j = jsonl_create(keys, 2);
        for (int round = 0; round < ROUNDS; round++) {
            double rate = one_round(j, &b, line);
            best = rate > best ? rate : best;
        }
        printf("%-18s %6.2f GB/s\n", name[kind], best);
        jsonl_destroy(j);
        buf_finish(&b);
    }
    return 0;
}
