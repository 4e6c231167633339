/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_MEET_H
#define TRAIN_LAUNCH_MEET_H

/*
 * Rendezvous over TCP. Rank 0 listens at the job's address; the others come, say who they are and
 * where they listen themselves; rank 0 gives everybody the addresses of all; then each pair has one
 * connection. Within the time-out or with a sentence that names who is missing.
 *
 * What is said, as it lies in the memory of machines of one type:
 *     greeting  "weftmeet", u32 version, i32 world, i32 rank, u32 port where this rank listens
 *     answer    i32 0 and the addresses of all ranks (struct sockaddr_storage each), or an exit
 * code and a sentence of 256 bytes
 */

#include "train/launch/place.h"

enum { MEET_VERSION = 1 };

/* Opens a socket that listens at a port, 0 for any, on all interfaces. ERR_IO with the port. */
int meet_listen(int port, int *ret_fd, int *ret_port, struct err *e);

/*
 * fd[world], the caller's: a connected socket to each other rank, which the caller closes, and -1
 * for this rank. seconds: for all of it. ERR_FAULT: somebody did not come, or is of another job;
 * ERR_USAGE: the address of rank 0 is not known. On failure nothing is open.
 */
int meet_all(const struct launch_place *p, double seconds, int *fd, struct err *e);

#endif
