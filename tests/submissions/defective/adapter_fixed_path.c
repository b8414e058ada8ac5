/* Writes to a path of its own.
 * fails: adapter
 * cause: path
 */
int save_adapter(struct module *model, const char *path)
{
    return tensors_save(adapters_of(model), "adapter.pt");
}
