/* SPDX-License-Identifier: Apache-2.0 */
#include "train/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void on_signal(int sig)
{
    if (asked == SIGINT && sig == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    asked = sig;
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
