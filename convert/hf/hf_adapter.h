/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_ADAPTER_H
#define CONVERT_HF_HF_ADAPTER_H

/*
 * LoRA adapters as PEFT writes them: a folder with adapter_config.json and
 * adapter_model.safetensors or .bin. One that is attached to a model is merged while the model is
 * imported: W + scale * B A, calculated in float and rounded once; tensors that it holds as a whole
 * (modules_to_save, biases) take the place of the model's. What changes the base model in another
 * way (DoRA, PiSSA and others) is refused by name. The result is the model as PEFT runs it with the
 * adapter attached: where that changes a tied embedding and its head apart, the import has both.
 */

#include "convert/hf/hf_folder.h"

enum { HF_PATTERNS_MAX = 4096 };

/* A value for the modules whose names end with what the pattern, a regular expression, matches. */
struct hf_pattern {
    const char *pattern;
    double value;
};

struct hf_adapter_config {
    int64_t r;
    double alpha;
    bool root;          /* scale alpha / sqrt(r), not alpha / r */
    bool tying;         /* embedding and head of a tied model are trained as one */
    const char **saved; /* modules of which PEFT trains a copy, by the ends of their names */
    size_t nsaved;
    struct hf_pattern *rank_of, *alpha_of;
    size_t nranks, nalphas;
    struct arena arena;
};

/*
 * ERR_DATA for what is malformed, for keys that nobody knows and that are set, and for kinds of
 * adapters other than plain LoRA; `name` stands in messages. On failure nothing is left to finish.
 */
int hf_adapter_parse(struct hf_adapter_config *ret, const char *name, const char *text, size_t n,
                     const struct hf_ignore *ignore, struct err *e);
void hf_adapter_config_finish(struct hf_adapter_config *c);

/* What an adapter does to a tensor of the model. */
struct hf_adapted {
    const struct st_entry *whole; /* takes its place; NULL: it stays */
    const struct st_entry *a, *b; /* NULL: no update */
    bool embedding;               /* of an embedding: a is [rank, rows], b [columns, rank] */
    int64_t rank, width;          /* width: columns of `right` */
    float scale, *left, *right;   /* [rows of the linear layer's weight, rank], [rank, width] */
};

struct hf_adapter {
    char *path, *config_path;
    struct st_file st;
    struct hf_adapter_config config;
    struct hf_adapted *of;        /* of each of the folder's map.tensor */
    size_t tensors;               /* of them */
    size_t updated, replaced;     /* how many */
    bool untied;                  /* it changes a tied embedding and its head apart */
    struct copy_source *source;   /* of each tensor that is replaced */
    struct copy_low_rank *update; /* of each link */
};

/*
 * Attaches the adapter in the folder `dir` to a model, which then owns it: its steps merge it.
 * ERR_DATA for tensors that belong to nothing in the model or do not fit, ERR_INTEGRITY for one
 * that is missing, ERR_USAGE for a model in Meta's format. Factors are held in memory.
 */
int hf_adapter_attach(struct hf_folder *f, const char *dir, const struct hf_ignore *ignore,
                      struct err *e);
void hf_adapter_close(struct hf_adapter *a);

/* Adds the adapter to the steps of its folder's links. */
void hf_adapter_apply(const struct hf_folder *f, struct hf_steps *s);

#endif
