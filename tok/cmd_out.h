/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CMD_OUT_H
#define TOK_CMD_OUT_H

/*
 * How `tok encode` writes documents (cmd_encode_out.c, cmd_offsets.c). Filled once, then shared by
 * threads.
 */

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

/* An id, or its piece. */
void cmd_out_id(const struct cmd_out *o, int32_t id, struct buf *b);

/* A document of n ids is what stands before them, the ids in one part or several, and what stands
 * behind. Appended. */
void cmd_out_before(const struct cmd_out *o, uint64_t n, struct buf *b);
void cmd_out_part(const struct cmd_out *o, const struct tok_ids *ids, bool first, struct buf *b);
/* One in one part, unknown pieces spelt as `said` has it, whose first `gone` are not among them. */
void cmd_out_said(const struct cmd_out *o, const struct tok_ids *ids,
                  const struct tok_unknown *said, size_t gone, struct buf *b);
void cmd_out_async(const struct cmd_out *o, struct buf *b);

/* A whole document as a line or in JSON. Without --offsets `r` is NULL; `part` is below 0 but under
 * --overflow, where it counts the parts of a text. */
void cmd_out_line(const struct cmd_out *o, const struct tok_ids *ids, const struct tok_ranges *r,
                  int64_t part, struct buf *b);

#endif
