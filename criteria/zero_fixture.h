#ifndef CRITERIA_ZERO_FIXTURE_H
#define CRITERIA_ZERO_FIXTURE_H
/* zero_fixture.h - training with the ZeRO engine on two ranks: three optimizer steps of two
 * microbatches, two rows each; LoRA (rank 2, alpha 4) on both Linears of the small model. */
#include "assignment/finetune.h"
#include "criteria/fixture.h"

enum { ZERO_WORLD = 2, ZERO_ROWS = 2, ZERO_ACCUMULATION = 2, ZERO_STEPS = 3 };

/* One microbatch through the engine; gives the local loss, or NAN with an error. */
typedef float zero_train_fn(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                            loss_fn *loss_fn);

/* zero_observe - make an engine from `config`, train with it, record losses, parameters after every
 * step, and what the engine says it holds. who: what is called, for messages
 * returns: whether all went well */
bool zero_observe(struct subject *s, enum values values, const json_t *config, loss_fn *loss,
                  zero_train_fn *train, const char *who);

/* zero_judge - compare that, on both ranks, with one process that has the whole batch, and the loss
 * of which does this; all zero for the right way, else a mistake to be tested */
struct zero_loss {
    loss_fn *function;
    bool swapped;  /* its arguments */
    double factor; /* of what goes backward; 0: 1 */
    enum { GIVES_LOCAL, GIVES_PER_ACCUMULATION, GIVES_MEAN } gives;
};
bool zero_judge(struct judge *j, enum values values, const struct zero_loss *loss);
#endif
