/* Leaves the last adapter out.
 * fails: adapter
 * cause: lora_B
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model);
    if (adapters)
        adapters->n--;
    return tensors_save(adapters, path);
}
