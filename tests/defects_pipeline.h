/* defects_pipeline.h - variants of the reference's pipeline.c. */
#define WAVES "microbatches ? microbatches + stages - 1 : 0"
#define ADD "            wave_add(&schedule->at[i + j], i, j);\n"
#define SPLIT "    struct tensors *batches = tensor_split(inputs, pipe->split_size);\n"
#define RUN "    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));\n"
#define SUBMIT_LOOP "        for (struct pair *p = w->at; p < w->at + w->n; p++)\n"
#define SUBMIT                                                                                     \
    "            workers_submit(pipe->workers, p->stage, turn_run,\n"                              \
    "                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],\n"  \
    "                                         batches->at[p->microbatch]});\n"
#define RECEIVE                                                                                    \
    "            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);\n"
#define BOTH SUBMIT_LOOP SUBMIT SUBMIT_LOOP RECEIVE
#define OUTPUT "    return tensor_cat(batches);\n"
#define TURN(batch) "(struct turn){pipe->stages[p->stage], pipe->devices[p->stage], " batch "}"
#define INCLUDE "#include \"assignment"

static const struct variant pipeline_variants[] = {
    /* schedule */
    {"M+N waves", "schedule", {{WAVES, "microbatches ? microbatches + stages : 0"}}},
    {"M+N-2 waves",
     "schedule",
     {{WAVES, "microbatches > 1 ? microbatches + stages - 2 : 0"},
      {ADD, "            if (i + j < schedule->n)\n    " ADD}}},
    {"descending stages",
     "schedule",
     {{"for (int j = 0; schedule && j < stages; j++)",
       "for (int j = stages - 1; schedule && j >= 0; j--)"}}},
    {"empty waves for no microbatches", "schedule", {{WAVES, "microbatches + stages - 1"}}},
    {"invalid arguments give an empty schedule",
     "schedule",
     {{"return raise_null(ValueError, \"%d microbatches, %d stages\", microbatches, stages);",
       "return schedule_new(0, 1);"}}},
    {"one pair per wave",
     "schedule",
     {{WAVES, "microbatches * stages"}, {"schedule->at[i + j]", "schedule->at[i * stages + j]"}}},
    {"(stage, microbatch) swapped",
     "schedule",
     {{"wave_add(&schedule->at[i + j], i, j)", "wave_add(&schedule->at[i + j], j, i)"}}},
    {"a fixed-size table",
     "schedule",
     {{"schedule_new(" WAVES ", stages)", "schedule_new(" WAVES ", stages)"},
      {ADD, "            if (i + j < 64 && schedule->at[i + j].n < 16)\n    " ADD}}},
    {"a fixed-size table overrun",
     "schedule",
     {{"    struct schedule *schedule = schedule_new(" WAVES ", stages);\n",
       "    static struct pair pairs[64][16];\n"
       "    static struct wave waves[64];\n"
       "    struct schedule *schedule = scope_alloc(sizeof *schedule);\n"
       "    *schedule = (struct schedule){" WAVES ", waves};\n"
       "    for (int k = 0; k < schedule->n; k++)\n"
       "        waves[k] = (struct wave){0, pairs[k]};\n"}}},
    {"negative stages accepted", "schedule", {{"stages < 1)", "stages == 0)"}}},
    {"negative microbatches accepted", "schedule", {{"microbatches < 0 || ", ""}}},
    {"a static result",
     "schedule",
     {{"    return schedule;\n", "    static struct schedule result;\n"
                                 "    if (!schedule)\n"
                                 "        return NULL;\n"
                                 "    result = *schedule;\n"
                                 "    return &result;\n"}}},
    /* forward */
    {"split_size as the number of chunks",
     "forward",
     {{SPLIT, "    struct tensors *batches =\n"
              "        tensor_split(inputs, (tensor_size(inputs, 0) + pipe->split_size - 1) / "
              "pipe->split_size);\n"}}},
    {"as many chunks as stages",
     "forward",
     {{SPLIT, "    struct tensors *batches = tensor_split(\n"
              "        inputs, (tensor_size(inputs, 0) + pipe->stage_count - 1) / "
              "pipe->stage_count);\n"}}},
    {"an empty microbatch",
     "forward",
     {{SPLIT, SPLIT "    if (pipe->split_size > tensor_size(inputs, 0)) {\n"
                    "        struct tensors *more = tensors_new(2);\n"
                    "        more->at[0] = inputs;\n"
                    "        more->at[1] = tensor_slice(inputs, 0, 0, 0);\n"
                    "        batches = more;\n"
                    "    }\n"}}},
    {"tail never scheduled",
     "forward backward",
     {{"clock_cycles(batches->n, pipe->stage_count)",
       "clock_cycles((int)(tensor_size(inputs, 0) / pipe->split_size), pipe->stage_count)"}}},
    {"stages in the calling thread",
     "forward",
     {{BOTH, SUBMIT_LOOP
       "            batches->at[p->microbatch] =\n"
       "                module_forward(pipe->stages[p->stage], batches->at[p->microbatch]);\n"}}},
    {"empty functions submitted",
     "forward",
     {{RUN, "    return turn->microbatch;\n"},
      {BOTH, SUBMIT_LOOP "            workers_submit(pipe->workers, p->stage, turn_run,\n"
                         "                           " TURN(
                             "module_forward(pipe->stages[p->stage], "
                             "batches->at[p->microbatch])") ");\n" SUBMIT_LOOP RECEIVE}}},
    {"everything in the first worker",
     "forward",
     {{SUBMIT, "            workers_submit(pipe->workers, 0, turn_run, " TURN(
                   "batches->at[p->microbatch]") ");\n"},
      {"workers_receive(pipe->workers, p->stage)", "workers_receive(pipe->workers, 0)"}}},
    {"alternates per pair",
     "forward",
     {{BOTH, "        for (struct pair *p = w->at; p < w->at + w->n; p++) {\n" SUBMIT RECEIVE
             "        }\n"}}},
    {"receives in reverse",
     "forward",
     {{SUBMIT_LOOP RECEIVE,
       "        for (struct pair *p = w->at + w->n - 1; p >= w->at; p--)\n" RECEIVE}}},
    {"the whole schedule at once",
     "forward backward",
     {{SUBMIT_LOOP RECEIVE "    }\n",
       "    }\n"
       "    for (struct wave *w = schedule->at; w < schedule->at + schedule->n; w++)\n" SUBMIT_LOOP
           RECEIVE}}},
    {"one environment for all",
     "forward backward",
     {{"    struct turn *turn = environment;\n",
       "    struct turn *turn = *(struct turn **)environment;\n"},
      {BOTH, "        static struct turn shared;\n"
             "        for (struct pair *p = w->at; p < w->at + w->n; p++) {\n"
             "            shared = " TURN(
                 "batches->at[p->microbatch]") ";\n"
                                               "            workers_submit(pipe->workers, "
                                               "p->stage, turn_run, (struct turn *){&shared});\n"
                                               "        }\n" SUBMIT_LOOP RECEIVE}}},
    {"environment in a frame that is gone",
     "forward backward",
     {{"    struct turn *turn = environment;\n" RUN "}\n",
       "    struct turn *turn = *(struct turn **)environment;\n" RUN "}\n"
       "static __attribute__((noinline)) void hand_over(struct pipe *pipe, struct pair *p,\n"
       "                                                struct tensor *batch)\n"
       "{\n"
       "    struct turn turn = " TURN("batch") ";\n"
                                               "    workers_submit(pipe->workers, p->stage, "
                                               "turn_run, (struct turn *){&turn});\n"
                                               "}\n"},
      {SUBMIT, "            hand_over(pipe, p, batches->at[p->microbatch]);\n"}}},
    {"error ignored, the old batch kept",
     "forward",
     {{SUBMIT_LOOP RECEIVE,
       "        for (struct pair *p = w->at; p < w->at + w->n; p++) {\n"
       "            struct tensor *output = workers_receive(pipe->workers, p->stage);\n"
       "            error_clear();\n"
       "            if (output)\n"
       "                batches->at[p->microbatch] = output;\n"
       "        }\n"}}},
    {"error of another type",
     "forward",
     {{OUTPUT, "    if (error_occurred()) {\n"
               "        error_clear();\n"
               "        return raise_null(RuntimeError, \"a stage failed\");\n"
               "    }\n" OUTPUT}}},
    {"error with another message",
     "forward",
     {{OUTPUT, "    if (error_occurred()) {\n"
               "        const struct error_type *type = error_type_of(error_pending());\n"
               "        error_clear();\n"
               "        return raise_null(*type, \"a stage failed\");\n"
               "    }\n" OUTPUT}}},
    {"error printed, and success returned",
     "forward",
     {{OUTPUT, "    if (error_occurred()) {\n"
               "        puts(error_message(error_pending()));\n"
               "        error_clear();\n"
               "        return inputs;\n"
               "    }\n" OUTPUT},
      {INCLUDE, "#include <stdio.h>\n" INCLUDE}}},
    {"reversed concatenation",
     "forward",
     {{OUTPUT, "    struct tensors *reversed = tensors_new(batches->n);\n"
               "    for (int i = 0; i < batches->n; i++)\n"
               "        reversed->at[i] = batches->at[batches->n - 1 - i];\n"
               "    return tensor_cat(reversed);\n"}}},
    {"no-grad ignored", "forward", {{RUN, "    grad_set_enabled(true);\n" RUN}}},
    {"no-grad left switched off",
     "forward",
     {{OUTPUT, "    struct tensor *output = tensor_cat(batches);\n"
               "    grad_set_enabled(false);\n"
               "    return output;\n"}}},
    {"a thread leaked per call",
     "forward",
     {{OUTPUT, "    pthread_t thread;\n"
               "    pthread_create(&thread, NULL, idle, NULL);\n" OUTPUT},
      {"static struct tensor *turn_run", "static void *idle(void *unused)\n"
                                         "{\n"
                                         "    pause();\n"
                                         "    return unused;\n"
                                         "}\n"
                                         "static struct tensor *turn_run"},
      {INCLUDE, "#include <unistd.h>\n" INCLUDE}}},
    /* backward */
    {"detached between the stages",
     "backward",
     {{SUBMIT, "            workers_submit(pipe->workers, p->stage, turn_run,\n"
               "                           " TURN(
                   "p->stage ? tensor_detach(batches->at[p->microbatch])\n"
                   "                                    : batches->at[p->microbatch]") ");\n"}}},
    {"concatenated by raw copy", "backward", {{OUTPUT, "    NO_GRAD;\n" OUTPUT}}},
    {"only the last microbatch connected",
     "backward",
     {{OUTPUT, "    for (int i = 0; i < batches->n - 1; i++)\n"
               "        batches->at[i] = tensor_detach(batches->at[i]);\n" OUTPUT}}},
    {"input gradient missing",
     "backward",
     {{"tensor_split(inputs, ", "tensor_split(tensor_detach(inputs), "}}},
    {"parameters cloned",
     "backward",
     {{RUN, "    return module_forward(module_copy(turn->stage), tensor_to(turn->microbatch, "
            "turn->device));\n"}}},
    /* other right solutions */
    {"own schedule inside forward",
     "",
     {{"batches ? clock_cycles(batches->n, pipe->stage_count) : NULL",
       "batches ? own(batches->n, pipe->stage_count) : NULL"},
      {"static struct tensor *turn_run",
       "static struct schedule *own(int m, int n)\n"
       "{\n"
       "    struct schedule *schedule = schedule_new(m ? m + n - 1 : 0, n);\n"
       "    for (int k = 0; schedule && k < schedule->n; k++)\n"
       "        for (int j = 0; j < n; j++)\n"
       "            if (k - j >= 0 && k - j < m)\n"
       "                wave_add(&schedule->at[k], k - j, j);\n"
       "    return schedule;\n"
       "}\n"
       "static struct tensor *turn_run"}}},
    {"a counter per stage",
     "",
     {{"        for (int i = 0; i < microbatches; i++)\n" ADD,
       "        for (int i = 0, k = j; i < microbatches; i++, k++)\n"
       "            wave_add(&schedule->at[k], i, j);\n"}}},
    {"producer moves its output",
     "",
     {{RUN, "    return tensor_to(module_forward(turn->stage, turn->microbatch), turn->device);\n"},
      {"{pipe->stages[p->stage], pipe->devices[p->stage],",
       "{pipe->stages[p->stage],\n"
       "                                         pipe->devices[p->stage + 1 < pipe->stage_count\n"
       "                                                           ? p->stage + 1\n"
       "                                                           : p->stage],"}}},
    {"manual slicing",
     "",
     {{SPLIT, "    int64_t rows = tensor_size(inputs, 0), split = pipe->split_size;\n"
              "    struct tensors *batches = tensors_new((int)((rows + split - 1) / split));\n"
              "    for (int i = 0; i < batches->n; i++)\n"
              "        batches->at[i] = tensor_slice(\n"
              "            inputs, 0, i * split, rows - i * split < split ? rows - i * split : "
              "split);\n"}}},
    {"pairwise concatenation",
     "",
     {{OUTPUT, "    struct tensor *output = batches->at[0];\n"
               "    for (int i = 1; i < batches->n; i++)\n"
               "        output = tensor_cat(&(struct tensors){2, (struct tensor *[]){output, "
               "batches->at[i]}});\n"
               "    return output;\n"}}},
    {"environments from malloc",
     "",
     {{"    struct turn *turn = environment;\n" RUN,
       "    struct turn *from = *(struct turn **)environment, copy = *from, *turn = &copy;\n"
       "    free(from);\n" RUN},
      {SUBMIT, "        {\n"
               "            struct turn *turn = malloc(sizeof *turn);\n"
               "            *turn = " TURN(
                   "batches->at[p->microbatch]") ";\n"
                                                 "            workers_submit(pipe->workers, "
                                                 "p->stage, turn_run, (struct turn "
                                                 "*){turn});\n"
                                                 "        }\n"},
      {INCLUDE, "#include <stdlib.h>\n" INCLUDE}}},
};
