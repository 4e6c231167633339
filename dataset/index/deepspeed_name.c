/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/deepspeed_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"

void deepspeed_gpt_text(const struct deepspeed_gpt *g, struct buf *ret)
{
    buf_addf(ret, "GPT Dataset\n\nData prefix %s\nDataset name %s\n", g->path, part_name(g->part));
    buf_addf(ret, "Number of samples %" PRIu64 "\nNumber of epochs %" PRIu64 "\n", g->samples,
             g->epochs);
    buf_addf(ret, "Sequence length %" PRIu32 "\nRandom seed %" PRIu32 "\nSplit %s\n", g->seq_length,
             g->seed, g->split);
}

/* ---- numpy's text of an array --------------------------------------------------------------- */

enum { DIGITS = 8, WIDTH = 75, TEXT = 40 };

static bool wants_exponent(const double *a, size_t n)
{
    double least = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        double x = a[i] < 0 ? -a[i] : a[i];
        most = x > most ? x : most;
        least = x > 0 && (least == 0 || x < least) ? x : least;
    }
    return most >= 1e8 || (least > 0 && (least < 1e-4 || most / least > 1000));
}

/* At most DIGITS digits after the point, without trailing zeros; the point stays. */
static void deepspeed_name_put_plain(double x, char text[TEXT])
{
    snprintf(text, TEXT, "%.*f", DIGITS, x);
    for (size_t n = strlen(text); n && text[n - 1] == '0'; n--)
        text[n - 1] = '\0';
}

/* Digits after the point that x needs, at most DIGITS. */
static int digits_of(double x)
{
    char text[TEXT];
    snprintf(text, sizeof(text), "%.*e", DIGITS, x);
    int n = DIGITS;
    for (const char *last = strchr(text, 'e') - 1; n && *last == '0'; last--)
        n--;
    return n;
}

/* Each element, as wide as the widest. */
static void put_elements(const double *a, size_t n, char (*text)[TEXT])
{
    size_t left = 0, right = 0;
    int digits = 0;
    if (wants_exponent(a, n)) {
        for (size_t i = 0; i < n; i++)
            digits = digits_of(a[i]) > digits ? digits_of(a[i]) : digits;
        for (size_t i = 0; i < n; i++) {
            snprintf(text[i], TEXT, digits ? "%.*e" : "%#.*e", digits, a[i]);
            left = strlen(text[i]) > left ? strlen(text[i]) : left;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            deepspeed_name_put_plain(a[i], text[i]);
            size_t point = (size_t)(strchr(text[i], '.') - text[i]), rest = strlen(text[i]) - point;
            left = point > left ? point : left;
            right = rest > right ? rest : right;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const char *point = strchr(text[i], '.');
        size_t own = right ? (size_t)(point - text[i]) : strlen(text[i]);
        char padded[2 * TEXT];
        snprintf(padded, sizeof(padded), "%*s%-*s", (int)(left - own), "",
                 (int)(right ? left + right - (left - own) : 0), text[i]);
        memcpy(text[i], padded, TEXT - 1);
        text[i][TEXT - 1] = '\0';
    }
}

void deepspeed_put_array(const double *a, size_t n, struct buf *ret)
{
    char(*text)[TEXT] = mem_new(n + 1, sizeof(*text));
    size_t column = 1;
    BUG_ON(n > 1000, "numpy shortens an array of %zu", n);
    put_elements(a, n, text);
    buf_addc(ret, '[');
    for (size_t i = 0; i < n; i++) {
        size_t wide = strlen(text[i]);
        if (i && column + 1 + wide > WIDTH - 1) {
            while (ret->data[ret->len - 1] == ' ')
                ret->len--;
            buf_adds(ret, "\n ");
            column = 1;
        } else if (i) {
            buf_addc(ret, ' ');
            column++;
        }
        buf_adds(ret, text[i]);
        column += wide;
    }
    buf_addc(ret, ']');
    free(text);
}

void deepspeed_blend_text(const struct buf *set, size_t n, const double *weight, uint64_t size,
                          struct buf *ret)
{
    buf_adds(ret, "Blendable dataset\n\nDatasets:\n");
    for (size_t i = 0; i < n; i++) {
        buf_add(ret, set[i].data, set[i].len);
        buf_adds(ret, "\n\n");
    }
    buf_adds(ret, "Weights: ");
    deepspeed_put_array(weight, n, ret);
    buf_addf(ret, "\nSize: %" PRIu64 "\n", size);
}

char *deepspeed_path(const char *folder, const struct buf *text, const char *suffix)
{
    char md5[MD5_TEXT];
    md5_once(text->data, text->len, md5);
    return mem_printf("%s/%s%s", folder, md5, suffix);
}
