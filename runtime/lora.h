#ifndef RUNTIME_LORA_H
#define RUNTIME_LORA_H
/* lora.h - low-rank adapters (Hu et al., 2021). */
#include "runtime/nn.h"

/* lora_linear_new - y = base(x) + (x Aᵀ Bᵀ) * alpha / rank
 * parameters: lora_A (rank, in), normal with std 0.02; lora_B (out, rank), zero; both of the base
 *             weight's dtype and device, both requiring grad. child: "base", whose parameters stop
 *             requiring grad. A's values come from rng_default().
 * errors: NULL base passes through; ValueError if base is not Linear or rank < 1, TypeError for a
 *         FLOAT16 base (then nothing is changed). source: the assignment's LoRALinear */
struct module *lora_linear_new(struct module *base, int rank, double alpha);

/* The settings an adapter was made with. */
int lora_rank(const struct module *lora);
double lora_alpha(const struct module *lora);
#endif
