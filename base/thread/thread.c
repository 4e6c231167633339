/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/thread.h"

#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t set, was;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_SETMASK, &set, &was);
    int code = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return code;
}
