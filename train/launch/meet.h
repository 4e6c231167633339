/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_MEET_H
#define TRAIN_LAUNCH_MEET_H

/*
 * Rendezvous over TCP. Rank 0 listens at the job's address; the others connect to it and greet it
 * (greet.h), which proves to both sides that they are of this job, and says where each listens
 * itself; when all have come, rank 0 gives everybody the addresses of all, and each pair of ranks
 * makes a connection, with a greeting of its own. Within the time-out or with a sentence that names
 * who is missing. Strangers delay nobody and end nothing (links.h).
 *
 * Ranks that are all on one machine meet at 127.0.0.1; else rank 0 listens at its own address of
 * that name, and every other rank at the one by which it has reached rank 0. Only where rank 0's
 * machine does not have such an address it listens on all interfaces, with a warning.
 *
 * After the greeting rank 0 sends, in little-endian integers,
 *     news       u32 what (0: all are there), i32 a, i32 b: numbers of the sentence that it means
 *     addresses  if all are there, of each rank 16 bytes (IPv6, or ::ffff:a.b.c.d), u16 port
 */

#include "train/launch/place.h"
#include "train/launch/token.h"

/* Opens a socket that listens at an address of this machine, NULL: on all interfaces, and a port, 0
 * for any. ERR_IO, ERR_RESOURCE. */
int meet_listen(const char *address, int port, int *ret_fd, int *ret_port, struct err *e);

/*
 * fd[world], the caller's: a connected socket to each other rank, which the caller closes, and -1
 * for this rank. seconds: for all of it. ERR_FAULT: somebody did not come. ERR_USAGE: the address
 * of rank 0 is not known, is that of another job, or a process with this job's token says that the
 * job has another number of processes, or that it is a rank which has come already. On failure
 * nothing is open.
 */
int meet_all(const struct launch_place *p, const struct job_token *token, double seconds, int *fd,
             struct err *e);

/* Where rank 0 listens: p->host, or 127.0.0.1 for ranks of one machine. */
const char *meet_host(const struct launch_place *p);

#endif
