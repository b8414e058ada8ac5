#ifndef GRADING_HOME_H
#define GRADING_HOME_H
/* home.h - the checkout that the executable was built in. */

/* home_find - the nearest folder above the real executable that holds runtime/tensor.h
 * owns:   the caller (free)
 * errors: ends the command as a fault if there is none */
char *home_find(void);
#endif
