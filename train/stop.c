/* SPDX-License-Identifier: Apache-2.0 */
#include "train/stop.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

#include "base/core/log.h"

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

static void on_signal(int sig)
{
    int kept = errno;
    if (asked == SIGINT && sig == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    } else if (!asked) {
        say(sig);
    }
    asked = sig;
    errno = kept;
}

void stop_listen(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGUSR1, &sa, NULL);
}

int stop_asked(void)
{
    return asked;
}
