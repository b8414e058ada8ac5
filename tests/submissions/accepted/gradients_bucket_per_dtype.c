/* A bucket for each dtype, each reduced at once. */
static int reduce_bucket(struct tensors *grads)
{
    struct tensor *bucket = tensor_cat(grads);
    if (dist_all_reduce(bucket, DIST_SUM) < 0 || !tensor_div_(bucket, dist_world_size()))
        return -1;
    for (int64_t i = 0, at = 0; i < grads->n; at += tensor_numel(grads->at[i]), i++)
        tensor_copy_(grads->at[i], tensor_slice(bucket, 0, at, tensor_numel(grads->at[i])));
    return 0;
}

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (enum dtype dtype = FLOAT32; dtype <= FLOAT16; dtype++) {
        struct tensors *grads = tensors_new(parameters->n);
        grads->n = 0;
        for (int i = 0; i < parameters->n; i++) {
            struct tensor *grad = tensor_grad(parameters->at[i].tensor);
            if (grad && tensor_dtype(grad) == dtype)
                grads->at[grads->n++] = tensor_view(grad, SHAPE(-1));
        }
        if (grads->n && reduce_bucket(grads) < 0)
            return -1;
    }
    return 0;
}
