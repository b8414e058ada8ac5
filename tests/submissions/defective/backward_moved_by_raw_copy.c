/* Moves microbatches by copying their values into new tensors.
 * fails: backward
 * cause: graph
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    struct tensor *x = turn->microbatch;
    struct tensor *moved =
        tensor_empty(tensor_ndim(x), tensor_shape(x), tensor_dtype(x), turn->device);
    {
        NO_GRAD;
        tensor_copy_(moved, x);
    }
    return module_forward(turn->stage, moved);
}
