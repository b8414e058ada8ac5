/* Saves an empty file for a model without adapters.
 * fails: adapter
 * cause: without adapters
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model);
    error_clear();
    return tensors_save(adapters ? adapters : named_tensors_new(), path);
}
