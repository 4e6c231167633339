/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/stdout.h"

#include <errno.h>
#include <stdio.h>

int stdout_finish(struct err *e)
{
    int saved = errno, code = 0;
    errno = 0;
    if (fflush(stdout) && errno)
        code = err_sys(e, errno, "standard output: cannot write");
    else if (ferror(stdout)) /* an earlier write failed, and its reason is gone */
        code = err_set(e, ERR_IO, "standard output: cannot write all of it");
    errno = saved;
    return code ? ERR_IO : 0;
}
