#include "criteria/supplied.h"

#include <dlfcn.h>
#include <string.h>

#include "assignment/data_parallel.h"
#include "assignment/pipeline.h"

static int average(struct module *model)
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

static struct schedule *schedule(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "no schedule for %d microbatches and %d stages", microbatches,
                          stages);
    struct schedule *waves = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int k = 0; waves && k < waves->n; k++)
        for (int stage = 0; stage < stages; stage++)
            if (k >= stage && k - stage < microbatches)
                wave_add(&waves->at[k], k - stage, stage);
    return waves;
}

bool supplied_connect(void *library, const char *name)
{
    static const struct {
        const char *name, *pointer;
        void (*work)(void);
    } all[] = {
        {"average_gradients", "supplied_average_gradients", (void (*)(void))average},
        {"clock_cycles", "supplied_clock_cycles", (void (*)(void))schedule},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        void *pointer = strcmp(name, all[i].name) == 0 ? dlsym(library, all[i].pointer) : NULL;
        if (!pointer)
            continue;
        memcpy(pointer, &all[i].work, sizeof all[i].work); /* pointers to functions look alike */
        return true;
    }
    return false;
}
