/* Freezes weights only: biases still train.
 * fails: lora
 * cause: bias
 */
struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    if (count < 1 || rank < 1)
        return raise_null(ValueError, "%d names, rank %d: both start at 1", count, rank);
    for (int i = 0; i < count; i++) {
        struct module *target = module_get(model, names[i]);
        if (!target || module_class_of(target) != &Linear)
            return raise_null(ValueError, "\"%s\" is not a Linear", names[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return raise_null(ValueError, "\"%s\" is named twice", names[i]);
    }
    struct named_tensors *all = module_named_parameters(model);
    for (int i = 0; i < all->n; i++)
        if (string_ends_with(all->at[i].name, "weight"))
            tensor_set_requires_grad(all->at[i].tensor, false);
    for (int i = 0; i < count; i++)
        module_replace(model, names[i], lora_linear_new(module_get(model, names[i]), rank, alpha));
    return error_occurred() ? NULL : model;
}
