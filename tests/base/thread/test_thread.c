/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/thread.h"

#include <signal.h>

#include "tests/t.h"

static void *look(void *arg)
{
    pthread_sigmask(SIG_BLOCK, NULL, arg);
    return arg;
}

static void only_a_threads_own_faults_reach_it(void)
{
    sigset_t before, seen, after;
    pthread_t thread;
    void *back = NULL;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    sigemptyset(&seen);
    T_EQ(thread_start(&thread, look, &seen), 0);
    T_EQ(pthread_join(thread, &back), 0);
    T_CHECK(back == &seen);
    T_CHECK(sigismember(&seen, SIGINT) && sigismember(&seen, SIGTERM) &&
            sigismember(&seen, SIGUSR1));
    T_CHECK(!sigismember(&seen, SIGBUS) && !sigismember(&seen, SIGSEGV) &&
            !sigismember(&seen, SIGABRT));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    T_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

T_MAIN(T_CASE(only_a_threads_own_faults_reach_it))
