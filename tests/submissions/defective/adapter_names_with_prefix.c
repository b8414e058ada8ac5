/* Saves every adapter under "model." and its name.
 * fails: adapter
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model), *renamed = named_tensors_new();
    if (!adapters)
        return -1;
    for (int i = 0; i < adapters->n; i++)
        named_tensors_add(renamed, scope_printf("model.%s", adapters->at[i].name),
                          adapters->at[i].tensor);
    return tensors_save(renamed, path);
}
