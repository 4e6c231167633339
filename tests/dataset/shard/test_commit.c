/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/commit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/path.h"
#include "tests/dataset/corpus.h"

/* PREFIX.commit as a writer leaves it that dies at once: the files of a shard made elsewhere. */
static void leave_commit(const char *prefix, const char *text, bool bin, bool manifest, bool idx)
{
    struct err e;
    const char *const suffix[] = {".bin", ".manifest.json", ".idx"};
    const bool wanted[] = {bin, manifest, idx};
    char *folder = mem_printf("%s.commit", prefix), *base = path_base(prefix);
    T_OK(file_mkdirs(folder, &e), &e);
    for (int i = 0; i < 3; i++) {
        char *path = mem_printf("%s/%s%s", folder, base, suffix[i]);
        if (wanted[i])
            T_OK(file_replace(path, text, strlen(text), &e), &e);
        free(path);
    }
    free(folder);
    free(base);
}

static void stand(const char *name, const char *text)
{
    struct err e;
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
}

/* The text of a file, or NULL for none. */
static void lies(const char *name, const char *want)
{
    struct err e;
    struct buf b = {0};
    if (!want) {
        T_CHECK(!file_exists(t_path(name)));
        return;
    }
    T_OK(file_read(t_path(name), 100, &b, &e), &e);
    T_STR(b.data, want);
    buf_finish(&b);
}

static void nothing_to_finish(void)
{
    struct err e;
    stand("n.idx", "old");
    T_OK(commit_finish(t_path("n"), &e), &e);
    T_OK(commit_finish(t_path("no such folder/n"), &e), &e);
    lies("n.idx", "old");
}

/* Every state that a writer can be killed in, with a new manifest and without. */
static void each_step_is_taken_up(void)
{
    struct err e;
    for (int manifest = 0; manifest < 2; manifest++)
        for (int moved = 0; moved < 4; moved++) {
            stand("s.bin", moved > 0 ? "new" : "old");
            if (moved == 0 || (manifest && moved > 1))
                stand("s.manifest.json", moved ? "new" : "old");
            else
                unlink(t_path("s.manifest.json"));
            if (moved == 0 || moved == 3)
                stand("s.idx", moved ? "new" : "old");
            else
                unlink(t_path("s.idx"));
            leave_commit(t_path("s"), "new", moved < 1, manifest && moved < 2, moved < 3);
            T_OK(commit_finish(t_path("s"), &e), &e);
            lies("s.bin", "new");
            lies("s.manifest.json", manifest ? "new" : NULL);
            lies("s.idx", "new");
            lies("s.commit", NULL);
        }
}

static void one_writer_follows_another(void)
{
    struct err e;
    struct shard s;
    bool done;
    char *folder;
    write_counting(t_path("w"), (uint32_t[]){2}, 1);
    leave_commit(t_path("w"), "that of the dead", true, true, true);
    struct outfile first;
    T_OK(outdir_create(t_path("w"), t_path("w.pack"), &first, &folder, &e), &e);
    outfile_abort(&first);
    for (int i = 0; i < 2; i++) {
        char *from = mem_printf("%s%s", t_path("w"), i ? ".idx" : ".bin");
        char *to = mem_printf("%s/w%s", folder, i ? ".idx" : ".bin");
        T_EQ(rename(from, to), 0);
        free(from);
        free(to);
    }
    T_OK(commit_publish(folder, t_path("w"), &done, &e), &e);
    T_CHECK(done && !file_exists(folder));
    lies("w.commit", NULL);
    lies("w.manifest.json", NULL);
    T_OK(shard_open(&s, t_path("w"), &e), &e);
    T_EQ(shard_length(&s, 0), 2);
    shard_close(&s);
    free(folder);
}

/* A reader waits for a writer that holds the lock, and then finds nothing left to do. */
static void a_reader_waits_for_a_living_writer(void)
{
    struct err e;
    leave_commit(t_path("r"), "new", true, false, true);
    FILE *idx = fopen(t_path("r.commit/r.idx"), "r+");
    int begun[2];
    T_CHECK(idx && !flock(fileno(idx), LOCK_EX) && !pipe(begun));
    const char *prefix = t_path("r");
    pid_t reader = fork();
    if (!reader) {
        fclose(idx);
        _exit(write(begun[1], "x", 1) != 1 || commit_finish(prefix, NULL) ||
              access(t_path("r.idx"), F_OK));
    }
    char x;
    int status;
    T_EQ(read(begun[0], &x, 1), 1);
    usleep(50000);
    T_EQ(waitpid(reader, &status, WNOHANG), 0);
    lies("r.bin", NULL);
    T_EQ(rename(t_path("r.commit/r.bin"), t_path("r.bin")), 0);
    T_EQ(rename(t_path("r.commit/r.idx"), t_path("r.idx")), 0);
    fclose(idx);
    T_EQ(waitpid(reader, &status, 0), reader);
    T_EQ(status, 0);
    lies("r.bin", "new");
    lies("r.idx", "new");
    close(begun[0]);
    close(begun[1]);
    T_OK(commit_finish(t_path("r"), &e), &e);
    lies("r.commit", NULL);
}

static void what_cannot_be_finished_is_told(void)
{
    struct err e;
    struct shard s;
    leave_commit(t_path("x"), "new", true, false, false);
    T_OK(file_mkdirs(t_path("x.commit/x.idx"), &e), &e);
    T_ERR(shard_open(&s, t_path("x"), &e), &e, ERR_IO,
          "x.commit: contains a shard whose writer was killed");
    T_ERR(open_idx(&s, t_path("x"), &e), &e, ERR_IO, "x.commit: ");
}

T_MAIN(T_CASE(nothing_to_finish), T_CASE(each_step_is_taken_up), T_CASE(one_writer_follows_another),
       T_CASE(a_reader_waits_for_a_living_writer), T_CASE(what_cannot_be_finished_is_told))
