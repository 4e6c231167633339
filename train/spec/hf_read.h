/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_HF_READ_H
#define TRAIN_SPEC_HF_READ_H

/*
 * A config.json being read, for the files hf_*.c and family_*.c alone. After the first failure
 * `code` is set and all getters give 0, so that readers need not look after each call.
 */

#include "base/format/json.h"
#include "train/spec/hf.h"

struct hf_reader {
    const struct json *o;
    const char *path;
    struct err *e;
    int code;
};

/* NULL for a missing key and for null. */
const struct json *hf_get(const struct hf_reader *h, const char *key);

/* The key has a value that weft has no model for: ERR_DATA. */
void hf_refuse(struct hf_reader *h, const char *key, const char *value, const char *why);
/* The key's value is not what every such value is: "a whole number". */
void hf_malformed(struct hf_reader *h, const char *key, const char *want);

/* Required, and with the value of a missing key. */
int64_t hf_need_int(struct hf_reader *h, const char *key);
int64_t hf_int(struct hf_reader *h, const char *key, int64_t missing);
double hf_real(struct hf_reader *h, const char *key, double missing);
bool hf_bool(struct hf_reader *h, const char *key, bool missing);
const char *hf_text(struct hf_reader *h, const char *key, const char *missing);

/* Every key of the file has a row for the family, or is in `ignore` (hf_keys.c). */
void hf_check_keys(struct hf_reader *h, enum hf_family f, const struct hf_ignore *ignore);

/* Rotary positions, in either spelling; `theta` is the family's default (hf_rope.c). */
void hf_read_rope(struct hf_reader *h, double theta, struct spec *s);

#endif
