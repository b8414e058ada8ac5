/* Switches grad mode on in every task.
 * fails: forward
 * cause: grad mode
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    grad_set_enabled(true);
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}
