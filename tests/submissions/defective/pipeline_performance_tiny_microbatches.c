/* Runs each microbatch row by row.
 * sim: pipeline_performance
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    struct tensors *rows = tensor_split(tensor_to(turn->microbatch, turn->device), 1);
    if (tensor_size(turn->microbatch, 0) < 8)
        return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
    for (int i = 0; i < rows->n; i++)
        rows->at[i] = module_forward(turn->stage, rows->at[i]);
    return tensor_cat(rows);
}
