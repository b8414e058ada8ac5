#ifndef CRITERIA_LORA_FIXTURE_H
#define CRITERIA_LORA_FIXTURE_H
/* lora_fixture.h - models for the criteria about adapters. */
#include "criteria/fixture.h"

/* nested_model - children "encoder" (with "proj", a Linear(4, 6), and "act", a Tanh) and "head", a
 * Linear(6, 3), with values drawn for this run; FLOAT64 on the CPU. owns: borrowed */
struct module *nested_model(uint64_t seed);

/* is_adapter - whether a parameter of this name is lora_A or lora_B */
bool is_adapter(const char *name);

/* draw_adapters - give every lora_A and lora_B of the model normal values, drawn by name, so that
 * both sides have the same. Adapters that the model lacks are left out. */
void draw_adapters(struct module *model, double std, uint64_t seed, const char *name);
#endif
