/* defects_finetune.h - variants of the reference's finetune.c. */
#define BATCH_SIZE "(json_int_t)micro_batch * accumulation * world_size"
#define CONFIG_RULE                                                                                \
    "    if (world_size < 1 || micro_batch < 1 || accumulation < 1 || !(fp16 || fp32))\n"
#define PACK "\"{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}}\""
#define UNTESTED "                     \"zero_allow_untested_optimizer\", true,\n"
#define FP16 "                     \"fp16\", \"enabled\", fp16);\n"
#define MORE(format) "\"{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}, " format "}\""
#define COUNT_RULE                                                                                 \
    "    if (count < 1 || rank < 1)\n"                                                             \
    "        return raise_null(ValueError, \"%d names, rank %d: both start at 1\", count, "        \
    "rank);\n"
#define TARGET "        struct module *target = module_get(model, names[i]);\n"
#define CLASS_RULE                                                                                 \
    "        if (!target || module_class_of(target) != &Linear)\n"                                 \
    "            return raise_null(ValueError, \"\\\"%s\\\" is not a Linear\", names[i]);\n"
#define TWICE_RULE                                                                                 \
    "        for (int j = 0; j < i; j++)\n"                                                        \
    "            if (strcmp(names[i], names[j]) == 0)\n"                                           \
    "                return raise_null(ValueError, \"\\\"%s\\\" is named twice\", names[i]);\n"
#define FREEZE "    module_set_requires_grad(model, false);\n"
#define REPLACE                                                                                    \
    "        module_replace(model, names[i], lora_linear_new(module_get(model, names[i]), rank, "  \
    "alpha));\n"
#define REPLACE_LOOP "    for (int i = 0; i < count; i++)\n" REPLACE
#define SAME "    return error_occurred() ? NULL : model;\n"
#define SAVE "    return tensors_save(adapters_of(model), path);\n"
#define NUMBER_RULE                                                                                \
    "    if (saved->n != own->n)\n"                                                                \
    "        return raise_error(ValueError, \"%s holds %d tensors, not %d\", path, saved->n, "     \
    "own->n);\n"
#define ENTRY_RULE "        if (!value || !tensor_same_shape(value, p->tensor))\n"
#define COPY "        tensor_copy_(p->tensor, named_tensors_find(saved, p->name));\n"
#define STEP "    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)\n"

static const struct variant finetune_variants[] = {
    /* config; what it breaks in a live engine, or in the object for one, fails zero_runtime too */
    {"batch size without the world",
     "config zero_runtime",
     {{BATCH_SIZE, "(json_int_t)micro_batch * accumulation"}}},
    {"batch size without accumulation",
     "config zero_runtime",
     {{BATCH_SIZE, "(json_int_t)micro_batch * world_size"}}},
    {"stage 1", "config zero_runtime", {{"\"stage\", 2,", "\"stage\", 1,"}}},
    {"stage 3", "config zero_runtime", {{"\"stage\", 2,", "\"stage\", 3,"}}},
    {"offload on",
     "config zero_runtime",
     {{PACK, "\"{s:i, s:i, s:I, s:{s:i, s:{s:s}}, s:b, s:{s:b}}\""},
      {"\"stage\", 2,", "\"stage\", 2, \"offload_optimizer\", \"device\", \"cpu\","}}},
    {"clipping 1.0",
     "config zero_runtime",
     {{PACK, MORE("s:f")}, {FP16, "\"fp16\", \"enabled\", fp16, \"gradient_clipping\", 1.0);\n"}}},
    {"bf16 accepted",
     "config",
     {{"|| !(fp16 || fp32))", "|| !(fp16 || fp32 || strcmp(precision, \"bf16\") == 0))"}}},
    {"bf16 section",
     "config zero_runtime",
     {{PACK, MORE("s:{s:b}")},
      {FP16, "\"fp16\", \"enabled\", fp16, \"bf16\", \"enabled\", true);\n"}}},
    {"any word accepted", "config", {{" || !(fp16 || fp32))", ")"}}},
    {"fp16 always on", "config zero_runtime", {{"\"enabled\", fp16);", "\"enabled\", true);"}}},
    {"fp16 never on", "config", {{"\"enabled\", fp16);", "\"enabled\", false);"}}},
    {"precision compared by address",
     "config zero_runtime",
     {{"fp16 = strcmp(precision, \"fp16\") == 0, fp32 = strcmp(precision, \"fp32\") == 0",
       "fp16 = precision == (char *)\"fp16\", fp32 = precision == (char *)\"fp32\""}}},
    {"untested-optimizer flag missing",
     "config zero_runtime",
     {{PACK, "\"{s:i, s:i, s:I, s:{s:i}, s:{s:b}}\""}, {UNTESTED, ""}}},
    {"zero counts accepted",
     "config",
     {{CONFIG_RULE, "    if (world_size < 0 || micro_batch < 0 || accumulation < 0 || !(fp16 || "
                    "fp32))\n"}}},
    {"a world of 0 accepted", "config", {{"world_size < 1 || ", "world_size < 0 || "}}},
    {"negative counts accepted",
     "config",
     {{CONFIG_RULE, "    if (!world_size || !micro_batch || !accumulation || !(fp16 || fp32))\n"}}},
    {"an optimizer section",
     "config zero_runtime",
     {{PACK, MORE("s:{s:s}")},
      {FP16, "\"fp16\", \"enabled\", fp16, \"optimizer\", \"type\", \"Adam\");\n"}}},
    /* zero_runtime */
    {"a misspelt key", "config zero_runtime", {{"\"zero_optimization\"", "\"zero_optimisation\""}}},
    {"a misspelt flag",
     "config zero_runtime",
     {{"\"zero_allow_untested_optimizer\"", "\"zero_allow_untested_optimiser\""}}},
    /* zero_updates */
    {"loss divided by accumulation again",
     "zero_updates",
     {{"engine_backward(engine, loss)", "engine_backward(engine, tensor_scale(loss, 0.5))"}}},
    {"ordinary backward",
     "zero_updates",
     {{"engine_backward(engine, loss)", "tensor_backward(loss)"}}},
    {"step only at the boundary",
     "zero_updates",
     {{STEP, "    static int calls;\n"
             "    if (engine_backward(engine, loss) < 0 || (calls++ % 2 && engine_step(engine) < "
             "0))\n"}}},
    {"step never", "zero_updates", {{" || engine_step(engine) < 0", ""}}},
    {"step twice",
     "zero_updates",
     {{" || engine_step(engine) < 0", " || engine_step(engine) < 0 || engine_step(engine) < 0"}}},
    {"scaled loss returned",
     "zero_updates",
     {{"return tensor_item(loss);", "return tensor_item(loss) / 2;"}}},
    {"zero_updates: loss arguments swapped",
     "zero_updates",
     {{"loss_fn(engine_forward(engine, inputs), targets)",
       "loss_fn(targets, engine_forward(engine, inputs))"}}},
    /* lora */
    {"validates while replacing",
     "lora",
     {{COUNT_RULE, COUNT_RULE FREEZE},
      {TWICE_RULE "    }\n" FREEZE REPLACE_LOOP, TWICE_RULE REPLACE "    }\n"}}},
    {"freezes after inserting", "lora", {{FREEZE, ""}, {SAME, FREEZE SAME}}},
    {"freezes nothing", "lora", {{FREEZE, ""}}},
    {"dotted names unsupported",
     "lora",
     {{TARGET, "        struct module *target = module_child(model, names[i]);\n"}}},
    {"duplicates accepted", "lora", {{TWICE_RULE, ""}}},
    {"unknown names skipped",
     "lora",
     {{TARGET, TARGET "        if (!target) {\n"
                      "            error_clear();\n"
                      "            continue;\n"
                      "        }\n"},
      {REPLACE, "        if (module_get(model, names[i]))\n    " REPLACE "        else\n"
                "            error_clear();\n"}}},
    {"empty list accepted", "lora", {{"if (count < 1 || rank < 1)", "if (rank < 1)"}}},
    {"rank 0 accepted", "lora", {{"if (count < 1 || rank < 1)", "if (count < 1)"}}},
    {"scale alpha", "lora", {{"rank, alpha));", "rank, alpha * rank));"}}},
    {"rank and alpha swapped", "lora", {{"rank, alpha));", "(int)alpha, rank));"}}},
    {"FP32 adapter",
     "lora",
     {{"module_replace(model, names[i], lora_linear_new(module_get(model, names[i]), rank, "
       "alpha));",
       "module_replace(model, names[i], module_cast(lora_linear_new(module_get(model, names[i]), "
       "rank, alpha), FLOAT32));"}}},
    {"returns a copy", "lora", {{SAME, "    return module_copy(model);\n"}}},
    {"Tanh taken for Linear",
     "lora",
     {{"if (!target || module_class_of(target) != &Linear)", "if (!target)"}}},
    {"an adapter taken for Linear",
     "lora",
     {{"module_class_of(target) != &Linear)",
       "(module_class_of(target) != &Linear && module_class_of(target) != &LoRALinear))"},
      {"lora_linear_new(module_get(model, names[i])",
       "lora_linear_new(module_child(module_get(model, names[i]), \"base\") ? "
       "module_child(module_get(model, names[i]), \"base\") : module_get(model, names[i])"}}},
    {"all named alike",
     "lora",
     {{"lora_linear_new(module_get(model, names[i])",
       "lora_linear_new(module_get(model, names[0])"}}},
    /* adapter */
    {"base weights saved too",
     "adapter",
     {{SAVE, "    return adapters_of(model) ? tensors_save(module_named_parameters(model), path) : "
             "-1;\n"}}},
    {"model without adapters saved",
     "adapter",
     {{SAVE, "    struct named_tensors *adapters = adapters_of(model);\n"
             "    error_clear();\n"
             "    return tensors_save(adapters ? adapters : named_tensors_new(), path);\n"}}},
    {"fixed path",
     "adapter",
     {{"adapters_of(model), path)", "adapters_of(model), \"adapter.pt\")"}}},
    {"only lora_A saved",
     "adapter",
     {{SAVE, "    struct named_tensors *adapters = adapters_of(model);\n"
             "    if (adapters)\n"
             "        adapters->n--;\n"
             "    return tensors_save(adapters, path);\n"}}},
    {"extra keys ignored", "adapter", {{NUMBER_RULE, ""}}},
    {"missing keys ignored",
     "adapter",
     {{NUMBER_RULE, "    if (saved->n > own->n)\n"
                    "        return raise_error(ValueError, \"too many\");\n"},
      {ENTRY_RULE, "        if (value && !tensor_same_shape(value, p->tensor))\n"},
      {COPY, "        if (named_tensors_find(saved, p->name))\n    " COPY}}},
    {"copies before the bad entry",
     "adapter",
     {{"holds no %s of its shape\", path, p->name);\n",
       "holds no %s of its shape\", path, p->name);\n"
       "        NO_GRAD;\n"
       "        tensor_copy_(p->tensor, value);\n"}}},
    {"only the element count compared",
     "adapter",
     {{"!tensor_same_shape(value, p->tensor)", "tensor_numel(value) != tensor_numel(p->tensor)"},
      {COPY, "        tensor_copy_(p->tensor, tensor_view(named_tensors_find(saved, p->name),\n"
             "                                            tensor_ndim(p->tensor), "
             "tensor_shape(p->tensor)));\n"}}},
    {"parameter objects replaced",
     "adapter",
     {{"    struct named_tensors *own = adapters_of(model), *saved = tensors_load(path);\n",
       "    struct named_modules *modules = module_named_modules(model);\n"
       "    for (int i = 1; i < modules->n; i++)\n"
       "        if (module_class_of(modules->at[i].module) == &LoRALinear)\n"
       "            module_replace(model, modules->at[i].name, "
       "module_copy(modules->at[i].module));\n"
       "    struct named_tensors *own = adapters_of(model), *saved = tensors_load(path);\n"}}},
    {"failure to read is no failure",
     "adapter",
     {{"    if (!own || !saved)\n        return -1;\n", "    if (!own || !saved) {\n"
                                                        "        error_clear();\n"
                                                        "        return 0;\n"
                                                        "    }\n"}}},
    {"values doubled", "adapter", {{COPY, COPY "    tensor_mul_(own->at[0].tensor, 2);\n"}}},
    /* other right solutions */
    {"extra keys, explicit none",
     "",
     {{PACK, "\"{s:i, s:i, s:I, s:{s:i, s:{s:s}}, s:b, s:{s:b}, s:i, s:f}\""},
      {"\"stage\", 2,", "\"stage\", 2, \"offload_param\", \"device\", \"none\","},
      {FP16, "\"fp16\", \"enabled\", fp16, \"steps_per_print\", 1000, \"gradient_clipping\", "
             "0.0);\n"}}},
    {"wrap first, then flags by name",
     "",
     {{FREEZE, ""},
      {SAME, "    struct named_tensors *all = module_named_parameters(model);\n"
             "    for (int i = 0; i < all->n; i++)\n"
             "        tensor_set_requires_grad(all->at[i].tensor,\n"
             "                                 string_ends_with(all->at[i].name, \"lora_A\") ||\n"
             "                                     string_ends_with(all->at[i].name, "
             "\"lora_B\"));\n" SAME}}},
    {"temporary name, renamed",
     "",
     {{SAVE, "    const char *aside = scope_printf(\"%s.new\", path);\n"
             "    if (tensors_save(adapters_of(model), aside) < 0)\n"
             "        return -1;\n"
             "    return rename(aside, path) == 0 ? 0 : raise_error(OSError, \"rename\");\n"},
      {"#include \"assignment", "#include <stdio.h>\n#include \"assignment"}}},
    {"loss read before the step",
     "",
     {{STEP, "    float value = (float)tensor_item(loss);\n" STEP},
      {"    return tensor_item(loss);", "    return value;"}}},
};
