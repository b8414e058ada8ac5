/* Never comes back.
 * hangs: updates
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    for (volatile int forever = 1; forever;)
        ;
    return 0;
}
