/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_THREAD_H
#define BASE_THREAD_THREAD_H

/* Threads of the library's own, beside those of a pool. */

#include <pthread.h>

/*
 * As pthread_create with default attributes, errno's number on failure: a thread that leaves the
 * process's signals to the threads of main.c. It takes itself those that its own instructions
 * raise: the guard of the maps lives by SIGBUS.
 */
int thread_start(pthread_t *ret, void *(*run)(void *), void *arg);

#endif
