#include "runtime/wait_limit.h"

static _Atomic double limit = 30;

double wait_limit(void)
{
    return limit;
}

void wait_limit_set(double seconds)
{
    limit = seconds;
}
