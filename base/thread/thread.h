/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_THREAD_H
#define BASE_THREAD_THREAD_H

/* Single threads, outside of a pool. */

#include <pthread.h>

/*
 * As pthread_create with default attributes, returning an errno: a thread that blocks the process's
 * signals, which are for main.c's threads, except those raised by its own instructions: the guard
 * of the maps needs SIGBUS.
 */
int thread_start(pthread_t *ret, void *(*run)(void *), void *arg);

#endif
