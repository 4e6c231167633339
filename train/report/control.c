/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/control.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/log.h"
#include "base/io/path.h"

enum { CONTROL_MAX = 4096 };

static enum control control_word(const char *path, const char *word)
{
    if (!strcmp(word, "stop"))
        return CONTROL_STOP;
    if (!strcmp(word, "save"))
        return CONTROL_SAVE;
    log_warn("%s: unknown word '%s': expected save or stop", path, word);
    return CONTROL_NOTHING;
}

enum control control_read(const char *path)
{
    struct buf text = {0};
    struct err e;
    enum control most = CONTROL_NOTHING;
    if (access(path, F_OK))
        return CONTROL_NOTHING;
    int code = file_read(path, CONTROL_MAX, &text, &e);
    bool empty = !code && !text.len;
    if (!empty && unlink(path)) {
        log_warn("%s is ignored: it cannot be removed: %s", path, strerror(errno));
        text.len = 0;
    } else if (code) {
        log_warn("%s is ignored: %s", path, e.msg);
    }
    char *rest = buf_str(&text), *word;
    while (!code && rest && (word = strsep(&rest, " \t\r\n")) != NULL) {
        enum control c = *word ? control_word(path, word) : CONTROL_NOTHING;
        most = c > most ? c : most;
    }
    buf_finish(&text);
    return most;
}
