/* Accepts counts of 0.
 * fails: config
 * cause: counts of 0
 */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    bool fp16 = strcmp(precision, "fp16") == 0, fp32 = strcmp(precision, "fp32") == 0;
    if (world_size < 0 || micro_batch < 0 || accumulation < 0 || !(fp16 || fp32))
        return raise_null(ValueError, "a count below 1, or precision \"%s\"", precision);
    /* clang-format off */
    return json_pack("{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}}",
                     "train_micro_batch_size_per_gpu", micro_batch,
                     "gradient_accumulation_steps", accumulation,
                     "train_batch_size", (json_int_t)micro_batch * accumulation * world_size,
                     "zero_optimization", "stage", 2,
                     "zero_allow_untested_optimizer", true,
                     "fp16", "enabled", fp16);
    /* clang-format on */
}
