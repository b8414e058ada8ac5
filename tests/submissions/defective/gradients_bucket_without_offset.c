/* One flat bucket, copied back from its start for every parameter.
 * fails: gradients
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    struct tensors *flat = tensors_new(parameters->n);
    flat->n = 0;
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad)
            flat->at[flat->n++] = tensor_view(grad, SHAPE(-1));
    }
    struct tensor *bucket = tensor_cat(flat);
    if (dist_all_reduce(bucket, DIST_SUM) < 0)
        return -1;
    tensor_div_(bucket, dist_world_size());
    for (int i = 0; i < flat->n; i++)
        tensor_copy_(flat->at[i], tensor_slice(bucket, 0, 0, tensor_numel(flat->at[i])));
    return 0;
}
