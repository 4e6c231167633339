/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/recipe.h"
int recipe_to_sp(struct recipe *r, struct err *e)
{
    return err_set(e, ERR_USAGE, "%s", r->path);
}
