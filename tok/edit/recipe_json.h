/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_EDIT_RECIPE_JSON_H
#define TOK_EDIT_RECIPE_JSON_H

/* Components of a tokenizer.json as text, formatted like Hugging Face's tokenizers. */

#include "base/format/json.h"
#include "tok/edit/recipe.h"

const char *recipe_component_name(enum recipe_component component); /* "normalizer" */

/* Two spaces per level; the first line continues the caller's, at `level`. */
void recipe_put_json(struct buf *b, const struct json *j, int level);

/* Renumbers the ids in a component that are below n; recipe_see_ids calls `see` with each. */
void recipe_map_component(struct recipe *r, enum recipe_component component, const int32_t *map,
                          int64_t n);
void recipe_see_ids(const struct recipe *r, enum recipe_component component,
                    void (*see)(void *arg, int64_t id), void *arg);

/* A number as Rust writes it: 1e-7, 1.5, 0.0. */
void recipe_put_real(struct buf *b, double v);
void recipe_put_dropout(struct buf *b, double v); /* a float there */

#endif
