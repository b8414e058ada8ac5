/* Functions that are named like the runtime's and the grader's. The grader's own average_gradients
 * must not come to use them.
 * fails: gradients
 * file: data_parallel.c
 */
void observe_end(void *subject);
void observe_end(void *subject)
{
    (void)subject;
}

int judge_fail(void *judge, const char *reason, ...);
int judge_fail(void *judge, const char *reason, ...)
{
    return judge && reason;
}

struct tensor *tensor_div_(struct tensor *x, double divisor)
{
    (void)divisor;
    return x;
}
