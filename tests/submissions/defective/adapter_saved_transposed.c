/* Saves every adapter transposed.
 * fails: adapter
 * cause: shape
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model), *turned = named_tensors_new();
    if (!adapters)
        return -1;
    for (int i = 0; i < adapters->n; i++)
        named_tensors_add(turned, adapters->at[i].name,
                          tensor_contiguous(tensor_transpose(adapters->at[i].tensor, 0, 1)));
    return tensors_save(turned, path);
}
