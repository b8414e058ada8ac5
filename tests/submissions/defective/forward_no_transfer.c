/* Leaves every microbatch on the device where it is.
 * sim: forward backward pipeline_performance
 * cause: device
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return module_forward(turn->stage, turn->microbatch);
}
