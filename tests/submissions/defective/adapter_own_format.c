/* A file format of its own: floats, one after another, as many as there are.
 * fails: adapter
 */
#include <stdio.h>

int save_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model);
    FILE *file = adapters ? fopen(path, "wb") : NULL;
    for (int i = 0; file && i < adapters->n; i++)
        fwrite(tensor_data(adapters->at[i].tensor), (size_t)dtype_size(FLOAT32),
               (size_t)tensor_numel(adapters->at[i].tensor), file);
    return file ? fclose(file) : -1;
}

int load_adapter(struct module *model, const char *path)
{
    struct named_tensors *adapters = adapters_of(model);
    FILE *file = adapters ? fopen(path, "rb") : NULL;
    float buffer[256];
    for (int i = 0; file && i < adapters->n; i++) {
        int64_t n = tensor_numel(adapters->at[i].tensor);
        if (fread(buffer, sizeof *buffer, (size_t)n, file) < (size_t)n)
            clearerr(file);
        NO_GRAD;
        tensor_copy_(adapters->at[i].tensor,
                     tensor_from(buffer, tensor_ndim(adapters->at[i].tensor),
                                 tensor_shape(adapters->at[i].tensor)));
    }
    return file ? fclose(file) : raise_error(OSError, "cannot read %s", path);
}
