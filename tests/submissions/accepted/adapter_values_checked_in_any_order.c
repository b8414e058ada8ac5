/* Goes through the file's entries instead of the model's, and counts those that fit. */
int load_adapter(struct module *model, const char *path)
{
    struct named_tensors *saved = tensors_load(path);
    struct named_tensors *own = saved ? adapters_of(model) : NULL;
    int fitting = 0;
    for (int i = 0; own && i < saved->n; i++) {
        struct tensor *mine = named_tensors_find(own, saved->at[i].name);
        fitting += mine && tensor_same_shape(mine, saved->at[i].tensor);
    }
    if (!own)
        return -1;
    if (fitting != own->n || fitting != saved->n)
        return raise_error(ValueError, "%d of %d entries fit, of %d", fitting, saved->n, own->n);
    bool grad = grad_set_enabled(false);
    for (int i = 0; i < saved->n; i++)
        tensor_copy_(named_tensors_find(own, saved->at[i].name), saved->at[i].tensor);
    grad_set_enabled(grad);
    return 0;
}
