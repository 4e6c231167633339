/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CMD_OUT_H
#define TOK_CMD_OUT_H

/*
 * How `tok encode` writes documents (cmd_encode_out.c, cmd_offsets.c). Filled once, then shared by
 * threads.
 */

#include "base/io/sink.h"
#include "base/io/spill.h"
#include "tok/cmd.h"
#include "tok/stream/framed_stream.h"
#include "tok/text/id_bytes.h"

struct cmd_out {
    const struct cli *cli;
    const struct tokenizer *tok;
    struct docstream_header header;
    struct id_bytes_table spelling; /* CMD_TEXT, CMD_JSON */
};

void cmd_out_open(struct cmd_out *o, const struct cli *c, const struct tokenizer *t);
void cmd_out_close(struct cmd_out *o);

/* Appends an id, or its piece. */
void cmd_out_id(const struct cmd_out *o, int32_t id, struct buf *b);

/* A document of n ids: what precedes the ids, the ids in one part or several, and what follows. All
 * append. */
void cmd_out_before(const struct cmd_out *o, uint64_t n, struct buf *b);
void cmd_out_part(const struct cmd_out *o, const struct tok_ids *ids, bool first, struct buf *b);
/* A whole document in one part, with unknown pieces spelled by `said`, whose first `gone` are
 * skipped. */
void cmd_out_said(const struct cmd_out *o, const struct tok_ids *ids,
                  const struct tok_unknown *said, size_t gone, struct buf *b);
void cmd_out_after(const struct cmd_out *o, struct buf *b);

/* A whole document as a line or in JSON. `r` is NULL without --offsets; `part` is negative except
 * with --overflow, where it numbers the parts of a text. */
void cmd_out_line(const struct cmd_out *o, const struct tok_ids *ids, const struct tok_ranges *r,
                  int64_t part, struct buf *b);

int cmd_out_copy(struct sink *to, const struct spill *from, struct err *e);

/* Names a file in the folder for temporary files when the output is a pipe; owned by the caller. */
char *cmd_temporary_place(void);

#endif
