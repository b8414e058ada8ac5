/* Copies every adapter to the CPU first, and saves them in reverse. */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model), *copies = named_tensors_new();
    if (!adapters)
        return -1;
    for (int i = adapters->n - 1; i >= 0; i--)
        named_tensors_add(copies, adapters->at[i].name,
                          tensor_clone(tensor_to(tensor_detach(adapters->at[i].tensor), CPU)));
    return tensors_save(copies, path);
}
