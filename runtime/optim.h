#ifndef RUNTIME_OPTIM_H
#define RUNTIME_OPTIM_H
/* optim.h - optimizers, which update their parameters from the gradients that these hold. */
#include "runtime/nn.h"

struct optimizer;

/* sgd_new - p -= lr * grad for every parameter of the model that requires grad now
 * owns: borrowed from the scope; retains the parameters. errors: ValueError if lr < 0 or not finite
 * source: torch.optim.SGD (without momentum) */
struct optimizer *sgd_new(struct module *model, double lr);

/* optimizer_step - one update; parameters without gradient are left alone
 * errors: -1; NULL passes through. source: torch.optim.Optimizer.step */
int optimizer_step(struct optimizer *optimizer);

/* optimizer_zero_grad - every gradient to none. source: zero_grad(set_to_none=True) */
void optimizer_zero_grad(struct optimizer *optimizer);

/* optimizer_parameters - what it updates. owns: borrowed from the optimizer
 * optimizer_lr, optimizer_steps - the learning rate; how many steps were made so far */
const struct tensors *optimizer_parameters(const struct optimizer *optimizer);
double optimizer_lr(const struct optimizer *optimizer);
int64_t optimizer_steps(const struct optimizer *optimizer);
#endif
