/* Leaves the adapters frozen after loading.
 * fails: adapter
 * cause: require grad
 */
int load_adapter(struct module *model, const char *path)
{
    struct named_tensors *own = adapters_of(model), *saved = tensors_load(path);
    if (!own || !saved)
        return -1;
    if (saved->n != own->n)
        return raise_error(ValueError, "%s holds %d tensors, not %d", path, saved->n, own->n);
    for (struct named_tensor *p = own->at; p < own->at + own->n; p++) {
        struct tensor *value = named_tensors_find(saved, p->name);
        if (!value || !tensor_same_shape(value, p->tensor))
            return raise_error(ValueError, "%s holds no %s of its shape", path, p->name);
    }
    NO_GRAD;
    for (struct named_tensor *p = own->at; p < own->at + own->n; p++)
        tensor_copy_(tensor_set_requires_grad(p->tensor, false),
                     named_tensors_find(saved, p->name));
    return error_occurred() ? -1 : 0;
}
