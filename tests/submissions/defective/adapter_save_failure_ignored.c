/* Returns 0 whether the file could be written or not.
 * fails: adapter
 * says: does not return -1
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model);
    if (!adapters)
        return -1;
    (void)tensors_save(adapters, path);
    return 0;
}
