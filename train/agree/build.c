/* SPDX-License-Identifier: Apache-2.0 */
#include "train/agree/build.h"

#include <link.h>
#include <stdbool.h>

/* Code and what nothing writes, without the segment of the file's head: that has the linker's own
 * digest, which is of the symbols for debuggers, too, and with these of the folder of the build. */
static int add_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sha *h = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        bool code = p->p_flags & PF_X, constants = !(p->p_flags & PF_W) && p->p_offset;
        if (p->p_type == PT_LOAD && p->p_flags & PF_R && (code || constants))
            sha_add(h, (const char *)info->dlpi_addr + p->p_vaddr, p->p_filesz);
    }
    return 1; /* the program is the first of what is loaded */
}

void agree_build(char ret[SHA_TEXT])
{
    struct sha *h = sha_create();
    dl_iterate_phdr(add_program, h);
    sha_text(h, ret);
    sha_destroy(h);
}
