/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/cgroup.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The group of a line "4:cpu,memory:/a/b", or "0::/a/b" for v2; NULL if it is of another
 * controller. */
static char *group_of(char *line, const char *controller)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    if (!group || group[1] != '/')
        return NULL;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (!controller)
        return list[1] || strcmp(line, "0:") ? NULL : group;
    for (char *rest = list + 1, *name; (name = strsep(&rest, ",")) != NULL;)
        if (!strcmp(name, controller))
            return group;
    return NULL;
}

void cgroup_walk(const char *groups, const char *controller, const char *root,
                 void (*look)(const char *folder, void *arg), void *arg)
{
    char line[4096], folder[8192];
    FILE *f = fopen(groups, "re");
    if (!f)
        return;
    while (fgets(line, sizeof(line), f)) {
        char *group = group_of(line, controller);
        while (group) {
            snprintf(folder, sizeof(folder), "%s%s", root, group);
            look(folder, arg);
            char *slash = strrchr(group, '/');
            if (!slash)
                break;
            *slash = '\0';
        }
    }
    fclose(f);
}
