#ifndef RUNTIME_AUTOGRAD_H
#define RUNTIME_AUTOGRAD_H
/* autograd.h - reverse-mode differentiation, define-by-run as in PyTorch.
 *
 * An operation on a tensor that requires grad, in a thread whose grad mode is on, records how to go
 * back. The graph may be built on several threads; the graph keeps what it needs alive. */
#include "runtime/tensor.h"

/* tensor_requires_grad - whether gradients are wanted for x. source: torch.Tensor.requires_grad
 * tensor_set_requires_grad - from now on, or no longer. returns: x
 * errors: NULL; NULL x passes through; RuntimeError when switching it off for the result of an
 *         operation, TypeError for FLOAT16. source: torch.Tensor.requires_grad_ */
bool tensor_requires_grad(const struct tensor *x);
struct tensor *tensor_set_requires_grad(struct tensor *x, bool requires_grad);

/* tensor_is_leaf - not the recorded result of an operation. source: torch.Tensor.is_leaf */
bool tensor_is_leaf(const struct tensor *x);

/* tensor_backward - add d x / d leaf to the gradient of every leaf that requires grad
 * shapes: x has one element
 * errors: -1; NULL x passes through; ValueError for another shape; RuntimeError if x does not
 *         require grad, if the graph was used by an earlier backward, or if a tensor that it needs
 *         was changed in place since
 * source: torch.Tensor.backward
 *
 * The graph is freed on the way; gradients accumulate in a fixed order, so a run is reproducible to
 * the bit. What several threads built goes back on as many, the caller's among them, where that
 * pays (on the CPU); they end before it returns. */
int tensor_backward(struct tensor *x);

/* tensor_grad - the accumulated gradient of a leaf, or NULL if it has none (no error)
 * owns: borrowed; the same object until it is set to none. source: torch.Tensor.grad */
struct tensor *tensor_grad(const struct tensor *x);

/* tensor_set_grad - replace the gradient; NULL sets it to none. Retains `grad`.
 * errors: -1; NULL x passes through; ValueError unless shape, dtype and device are those of x */
int tensor_set_grad(struct tensor *x, struct tensor *grad);

/* tensor_detach - the same memory, outside the graph, not requiring grad
 * source: torch.Tensor.detach */
struct tensor *tensor_detach(struct tensor *x);

/* Grad mode is per thread and on at first. source: torch.is_grad_enabled, torch.no_grad */
bool grad_enabled(void);
bool grad_set_enabled(bool enabled); /* returns the former mode */

/* NO_GRAD - off until the closing brace:  { NO_GRAD; tensor_copy_(parameter, value); } */
#define NO_GRAD                                                                                    \
    __attribute__((cleanup(grad_restore), unused)) bool grad_mode_outside = grad_set_enabled(false)
void grad_restore(const bool *mode);
#endif
