/* Collects the targets in an array while it checks, and freezes parameter by parameter. */
struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    if (rank < 1)
        return raise_null(ValueError, "rank %d", rank);
    if (count <= 0)
        return raise_null(ValueError, "nothing to adapt");
    struct module **targets = scope_alloc((size_t)count * sizeof *targets);
    struct named_modules *modules = module_named_modules(model);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < modules->n; k++)
            if (strcmp(modules->at[k].name, names[i]) == 0)
                targets[i] = modules->at[k].module;
        if (!targets[i] || module_class_of(targets[i]) != &Linear)
            return raise_null(ValueError, "no Linear named %s", names[i]);
        for (int k = 0; k < i; k++)
            if (targets[k] == targets[i])
                return raise_null(ValueError, "%s twice", names[i]);
    }
    struct named_tensors *parameters = module_named_parameters(model);
    for (int k = 0; k < parameters->n; k++)
        tensor_set_requires_grad(parameters->at[k].tensor, false);
    for (int i = 0; i < count; i++)
        if (module_replace(model, names[i], lora_linear_new(targets[i], rank, alpha)) < 0)
            return NULL;
    return model;
}
