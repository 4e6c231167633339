/* SPDX-License-Identifier: Apache-2.0 */

/*
 * llama.cpp at work, for llama.py, which compiles this against libllama:
 *
 *     llama_run FILE logits ID...      floats of every position
 *     llama_run FILE greedy N ID...    the next N ids, one by one
 *     llama_run FILE ids               texts in (length, bytes), ids out (count, ids), all int32
 *     llama_run - quantize COLUMNS     rows of floats in, Q8_0 out
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>

static void quiet(enum ggml_log_level level, const char *text, void *arg)
{
    (void)arg;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static void need(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "llama_run: %s\n", what);
    exit(1);
}

static struct llama_context *open_context(struct llama_model *model, int n)
{
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = (uint32_t)n;
    p.n_threads = p.n_threads_batch = 1;
    p.type_k = p.type_v = GGML_TYPE_F32;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *c = llama_init_from_model(model, p);
    need(c != NULL, "no context");
    return c;
}

static void logits(struct llama_model *model, const llama_token *id, int n)
{
    struct llama_context *c = open_context(model, n);
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = id[i];
        b.pos[i] = i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    need(!llama_decode(c, b), "decoding failed");
    for (int i = 0; i < n; i++)
        fwrite(llama_get_logits_ith(c, i), sizeof(float), (size_t)vocab, stdout);
    llama_batch_free(b);
    llama_free(c);
}

static void greedy(struct llama_model *model, llama_token *id, int n, int more)
{
    struct llama_context *c = open_context(model, n + more);
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_token next = 0;
    for (int i = 0; i < more; i++) {
        need(!llama_decode(c, llama_batch_get_one(i ? &next : id, i ? 1 : n)), "decoding failed");
        const float *x = llama_get_logits_ith(c, -1);
        next = 0;
        for (int k = 1; k < vocab; k++)
            if (x[k] > x[next])
                next = k;
        printf("%d\n", next);
    }
    llama_free(c);
}

static void ids(const struct llama_model *model)
{
    const struct llama_vocab *v = llama_model_get_vocab(model);
    int32_t n;
    while (fread(&n, sizeof(n), 1, stdin) == 1) {
        char *text = malloc((size_t)n + 1);
        llama_token *id = malloc(((size_t)n + 8) * sizeof(*id));
        need(text && id && fread(text, 1, (size_t)n, stdin) == (size_t)n, "a text is cut");
        int32_t k = llama_tokenize(v, text, n, id, n + 8, true, true);
        need(k >= 0, "more ids than bytes");
        fwrite(&k, sizeof(k), 1, stdout);
        fwrite(id, sizeof(*id), (size_t)k, stdout);
        free(text);
        free(id);
    }
}

static void quantize(int64_t columns)
{
    float *row = malloc((size_t)columns * sizeof(*row));
    char *out = malloc(ggml_row_size(GGML_TYPE_Q8_0, columns));
    need(row && out && columns > 0, "no memory");
    while (fread(row, sizeof(*row), (size_t)columns, stdin) == (size_t)columns) {
        size_t bytes = ggml_quantize_chunk(GGML_TYPE_Q8_0, row, out, 0, 1, columns, NULL);
        fwrite(out, 1, bytes, stdout);
    }
    free(row);
    free(out);
}

int main(int argc, char **argv)
{
    llama_token id[512];
    int at = 3, n = 0;
    need(argc >= 3, "too few arguments");
    llama_log_set(quiet, NULL);
    if (!strcmp(argv[2], "quantize") && argc == 4) {
        quantize(atoll(argv[3]));
        return 0;
    }
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    need(model != NULL, "the file cannot be loaded");
    int more = !strcmp(argv[2], "greedy") && argc > 3 ? atoi(argv[at++]) : 0;
    for (; at < argc && n < 512; at++)
        id[n++] = atoi(argv[at]);
    if (!strcmp(argv[2], "logits"))
        logits(model, id, n);
    else if (more > 0)
        greedy(model, id, n, more);
    else
        ids(model);
    llama_model_free(model);
    return 0;
}
