#include "criteria/supplied.h"

int average_gradients(struct module *model)
{
    return supplied_average_gradients(model);
}
