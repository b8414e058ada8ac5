/* isolation_landlock.c - the file system's guard where there are no mounts of one's own. */
#if defined(__linux__) && !defined(POSIX_ONLY)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "grading/isolation_internal.h"

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>

/* Those that every version of Landlock knows, and, where it knows them, linking across folders and
 * truncation. source: landlock(7) */
enum {
    WRITE_FILE = LANDLOCK_ACCESS_FS_WRITE_FILE,
    CHANGES = WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
              LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
              LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
              LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
              LANDLOCK_ACCESS_FS_MAKE_SYM,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14
};

static uint64_t changes_known(long version)
{
    return CHANGES | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
}

static bool allow(int rules, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access,
                                              .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return false;
    bool allowed = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return allowed;
}

bool isolation_write_only(const char *folder)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr changes = {.handled_access_fs = changes_known(version)};
    int rules = version < 1 ? -1
                            : (int)syscall(SYS_landlock_create_ruleset, &changes,
                                           sizeof changes.handled_access_fs, 0);
    if (rules < 0)
        return true;
    if (!allow(rules, folder, changes.handled_access_fs))
        return false;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        allow(rules, devices[i], WRITE_FILE);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
    return true;
}
#else
bool isolation_write_only(const char *folder)
{
    (void)folder;
    return true;
}
#endif
#endif
