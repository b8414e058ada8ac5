#ifndef GRADING_WORKSPACE_H
#define GRADING_WORKSPACE_H
/* workspace.h - the private folder of a run.
 *
 * It is locked while its run lasts. One whose run was killed and could not remove it is removed by
 * the next. */

/* workspace_create - a new folder in TMPDIR (or /tmp) that nobody else may enter; it is removed
 * when the process that created it exits
 * returns: its path. owns: borrowed. errors: ends the command as a fault */
const char *workspace_create(void);

/* workspace_remove - remove the folder now, whatever is in it. Does nothing without one. */
void workspace_remove(void);

/* folder_remove - remove a folder, whatever is in it, however deep and however guarded
 * returns: 0; -1 with errno */
int folder_remove(const char *path);
#endif
