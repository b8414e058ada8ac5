/* Key by key, with fp16 absent in FP32, and sections that are switched off. */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    if (world_size <= 0 || micro_batch <= 0 || accumulation <= 0)
        return raise_null(ValueError, "counts must be positive");
    if (strcmp(precision, "fp32") && strcmp(precision, "fp16"))
        return raise_null(ValueError, "unknown precision %s", precision);
    json_int_t total = (json_int_t)world_size * micro_batch * accumulation;
    json_t *config = json_object(), *zero = json_object();
    json_object_set_new(config, "train_batch_size", json_integer(total));
    json_object_set_new(config, "gradient_accumulation_steps", json_integer(accumulation));
    json_object_set_new(config, "train_micro_batch_size_per_gpu", json_integer(micro_batch));
    json_object_set_new(zero, "stage", json_integer(2));
    json_object_set_new(zero, "overlap_comm", json_false());
    json_object_set_new(zero, "contiguous_gradients", json_true());
    json_object_set_new(config, "zero_optimization", zero);
    json_object_set_new(config, "zero_allow_untested_optimizer", json_true());
    json_object_set_new(config, "bf16", json_pack("{s:b}", "enabled", 0));
    json_object_set_new(config, "wall_clock_breakdown", json_false());
    if (strcmp(precision, "fp16") == 0)
        json_object_set_new(config, "fp16", json_pack("{s:b, s:i}", "enabled", 1, "loss_scale", 0));
    return config;
}
