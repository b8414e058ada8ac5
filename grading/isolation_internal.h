#ifndef GRADING_ISOLATION_INTERNAL_H
#define GRADING_ISOLATION_INTERNAL_H
/* isolation_internal.h - what isolation_linux.c has in files of their own. All of it is safe
 * between fork and exec. */
#include "grading/isolation.h"

/* isolation_seal - everything that is mounted becomes read-only, without devices and setuid
 * programs. returns: false with errno */
bool isolation_seal(void);

/* isolation_write_only - Landlock: of the file system, only `folder` (and the plainest devices) can
 * be written from now on, by this thread and what it starts. Does nothing where the kernel has no
 * Landlock. returns: false with errno if the folder could not be written either */
bool isolation_write_only(const char *folder);
#endif
