// SPDX-License-Identifier: Apache-2.0
// stories: simple varied stories as JSONL, any number of them from a seed.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "samples/stories/tell.h"

enum { EXIT_USAGE = 2, EXIT_IO = 4, EXIT_RESOURCES = 5 };

static const char help_text[] =
    "stories --seed 1234 --bytes 8M --output stories.jsonl\n"
    "\n"
    "Writes simple varied stories as JSONL, one {\"id\": k, \"text\": \"...\"} a line. Story k\n"
    "depends on the seed and on k alone, so a longer run begins with the lines of a shorter one.\n"
    "\n"
    "  --seed N        which stories (1234)\n"
    "  --documents N   write N stories (10)\n"
    "  --bytes N       write whole stories until there are at least N bytes; K, M, G count 1024\n"
    "  --id-base K     begin with story K (0)\n"
    "  --output FILE   where they go when all is written; - is stdout (-)\n"
    "  --overwrite     replace FILE if it exists\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit: 0 all is written, 2 usage, 4 cannot write, 5 out of memory.\n";

struct options {
    uint64_t seed;
    uint64_t documents; // UINT64_MAX when only bytes count
    uint64_t bytes;     // 0: only documents count
    uint64_t id_base;
    const char *output;
    bool overwrite;
};

struct output {
    const char *name; // for messages
    const char *path; // NULL: a stream, written in place
    char *temporary;
    FILE *file;
    uint64_t bytes;
};

static int complain(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("stories: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

// Options.

static uint64_t unit_of(const char *suffix)
{
    static const char letters[] = "KMG";
    const char *found = *suffix == '\0' ? NULL : strchr(letters, *suffix & ~0x20);
    if (found == NULL || suffix[1] != '\0') {
        return *suffix == '\0' ? 1 : 0;
    }
    return (uint64_t)1 << (10 * (found - letters + 1));
}

static bool parse_number(const char *s, bool units, uint64_t *ret_number)
{
    if (*s < '0' || *s > '9') {
        return false;
    }
    char *end;
    errno = 0;
    uintmax_t number = strtoumax(s, &end, 10);
    uint64_t unit = units ? unit_of(end) : *end == '\0';
    if (errno != 0 || unit == 0 || number > UINT64_MAX / unit) {
        return false;
    }
    *ret_number = number * unit;
    return true;
}

// "--id_base" is "--id-base".
static bool is_option(const char *arg, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '\0' || (arg[i] == '_' && i > 1 ? '-' : arg[i]) != name[i]) {
            return false;
        }
    }
    return name[len] == '\0';
}

static int set_option(struct options *o, const char *name, size_t len, const char *value)
{
    const struct {
        const char *name;
        uint64_t *number;
        bool units;
    } numbers[] = {
        {"--seed", &o->seed, false},
        {"--documents", &o->documents, false},
        {"--bytes", &o->bytes, true},
        {"--id-base", &o->id_base, false},
    };
    if (is_option(name, len, "--output")) {
        o->output = value;
        return value == NULL ? complain(EXIT_USAGE, "--output needs a value") : 0;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!is_option(name, len, numbers[i].name)) {
            continue;
        }
        if (value == NULL) {
            return complain(EXIT_USAGE, "%s needs a value", numbers[i].name);
        }
        if (!parse_number(value, numbers[i].units, numbers[i].number)) {
            return complain(EXIT_USAGE, "%s %s: expected a whole number from 0 to 2^64-1%s",
                            numbers[i].name, value, numbers[i].units ? ", K, M or G after it" : "");
        }
        return 0;
    }
    return complain(EXIT_USAGE, "unknown option %.*s; -h lists them", (int)len, name);
}

// *ret_help: only help was asked for.
static int parse_options(int argc, char **argv, struct options *o, bool *ret_help)
{
    const uint64_t unset = UINT64_MAX;
    *o = (struct options){.seed = 1234, .documents = unset, .bytes = unset, .output = "-"};
    *ret_help = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            *ret_help = true;
            return 0;
        }
        if (strcmp(argv[i], "--overwrite") == 0) {
            o->overwrite = true;
            continue;
        }
        size_t len = strcspn(argv[i], "=");
        const char *value = argv[i][len] == '=' ? argv[i] + len + 1 : NULL;
        bool alone = value == NULL;
        int code = set_option(o, argv[i], len, alone ? argv[i + 1] : value);
        if (code != 0) {
            return code;
        }
        i += alone;
    }
    if (o->documents != unset && o->bytes != unset) {
        return complain(EXIT_USAGE, "--documents and --bytes exclude each other");
    }
    if (o->documents == unset && o->bytes == unset) {
        o->documents = 10;
    }
    if (o->bytes == unset) {
        o->bytes = 0;
    }
    return 0;
}

// Output: a file appears under its name when it is whole.

static int write_error(const struct output *out)
{
    return complain(EXIT_IO, "%s: cannot write after %" PRIu64 " bytes: %s", out->name, out->bytes,
                    strerror(errno));
}

static int output_open(struct output *out, const char *path, bool overwrite)
{
    *out = (struct output){.name = path, .file = stdout};
    if (strcmp(path, "-") == 0) {
        out->name = "stdout";
        return 0;
    }
    struct stat st;
    const char *target = path;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISREG(st.st_mode) && !overwrite) {
        out->file = NULL;
        return complain(EXIT_USAGE, "%s exists: --overwrite replaces it", path);
    }
    if (!exists || S_ISREG(st.st_mode)) {
        size_t room = strlen(path) + 32;
        out->path = path;
        out->temporary = malloc(room);
        if (out->temporary == NULL) {
            return complain(EXIT_RESOURCES, "out of memory");
        }
        snprintf(out->temporary, room, "%s.tmp.%ld", path, (long)getpid());
        target = out->temporary;
    }
    out->file = fopen(target, "w");
    return out->file == NULL ? write_error(out) : 0;
}

// The new name must be on the disk too; where a folder cannot be synced there is no more to do.
static void sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static int output_close(struct output *out, int code)
{
    if (out->file != NULL) {
        bool fine = code != 0 || fflush(out->file) == 0;
        if (fine && code == 0 && out->path != NULL) {
            fine = fsync(fileno(out->file)) == 0;
        }
        code = fine ? code : write_error(out);
        if (fclose(out->file) != 0 && code == 0) {
            code = write_error(out);
        }
    }
    if (out->temporary != NULL) {
        if (code == 0 && rename(out->temporary, out->path) != 0) {
            code = write_error(out);
        }
        if (code == 0) {
            sync_folder(out->path);
        } else {
            (void)unlink(out->temporary);
        }
    }
    free(out->temporary);
    return code;
}

// Text is ASCII with newlines, so three characters need an escape at most.
static bool write_story(struct output *out, uint64_t id, const char *text, size_t len)
{
    int head = fprintf(out->file, "{\"id\": %" PRIu64 ", \"text\": \"", id);
    uint64_t bytes = (uint64_t)(head > 0 ? head : 0);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '"' || c == '\\' || c == '\n') {
            putc('\\', out->file);
            bytes++;
        }
        putc(c == '\n' ? 'n' : c, out->file);
        bytes++;
    }
    fputs("\"}\n", out->file);
    if (ferror(out->file)) {
        return false;
    }
    out->bytes += bytes + 3;
    return true;
}

static int write_stories(const struct options *o, struct output *out)
{
    struct teller *teller = teller_create(o->seed);
    int code = teller == NULL ? complain(EXIT_RESOURCES, "out of memory") : 0;
    for (uint64_t k = 0; code == 0 && k < o->documents; k++) {
        if (o->documents == UINT64_MAX && out->bytes >= o->bytes) {
            break;
        }
        const char *text;
        size_t len;
        if (teller_tell(teller, o->id_base + k, &text, &len) != 0) {
            code = complain(EXIT_RESOURCES, "out of memory");
        } else if (!write_story(out, o->id_base + k, text, len)) {
            code = write_error(out);
        }
    }
    teller_destroy(teller);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    bool help;
    int code = parse_options(argc, argv, &options, &help);
    if (code != 0) {
        return code;
    }
    struct output out;
    code = output_open(&out, help ? "-" : options.output, options.overwrite);
    if (code == 0 && help) {
        fputs(help_text, out.file);
    } else if (code == 0) {
        code = write_stories(&options, &out);
    }
    return output_close(&out, code);
}
