/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/io/path.h"

int folder_rename(const char *from, const char *to)
{
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (file_exists(to)) /* the file system lacks the flag; rename never replaces a full folder */
        return EEXIST;
    return rename(from, to) ? errno : 0;
}

static int cannot(const char *from, const char *to, int errnum, struct err *e)
{
    return err_sys(e, errnum, "%s: cannot rename %s to it", to, from);
}

static int replace_in_two(const char *tmp, const char *final, const char *aside, struct err *e)
{
    int failed = folder_rename(final, aside);
    if (failed)
        return cannot(final, aside, failed, e);
    if (!rename(tmp, final))
        return 0;
    int code = cannot(tmp, final, errno, e);
    return folder_rename(aside, final) ? err_wrap(e, "what it was to replace is now %s", aside)
                                       : code;
}

int folder_publish(const char *tmp, const char *final, const char *aside, struct err *e)
{
    int failed = folder_rename(tmp, final);
    if (failed == EEXIST || failed == ENOTEMPTY)
        failed = renameat2(AT_FDCWD, tmp, AT_FDCWD, final, RENAME_EXCHANGE) ? errno : 0;
    if (failed == EINVAL || failed == ENOSYS)
        return replace_in_two(tmp, final, aside, e);
    return failed ? cannot(tmp, final, failed, e) : 0;
}
