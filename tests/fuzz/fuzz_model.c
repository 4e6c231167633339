/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "tok/sp/sp_cxx.h"
#include "tok/sp/model.h"
#include "tok/sp/segment.h"
#include "tok/sp/unigram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Our own encoder agrees with the library on whatever model it is, except for what later releases
 * than the one linked do differently: sums of unigram scores, and words spelt like byte pieces.
 */
static void compare(const struct sp_model *m, const char *p, size_t n, const int *id, size_t k)
{
    struct unigram *u = unigram_create(m);
    struct unigram_state *s = unigram_state_create();
    struct sp_native *v = sp_native_create(m);
    struct sp_native_state *t = v ? sp_native_state_create(v) : NULL;
    struct tok_ids ids = {0};
    struct err e;
    if (u)
        unigram_put(u, s, p, n, true, &ids);
    else if (v)
        BUG_ON(sp_native_put(v, t, p, n, true, &ids, &e), "refused: %s", e.msg);
    bool same = v && (m->kind == SP_BPE || !m->count[SP_BYTE]);
    BUG_ON(same && (ids.n != k || (k && memcmp(ids.id, id, k * sizeof(*id)))), "other ids");
    tok_ids_finish(&ids);
    sp_native_state_destroy(t);
    sp_native_destroy(v);
    unigram_state_destroy(s);
    unigram_destroy(u);
}

/* What passes the check may be used: on this text, and on text made of the file's own bytes. */
static void use(const struct sp_model *m, const uint8_t *data, size_t size)
{
    static const char text[] = "A text. \xef\xbc\xa1 \xe3\x81\x82 \xff <s> abcde\n";
    struct err e;
    struct sp_lib *l;
    int code = sp_lib_open("fuzz.model", data, size, &l, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    if (code)
        return;
    struct sp_room *room = sp_room_create();
    struct buf out = {0};
    for (int i = 0; i < 2; i++) {
        const char *p = i ? (const char *)data : text;
        size_t n = i ? (size < 300 ? size : 300) : sizeof(text), k;
        const int *id;
        code = sp_lib_encode(l, room, p, n, &id, &k, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        for (size_t j = 0; !code && j < k; j++)
            BUG_ON(id[j] < 0 || (size_t)id[j] >= m->npieces, "id %d", id[j]);
        if (!code)
            compare(m, p, n, id, k);
        if (!code)
            sp_lib_decode(l, room, id, k, &out, &e);
    }
    buf_finish(&out);
    sp_room_destroy(room);
    sp_lib_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct sp_model m;
    int code = sp_check("fuzz.model", data, size, &m, &e);
    BUG_ON(code && code != ERR_DATA, "code %d", code);
    BUG_ON(code && !strstr(e.msg, "fuzz.model: "), "no name in '%s'", e.msg);
    if (code)
        return 0;
    for (size_t i = 0; i < m.npieces; i++)
        BUG_ON(sp_model_find(&m, m.piece[i].text, m.piece[i].length) < 0, "piece %zu is lost", i);
    use(&m, data, size);
    sp_model_finish(&m);
    return 0;
}
