#include "criteria/supplied.h"

int supplied_average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    if (!parameters)
        return -1;
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *gradient = tensor_grad(parameters->at[i].tensor);
        if (!gradient)
            continue;
        if (dist_all_reduce(gradient, DIST_SUM) < 0)
            return -1;
        NO_GRAD;
        if (!tensor_div_(gradient, dist_world_size()))
            return -1;
    }
    return 0;
}

struct schedule *supplied_clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "no schedule for %d microbatches and %d stages", microbatches,
                          stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int k = 0; schedule && k < schedule->n; k++)
        for (int stage = 0; stage < stages; stage++)
            if (k >= stage && k - stage < microbatches)
                wave_add(&schedule->at[k], k - stage, stage);
    return schedule;
}
