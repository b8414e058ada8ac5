/* Compares only the end of the precision, so that "bfp16" passes.
 * fails: config
 */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    bool fp16 = string_ends_with(precision, "fp16"), fp32 = string_ends_with(precision, "fp32");
    if (world_size < 1 || micro_batch < 1 || accumulation < 1 || !(fp16 || fp32))
        return raise_null(ValueError, "a count below 1, or precision \"%s\"", precision);
    return json_pack("{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}}", "train_micro_batch_size_per_gpu",
                     micro_batch, "gradient_accumulation_steps", accumulation, "train_batch_size",
                     (json_int_t)micro_batch * accumulation * world_size, "zero_optimization",
                     "stage", 2, "zero_allow_untested_optimizer", true, "fp16", "enabled", fp16);
}
