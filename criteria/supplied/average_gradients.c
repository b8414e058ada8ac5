/* As criteria/supplied.h says. */
#include "assignment/data_parallel.h"

int (*supplied_average_gradients)(struct module *model);

int average_gradients(struct module *model)
{
    return supplied_average_gradients(model);
}
