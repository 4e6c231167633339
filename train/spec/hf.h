/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_HF_H
#define TRAIN_SPEC_HF_H

/*
 * Models of Hugging Face transformers: what a config.json says (hf_config.c, hf_keys.c), and how
 * the tensors of each family are the global tensors of weft (hf_names.c). Each family is a row of
 * data in a file of its own (family.h). Every key of a family has a row in a table: it shapes the
 * model, changes nothing, or must have one value. Any other key stops the reader by name, because
 * to pass over it could train or convert another model.
 *
 * Nothing here knows of files other than config.json, or of data.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/err.h"
#include "train/spec/families.h"
#include "train/spec/spec.h"

#define HF_FAMILY_MEMBER(family, row, type) family,
enum hf_family { HF_FAMILY_LIST(HF_FAMILY_MEMBER, HF_FAMILY_MEMBER) HF_FAMILIES };

/* How the experts of a model are stored. */
enum hf_experts { HF_EXPERTS_SINGLE, HF_EXPERTS_FUSED };

enum { HF_LAYERS_MAX = 10000 };

/* A model as its config.json has it: the spec, and what only some families have. Plain values. */
struct hf_model {
    enum hf_family family;
    struct spec spec;
    bool qkv_bias, out_bias, mlp_bias; /* of linear layers */
};

/* Keys that the user allows although no table has them. */
struct hf_ignore {
    const char *const *key;
    size_t n;
    bool all; /* any: of a model that was imported, when its keys were judged */
};

/*
 * ERR_DATA for what is malformed, unknown or another model than the families have; ERR_IO for a
 * file that cannot be read. The sentence names file and key. What train cannot run is a bit of
 * ret->spec.features and no error. `ignore` may be NULL.
 */
int hf_config_open(const char *path, const struct hf_ignore *ignore, struct hf_model *ret,
                   struct err *e);
/* The same for a text; `name` stands in messages. */
int hf_config_parse(const char *name, const char *text, size_t n, const struct hf_ignore *ignore,
                    struct hf_model *ret, struct err *e);

/* "gpt2", "llama": its model_type. */
const char *hf_family_name(enum hf_family f);
/* "LlamaForCausalLM" */
const char *hf_family_architecture(enum hf_family f);
/* Whether its rope_parameters have one object for each type of layer. */
bool hf_family_rope_by_type(enum hf_family f);

/*
 * The family that a model of weft is exported as, for one that never had a config.json: GPT-2 for
 * LayerNorm and learned positions, Llama or Qwen 2 for RMSNorm, rotary positions and SwiGLU,
 * GPT-NeoX for LayerNorm and rotary positions, Mixtral for experts. ERR_USAGE when none has it.
 */
int hf_model_of_spec(const struct spec *s, const char *name, struct hf_model *ret, struct err *e);

/* ---- names --------------------------------------------------------------------------------- */

/* A tensor as a file of Hugging Face has it. */
struct hf_tensor {
    const char *name;
    int rank; /* 1 to 3 */
    int64_t size[3];
};

/* A tensor of weft. */
struct hf_global {
    const char *name;
    int rank; /* 1 or 2; sizes of rank 1 are [n, 1] */
    int64_t size[2];
};

/*
 * A box that the two have in common: `count` rows and columns of the global tensor from `at` on are
 * the box of the foreign one from `from` on; with `transposed` its rows are the other's columns. A
 * foreign tensor of rank 3 counts as its matrices one below the other.
 */
struct hf_link {
    size_t tensor, global;
    int64_t at[2], count[2];
    int64_t from[2];
    bool transposed;
};

struct hf_map {
    struct hf_tensor *tensor; /* in the order of the model's modules */
    struct hf_global *global;
    struct hf_link *link; /* of each tensor in its order, then of the next */
    size_t tensors, globals, links;
    struct arena arena;
};

/* Every tensor of the model. Over all links each element of either side comes exactly once. The
 * caller finishes it. */
void hf_map_build(struct hf_map *ret, const struct hf_model *m, enum hf_experts experts);
void hf_map_finish(struct hf_map *m);

/*
 * A tensor that files of the family may have beside those: a buffer that a model of transformers
 * makes itself, such as masks and rotary frequencies. `name` with its prefix.
 */
bool hf_name_ignored(enum hf_family f, const char *name);

/* What names of a whole model begin with ("transformer.") and those of a bare one lack. */
const char *hf_name_prefix(enum hf_family f);
/* The name of the head's tensor, and of the embedding's. */
const char *hf_name_head(enum hf_family f);
const char *hf_name_embedding(enum hf_family f);
/* Whether files hold its matrices as [in, out] (GPT-2's Conv1D). */
bool hf_name_transposed(enum hf_family f);
/* How the experts of a folder with this tensor are stored; a name of none changes nothing. */
void hf_name_experts(const char *name, enum hf_experts *ret);

/* ---- GGUF ---------------------------------------------------------------------------------- */

/* Which rows lie in pairs, where the architecture has them so. */
enum hf_gguf_order { HF_GGUF_PLAIN, HF_GGUF_QUERIES, HF_GGUF_KEYS };

/* Tails of names, those of a layer after "layers.N." and "blk.N."; rows that follow each other with
 * one foreign name are stacked. */
struct hf_gguf_row {
    const char *global, *foreign;
    enum hf_gguf_order order;
};

/* A family as GGUF has it. */
struct hf_gguf {
    const char *arch;              /* general.architecture */
    const struct hf_gguf_row *row; /* ended by one without names */
    bool pairs;                    /* rows of queries and keys in pairs, not in halves */
    unsigned features;             /* of the model that the architecture has a place for */
};

/* NULL: weft does not write the family. */
const struct hf_gguf *hf_family_gguf(enum hf_family f);

#endif
