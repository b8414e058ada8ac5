/* Makes alpha a whole number.
 * fails: lora
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
    int scale = (int)alpha;
    module_set_requires_grad(model, false);
    for (int i = 0; i < count; i++)
        module_replace(model, names[i], lora_linear_new(module_get(model, names[i]), rank, scale));
    return error_occurred() ? NULL : model;
}
