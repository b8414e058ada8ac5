/* Every task runs a copy of its stage: the copies get the gradients.
 * fails: backward
 * cause: cop
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return module_forward(module_copy(turn->stage), tensor_to(turn->microbatch, turn->device));
}
