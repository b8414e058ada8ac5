#ifndef GRADING_WORLDS_H
#define GRADING_WORLDS_H
/* worlds.h - the subjects of one criterion: one process per rank of every world size, all at once. */
#include <stdbool.h>
#include <stdint.h>

#include "criteria/criterion.h"

struct worlds;
#endif
