/* Calls a function that nobody defines.
 * fails: config lora adapter zero_runtime zero_updates
 * says: solve_assignment
 */
json_t *solve_assignment(void);

json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    return solve_assignment();
}
