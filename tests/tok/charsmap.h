/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_CHARSMAP_H
#define TESTS_TOK_CHARSMAP_H

/* SentencePiece's normalization rules, made by hand: a double array with a block of 256 units for
 * the children of each node (tok/sp/model.h). */

#include <string.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "tests/t.h"

enum { CHARSMAP_NODES = 64 };

struct charsmap_node {
    short child[256]; /* 0: none */
    int value;        /* offset of the replacement, -1: no rule ends here */
};

static inline int charsmap_node_of(struct charsmap_node *node, int *count, const char *text)
{
    int at = 0;
    for (; *text; text++) {
        short *child = &node[at].child[(unsigned char)*text];
        if (!*child) {
            T_CHECK(*count < CHARSMAP_NODES);
            node[*count].value = -1;
            *child = (short)(*count)++;
        }
        at = *child;
    }
    return at;
}

/* rule[i][0] becomes rule[i][1]; appended as the bytes of a file. */
static inline void make_charsmap(struct buf *out, const char *const rule[][2], size_t n)
{
    static struct charsmap_node node[CHARSMAP_NODES];
    static uint32_t unit[256 * (CHARSMAP_NODES + 1)], place[CHARSMAP_NODES];
    struct buf strings = {0};
    int count = 1;
    memset(node, 0, sizeof(node));
    node[0].value = -1;
    for (size_t i = 0; i < n; i++) {
        node[charsmap_node_of(node, &count, rule[i][0])].value = (int)strings.len;
        buf_add(&strings, rule[i][1], strlen(rule[i][1]) + 1);
    }
    uint32_t units = 256 * ((uint32_t)count + 1);
    for (uint32_t i = 0; i < units; i++)
        unit[i] = (i & 255) ^ 1; /* no step leads here */
    place[0] = unit[0] = 0;
    for (uint32_t k = 0; k < (uint32_t)count; k++)
        for (uint32_t byte = 0; byte < 256; byte++)
            if (node[k].child[byte]) {
                uint32_t at = 256 * (k + 1) + byte;
                place[node[k].child[byte]] = at;
                unit[at] = byte;
            }
    for (uint32_t k = 0; k < (uint32_t)count; k++) {
        bool ends = node[k].value >= 0;
        unit[place[k]] |= ((256 * (k + 1)) ^ place[k]) << 10 | (uint32_t)ends << 8;
        if (ends)
            unit[256 * (k + 1)] = 1u << 31 | (uint32_t)node[k].value;
    }
    uint32_t size = 4 * units;
    buf_add(out, &size, 4);
    buf_add(out, unit, size);
    buf_add(out, strings.data, strings.len);
    buf_finish(&strings);
}

#endif
