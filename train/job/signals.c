/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/log.h"
#include "base/io/path.h"

/* The signal that asks the run to end, plus SAVE for each SIGUSR2. */
enum { SIGNALS = 0xff, SAVE = 0x100 };
static volatile sig_atomic_t asked;

/* Says at once what the flag will do after the step: only calls that a handler may make. */
static void say(int sig)
{
    static const char by_key[] = "stopping after this step; Ctrl-C again: at once\n",
                      by_signal[] = "stopping after this step\n";
    struct termios t;
    if (log_get_level() < LOG_INFO)
        return;
    ssize_t n = 0;
    if (!tcgetattr(STDERR_FILENO, &t)) /* the meter's line, perhaps with ^C at its end, stays */
        n = write(STDERR_FILENO, "\n", 1);
    n += sig == SIGINT ? write(STDERR_FILENO, by_key, sizeof(by_key) - 1)
                       : write(STDERR_FILENO, by_signal, sizeof(by_signal) - 1);
    (void)n;
}

/* No other of our signals comes in between. */
static void on_signal(int sig)
{
    int kept = errno, stop = asked & SIGNALS;
    if (sig == SIGUSR2) {
        asked = asked + SAVE;
        errno = kept;
        return;
    }
    if (stop == SIGINT && sig == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    } else if (!stop) {
        say(sig);
    }
    asked = (asked & ~SIGNALS) | sig;
    errno = kept;
}

void signals_listen(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaddset(&sa.sa_mask, SIGINT);
    sigaddset(&sa.sa_mask, SIGTERM);
    sigaddset(&sa.sa_mask, SIGUSR1);
    sigaddset(&sa.sa_mask, SIGUSR2);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);
}

int signals_stop_asked(void)
{
    return asked & SIGNALS;
}

int signals_saves_asked(void)
{
    return asked / SAVE;
}

/* A word of a command, as a shell takes it. */
static void add_word(struct buf *b, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_-+=:,./@%";
    if (*word && !word[strspn(word, plain)]) {
        buf_adds(b, word);
        return;
    }
    buf_addc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_adds(b, "'\\''");
        else
            buf_addc(b, *word);
    buf_addc(b, '\'');
}

static const char *stop_by(int what)
{
    return what == STOP_INTERVAL           ? "--exit-interval"
           : what == STOP_MINUTES          ? "--exit-duration-in-mins"
           : what == STOP_CONTROL          ? "the control file"
           : what == STOP_SIGNAL + SIGINT  ? "Ctrl-C"
           : what == STOP_SIGNAL + SIGTERM ? "SIGTERM"
                                           : "SIGUSR1";
}

static int exit_code(int what, bool saved)
{
    if (what < STOP_CONTROL)
        return 0;
    if (what == STOP_SIGNAL + SIGINT) /* a person; a job script must not start it again */
        return ERR_SIGINT;
    return saved ? ERR_RESTART : what == STOP_CONTROL ? 0 : ERR_SIGTERM;
}

int signals_tell_stop(int what, const char *save, int64_t iteration, struct err *e)
{
    const char *by = stop_by(what);
    long long at = (long long)iteration;
    struct buf b = {0};
    if (save) {
        char *config = path_join(save, "config.toml");
        add_word(&b, program_invocation_name);
        buf_adds(&b, " run --config ");
        add_word(&b, config);
        log_info("stopped by %s after step %lld; to resume:\n  %s", by, at, buf_str(&b));
        free(config);
    } else {
        log_info("stopped by %s after step %lld; nothing was saved (--save DIR keeps the model)",
                 by, at);
    }
    buf_finish(&b);
    int code = exit_code(what, save != NULL);
    if (e && code)
        *e = (struct err){.code = code};
    return code;
}
