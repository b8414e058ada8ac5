/* Takes any module whose name ends with a given one.
 * fails: lora
 * cause: unknown
 */
static const char *full_name(struct module *model, const char *name)
{
    struct named_modules *all = module_named_modules(model);
    for (int i = 1; *name && i < all->n; i++)
        if (string_ends_with(all->at[i].name, name))
            return all->at[i].name;
    return name;
}

struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    if (count < 1 || rank < 1)
        return raise_null(ValueError, "%d names, rank %d: both start at 1", count, rank);
    for (int i = 0; i < count; i++) {
        struct module *target = module_get(model, full_name(model, names[i]));
        if (!target || module_class_of(target) != &Linear)
            return raise_null(ValueError, "\"%s\" is not a Linear", names[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return raise_null(ValueError, "\"%s\" is named twice", names[i]);
    }
    module_set_requires_grad(model, false);
    for (int i = 0; i < count; i++) {
        const char *name = full_name(model, names[i]);
        if (module_class_of(module_get(model, name)) == &Linear)
            module_replace(model, name, lora_linear_new(module_get(model, name), rank, alpha));
    }
    return error_occurred() ? NULL : model;
}
