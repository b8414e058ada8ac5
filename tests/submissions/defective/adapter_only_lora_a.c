/* Saves lora_A alone.
 * fails: adapter
 * cause: lora_B
 */
int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model), *half = named_tensors_new();
    if (!adapters)
        return -1;
    for (int i = 0; i < adapters->n; i++)
        if (string_ends_with(adapters->at[i].name, "lora_A"))
            named_tensors_add(half, adapters->at[i].name, adapters->at[i].tensor);
    return tensors_save(half, path);
}
