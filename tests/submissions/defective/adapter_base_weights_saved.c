/* Saves the base weights too.
 * fails: adapter
 * cause: base
 */
int save_adapter(struct module *model, const char *path)
{
    return adapters_of(model) ? tensors_save(module_named_parameters(model), path) : -1;
}
