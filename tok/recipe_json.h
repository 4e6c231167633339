/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_RECIPE_JSON_H
#define TOK_RECIPE_JSON_H

/* Parts of a tokenizer.json as text, as Hugging Face's tokenizers lays them out. */

#include "base/json.h"
#include "tok/recipe.h"

const char *recipe_part_name(enum recipe_part part); /* "normalizer" */

/* Two spaces for each level; the first line is where the caller stands, at `level`. */
void recipe_put_json(struct buf *b, const struct json *j, int level);

/* A number as Rust writes it: 1e-7, 1.5, 0.0. */
void recipe_put_real(struct buf *b, double v);

#endif
