/* SPDX-License-Identifier: Apache-2.0 */
#include "train/deepspeed/relaxed.h"

#include <stdbool.h>
#include <string.h>

/* The end of the string that begins at p, or of the text. */
static char *after_string(char *p, const char *end)
{
    for (p++; p < end && *p != '"';)
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p < end ? p + 1 : p;
}

static bool starts(const char *p, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - p) >= n && !memcmp(p, with, n);
}

/* Blanks a comment, if there is one at p, but for its ends of lines; after it. */
static char *blank_comment(char *p, const char *end)
{
    bool line = *p == '#' || starts(p, end, "//"), block = starts(p, end, "/*");
    if (!line && !block)
        return p;
    char *from = p;
    while (p < end && !(line && *p == '\n') && !(block && p > from + 1 && starts(p, end, "*/")))
        p++;
    p += block && p < end ? 2 : 0;
    for (char *q = from; q < p; q++)
        if (*q != '\n')
            *q = ' ';
    return p;
}

void relaxed_to_json(struct buf *text)
{
    char *p = text->data, *comma = NULL;
    const char *end = text->len ? p + text->len : p;
    while (p < end) {
        char *q = blank_comment(p, end);
        if (q > p) {
            p = q;
            continue;
        }
        if ((*p == '}' || *p == ']') && comma)
            *comma = ' ';
        if (*p == ',')
            comma = p;
        else if (!strchr(" \t\r\n", *p) || !*p)
            comma = NULL;
        p = *p == '"' ? after_string(p, end) : p + 1;
    }
}
