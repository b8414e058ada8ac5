/* defects_data_parallel.h - variants of the reference's data_parallel.c. */
#define SHARE "size / world_size + (rank < size % world_size)"
#define SHUFFLE "    rng_shuffle(&rng, order, size);\n"
#define DIVIDE "        tensor_div_(grad, dist_world_size());\n"
#define REDUCE                                                                                     \
    "        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)\n"                                   \
    "            return -1;\n"
#define GRAD "        struct tensor *grad = tensor_grad(parameters->at[i].tensor);\n"
#define CLEAR "    optimizer_zero_grad(optimizer);\n"
#define TRAIN                                                                                      \
    "    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 || "                        \
    "optimizer_step(optimizer) < 0)\n"
#define BEFORE_AVERAGE "    struct named_tensors *parameters = module_named_parameters(model);\n"
#define LOOP "    for (int i = 0; i < parameters->n; i++) {\n"
#define AVERAGE_BODY BEFORE_AVERAGE LOOP GRAD REDUCE DIVIDE "    }\n"
#define DEAL                                                                                       \
    "        int64_t share = " SHARE ";\n"                                                         \
    "        partitions->at[rank] = (struct partition){share, order};\n"                           \
    "        order += share;\n"

static const struct variant data_parallel_variants[] = {
    /* partitions */
    {"remainder dropped", "partitions", {{SHARE, "(int64_t)(size * (1.0 / world_size))"}}},
    {"sizes by round", "partitions", {{SHARE, "(int64_t)round((double)size / world_size)"}}},
    {"overlapping slices", "partitions", {{"order += share;", "order += share - (share > 1);"}}},
    {"a shrinking fraction",
     "partitions",
     {{SHARE, "(size - (order - first)) / world_size"},
      {SHUFFLE, SHUFFLE "    int64_t *first = order;\n"}}},
    {"last rank takes the remainder",
     "partitions",
     {{SHARE, "size / world_size + (rank == world_size - 1 ? size % world_size : 0)"}}},
    {"wrong ranks get the extras",
     "partitions",
     {{SHARE, "size / world_size + (rank >= world_size - size % world_size)"}}},
    {"one list too many",
     "partitions",
     {{"partitions_new(world_size)", "partitions_new(world_size + 1)"}}},
    {"shuffled order ignored",
     "partitions",
     {{SHUFFLE, "    rng_shuffle(&rng, indices_range(size), size);\n"}}},
    {"no shuffle", "partitions", {{SHUFFLE, ""}}},
    {"no shuffle, dealt out",
     "partitions",
     {{SHUFFLE, "    int64_t k = 0, *all = indices_range(size);\n"
                "    for (int r = 0; r < world_size; r++)\n"
                "        for (int64_t i = r; i < size; i += world_size)\n"
                "            order[k++] = all[i];\n"}}},
    {"rotation by the seed",
     "partitions",
     {{SHUFFLE, "    for (int64_t i = 0; i < size; i++)\n"
                "        order[i] = (int64_t)(((uint64_t)i + seed) % (uint64_t)size);\n"}}},
    {"backwards from the seed",
     "partitions",
     {{SHUFFLE, "    for (int64_t i = 0; i < size; i++)\n"
                "        order[size - 1 - i] = (int64_t)(((uint64_t)i + seed) % "
                "(uint64_t)size);\n"}}},
    {"seed ignored", "partitions", {{"rng_seed(&rng, seed);", "rng_seed(&rng, 1234);"}}},
    {"srand and rand",
     "partitions",
     {{SHUFFLE, "    srand((unsigned)seed);\n"
                "    for (int64_t i = size - 1; i > 0; i--) {\n"
                "        int64_t k = rand() % (i + 1), swap = order[i];\n"
                "        order[i] = order[k];\n"
                "        order[k] = swap;\n"
                "    }\n"},
      {"#include \"assignment", "#include <stdlib.h>\n#include \"assignment"}}},
    {"lrand48",
     "partitions",
     {{SHUFFLE, "    srand48((long)seed);\n"
                "    for (int64_t i = size - 1; i > 0; i--) {\n"
                "        int64_t k = lrand48() % (i + 1), swap = order[i];\n"
                "        order[i] = order[k];\n"
                "        order[k] = swap;\n"
                "    }\n"},
      {"#include \"assignment",
       "#define _GNU_SOURCE\n#include <stdlib.h>\n#include \"assignment"}}},
    {"default generator reseeded",
     "partitions",
     {{SHUFFLE, "    rng_seed(rng_default(), seed);\n"
                "    rng_shuffle(rng_default(), order, size);\n"}}},
    {"default generator drawn from",
     "partitions",
     {{"rng_seed(&rng, seed);", "rng_seed(&rng, seed + 0 * rng_bits(rng_default(), 8));"}}},
    {"time in the seed",
     "partitions",
     {{"rng_seed(&rng, seed);", "rng_seed(&rng, seed + (uint64_t)time(NULL));"},
      {"#include \"assignment", "#include <time.h>\n#include \"assignment"}}},
    {"rank in the seed",
     "partitions",
     {{"rng_seed(&rng, seed);", "rng_seed(&rng, seed + (uint64_t)dist_rank());"}}},
    {"size 0 refused", "partitions", {{"if (size < 0", "if (size < 1"}}},
    {"size below world refused", "partitions", {{"if (size < 0", "if (size < world_size"}}},
    {"negative size accepted", "partitions", {{"if (size < 0 || ", "if ("}}},
    {"world 0 accepted", "partitions", {{"world_size < 1)", "world_size < 0)"}}},
    {"negative world accepted", "partitions", {{"world_size < 1)", "world_size == 0)"}}},
    {"a static buffer",
     "partitions",
     {{"    int64_t *order = indices_range(size);\n", "    static int64_t buffer[100000];\n"
                                                      "    int64_t *order = buffer;\n"
                                                      "    for (int64_t i = 0; i < size; i++)\n"
                                                      "        order[i] = i;\n"}}},
    {"32-bit overflow in rank * size",
     "partitions",
     {{"(struct partition){share, order};",
       "(struct partition){share, size % world_size ? order : first + (int32_t)((uint32_t)rank * "
       "(uint32_t)size) / world_size};"},
      {SHUFFLE, SHUFFLE "    int64_t *first = order;\n"}}},
    {"NULL without an error",
     "partitions",
     {{"return raise_null(ValueError, \"size %jd, world_size %d\", (intmax_t)size, world_size);",
       "return NULL;"}}},
    /* gradients */
    {"sum without the division", "gradients", {{DIVIDE, ""}}},
    {"divided twice", "gradients", {{DIVIDE, DIVIDE DIVIDE}}},
    {"divided by 2", "gradients", {{DIVIDE, "        tensor_div_(grad, 2);\n"}}},
    {"integer division",
     "gradients",
     {{DIVIDE, "        tensor_mul_(grad, 1 / dist_world_size());\n"}}},
    {"return value as the gradient",
     "gradients",
     {{REDUCE DIVIDE, "        if (grad)\n"
                      "            tensor_fill_(grad, dist_all_reduce(grad, DIST_SUM));\n"}}},
    {"no guard", "gradients", {{"if (grad && dist_all", "if (dist_all"}}},
    {"no guard, a crash",
     "gradients",
     {{DIVIDE, "        tensor_div_(grad, tensor_numel(grad) ? dist_world_size() : 1);\n"}}},
    {"skips by requires_grad",
     "gradients",
     {{GRAD, "        if (!tensor_requires_grad(parameters->at[i].tensor))\n"
             "            continue;\n" GRAD}}},
    {"order depends on the rank",
     "gradients",
     {{GRAD, "        int at = dist_rank() % 2 ? parameters->n - 1 - i : i;\n"
             "        struct tensor *grad = tensor_grad(parameters->at[at].tensor);\n"}}},
    {"rank 1 makes no call",
     "gradients",
     {{AVERAGE_BODY, "    if (dist_rank() == 1)\n"
                     "        return 0;\n" AVERAGE_BODY}}},
    {"one call less on rank 1",
     "gradients",
     {{LOOP GRAD, "    for (int i = 0; i < parameters->n - (dist_rank() == 1); i++) {\n" GRAD}}},
    {"reduces a copy",
     "gradients",
     {{"= tensor_grad(parameters->at[i].tensor);",
       "= tensor_clone(tensor_grad(parameters->at[i].tensor));"}}},
    {"only the first", "gradients", {{LOOP GRAD, "    for (int i = 0; i < 2; i++) {\n" GRAD}}},
    {"only the last",
     "gradients",
     {{LOOP GRAD, "    for (int i = parameters->n - 1; i < parameters->n; i++) {\n" GRAD}}},
    {"biases skipped",
     "gradients",
     {{GRAD, "        if (tensor_ndim(parameters->at[i].tensor) < 2)\n"
             "            continue;\n" GRAD}}},
    {"reduces parameters",
     "gradients",
     {{"= tensor_grad(parameters->at[i].tensor);", "= parameters->at[i].tensor;"},
      {BEFORE_AVERAGE, "    NO_GRAD;\n" BEFORE_AVERAGE}}},
    {"asks for AVG", "gradients", {{"DIST_SUM", "DIST_AVG"}, {DIVIDE, ""}}},
    {"ignores a failed all-reduce",
     "gradients",
     {{REDUCE, "        if (grad)\n"
               "            dist_all_reduce(grad, DIST_SUM);\n"}}},
    {"forgets a failed all-reduce",
     "gradients",
     {{REDUCE, "        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)\n"
               "            error_clear();\n"}}},
    {"handle never awaited",
     "gradients",
     {{REDUCE, "        if (grad && !dist_all_reduce_async(grad, DIST_SUM))\n"
               "            return -1;\n"}}},
    /* updates */
    {"never cleared", "updates", {{CLEAR, ""}}},
    {"cleared after backward",
     "updates",
     {{TRAIN, "    tensor_backward(loss);\n" CLEAR "    if (average_gradients(model) < 0 || "
              "optimizer_step(optimizer) < 0)\n"}}},
    {"step before averaging",
     "updates",
     {{"average_gradients(model) < 0 || optimizer_step(optimizer) < 0",
       "optimizer_step(optimizer) < 0 || average_gradients(model) < 0"}}},
    {"averaging omitted", "updates", {{"average_gradients(model) < 0 || ", ""}}},
    {"two steps",
     "updates",
     {{TRAIN, TRAIN "        return NAN;\n    if (optimizer_step(optimizer) < 0)\n"}}},
    {"step on rank 0 only",
     "updates",
     {{"|| optimizer_step(optimizer) < 0",
       "|| (dist_rank() == 0 && optimizer_step(optimizer) < 0)"}}},
    {"averages the loss instead",
     "updates",
     {{"average_gradients(model) < 0 || ", ""},
      {"    return tensor_item(loss);", "    NO_GRAD;\n"
                                        "    loss = tensor_clone(loss);\n"
                                        "    dist_all_reduce(loss, DIST_SUM);\n"
                                        "    return tensor_item(loss) / dist_world_size();"}}},
    {"returns the mean loss",
     "updates",
     {{"    return tensor_item(loss);", "    NO_GRAD;\n"
                                        "    loss = tensor_clone(loss);\n"
                                        "    dist_all_reduce(loss, DIST_SUM);\n"
                                        "    return tensor_item(loss) / dist_world_size();"}}},
    {"loss scaled by the world size",
     "updates",
     {{"tensor_backward(loss)", "tensor_backward(tensor_scale(loss, dist_world_size()))"}}},
    {"constant returned", "updates", {{"return tensor_item(loss);", "return 0.5F;"}}},
    {"parameters averaged instead",
     "updates",
     {{"average_gradients(model) < 0 || ", ""},
      {"    return tensor_item(loss);",
       "    NO_GRAD;\n"
       "    struct named_tensors *parameters = module_named_parameters(model);\n"
       "    for (int i = 0; i < parameters->n; i++) {\n"
       "        dist_all_reduce(parameters->at[i].tensor, DIST_SUM);\n"
       "        tensor_div_(parameters->at[i].tensor, dist_world_size());\n"
       "    }\n"
       "    return tensor_item(loss);"}}},
    {"loss accumulates",
     "updates",
     {{"return tensor_item(loss);",
       "static float total;\n    return total += tensor_item(loss);"}}},
    {"loss arguments swapped",
     "updates",
     {{"loss_fn(module_forward(model, inputs), targets)",
       "loss_fn(targets, module_forward(model, inputs))"}}},
    /* other right solutions */
    {"dealt as r::world",
     "",
     {{DEAL, "        int64_t share = " SHARE ";\n"
             "        int64_t *mine = scope_alloc((size_t)share * sizeof *mine);\n"
             "        for (int64_t i = 0; i < share; i++)\n"
             "            mine[i] = order[rank + i * world_size];\n"
             "        partitions->at[rank] = (struct partition){share, mine};\n"}}},
    {"leftovers to the first ranks",
     "",
     {{DEAL, "        int64_t even = size / world_size, left = even * world_size + rank;\n"
             "        int64_t *mine = scope_alloc((size_t)(even + 1) * sizeof *mine);\n"
             "        for (int64_t i = 0; i < even; i++)\n"
             "            mine[i] = order[rank * even + i];\n"
             "        if (left < size)\n"
             "            mine[even] = order[left];\n"
             "        partitions->at[rank] = (struct partition){even + (left < size), mine};\n"}}},
    {"own generator",
     "",
     {{SHUFFLE,
       "    uint64_t state = seed * 6364136223846793005u + 1442695040888963407u;\n"
       "    for (int64_t i = size - 1; i > 0; i--) {\n"
       "        state = state * 6364136223846793005u + 1442695040888963407u;\n"
       "        int64_t k = (int64_t)((state >> 33) % (uint64_t)(i + 1)), swap = order[i];\n"
       "        order[i] = order[k];\n"
       "        order[k] = swap;\n"
       "    }\n"}}},
    {"division before the sum",
     "",
     {{DIVIDE, ""}, {GRAD, GRAD "        tensor_div_(grad, dist_world_size());\n"}}},
    {"reversed order",
     "",
     {{LOOP GRAD, "    for (int i = parameters->n - 1; i >= 0; i--) {\n" GRAD}}},
    {"early return at world size 1",
     "",
     {{AVERAGE_BODY, "    if (dist_world_size() == 1)\n"
                     "        return 0;\n" AVERAGE_BODY}}},
    {"asynchronous, all awaited",
     "",
     {{REDUCE, "        if (grad && work_wait(dist_all_reduce_async(grad, DIST_SUM)) < 0)\n"
               "            return -1;\n"}}},
    {"one flat bucket",
     "",
     {{AVERAGE_BODY, BEFORE_AVERAGE
       "    struct tensors *flat = tensors_new(0);\n"
       "    flat->at = scope_alloc((size_t)parameters->n * sizeof *flat->at);\n" LOOP GRAD
       "        if (grad)\n"
       "            flat->at[flat->n++] = tensor_view(grad, SHAPE(-1));\n"
       "    }\n"
       "    struct tensor *bucket = tensor_cat(flat);\n"
       "    if (dist_all_reduce(bucket, DIST_SUM) < 0)\n"
       "        return -1;\n"
       "    tensor_div_(bucket, dist_world_size());\n"
       "    int64_t at = 0;\n"
       "    for (int i = 0; i < flat->n; i++) {\n"
       "        int64_t n = tensor_numel(flat->at[i]);\n"
       "        tensor_copy_(flat->at[i], tensor_slice(bucket, 0, at, n));\n"
       "        at += n;\n"
       "    }\n"}}},
    {"cleared once more after the step",
     "",
     {{"    return tensor_item(loss);",
       "    module_zero_grad(model);\n    return tensor_item(loss);"}}},
    {"loss read before backward",
     "",
     {{TRAIN, "    float value = (float)tensor_item(loss);\n" TRAIN},
      {"    return tensor_item(loss);", "    return value;"}}},
    {"averaging written out in train_step",
     "",
     {{TRAIN, "    if (tensor_backward(loss) < 0)\n"
              "        return NAN;\n" BEFORE_AVERAGE LOOP GRAD
              "        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)\n"
              "            return NAN;\n" DIVIDE "    }\n"
              "    if (optimizer_step(optimizer) < 0)\n"}}},
};
