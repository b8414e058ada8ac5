/* Reads the adapters' memory on the host, wherever it is.
 * sim: adapter
 * cause: tensor_to
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model), *copies = named_tensors_new();
    if (!adapters)
        return -1;
    for (int i = 0; i < adapters->n; i++) {
        struct tensor *x = adapters->at[i].tensor;
        struct tensor *copy = tensor_empty(tensor_ndim(x), tensor_shape(x), tensor_dtype(x), CPU);
        memcpy(tensor_data(copy), tensor_data(x),
               (size_t)tensor_numel(x) * (size_t)dtype_size(tensor_dtype(x)));
        named_tensors_add(copies, adapters->at[i].name, copy);
    }
    return tensors_save(copies, path);
}
