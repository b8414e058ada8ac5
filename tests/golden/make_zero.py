"""Write zero.json: what DeepSpeed's ZeRO computes for the model of lora.json, on the CPU over gloo.

Made with DeepSpeed 0.9.5 and PyTorch 1.13. This DeepSpeed knows a CPU only through Intel's packages;
empty modules in their place and events and streams that do nothing are enough for it.

    pip install --no-deps deepspeed==0.9.5 hjson py-cpuinfo 'pydantic<2' packaging tqdm
    python3 tests/golden/make_zero.py > tests/golden/zero.json
"""
import json
import logging
import os
import sys
import types

STEPS = 6
FOLDER = os.path.dirname(os.path.abspath(__file__))

# Stage 2 only, since all stages compute the same: stage 0 is not for the CPU in this DeepSpeed, and
# its stage 1, accumulating on several ranks, departs from its own stage 2 and from one process.
CASES = [
    dict(name="%d ranks" % world, stage=2, world=world, fp16=None, lr=0.1) for world in (1, 2, 4)
] + [
    # 2^20 overflows twice (once forgiven), then 2^19 and less
    dict(name="fp16, dynamic scale", stage=2, world=2, lr=0.1,
         fp16={"enabled": True, "initial_scale_power": 20, "hysteresis": 2}),
    dict(name="fp16, fixed scale", stage=2, world=2, lr=0.1,
         fp16={"enabled": True, "loss_scale": 128}),
]

SCALERS = [
    dict(config=dict(), overflows="....x.xx....x"),
    dict(config=dict(initial_scale_power=4, loss_scale_window=2, hysteresis=1), overflows="......x..x...."),
    dict(config=dict(initial_scale_power=4, loss_scale_window=3, hysteresis=3),
         overflows="x..xx.....xx.x......"),
    dict(config=dict(initial_scale_power=4, loss_scale_window=100, hysteresis=2, consecutive_hysteresis=True),
         overflows="x.x.xx.xx.x"),
    dict(config=dict(initial_scale_power=3, hysteresis=1, min_loss_scale=2), overflows="xx..."),
]


def import_deepspeed():
    for name in ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"):
        sys.modules[name] = types.ModuleType(name)
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed
    import deepspeed.comm.comm as comm
    from deepspeed.accelerator import get_accelerator

    class Nothing:
        def __init__(self, *args, **kwargs):
            pass

        def __getattr__(self, name):
            return lambda *args, **kwargs: 0

        def __enter__(self):
            return self

        def __exit__(self, *args):
            return False

    kind = type(get_accelerator())
    for name in ("Event", "Stream"):
        setattr(kind, name, property(lambda self: Nothing))
    for name in ("stream", "current_stream", "default_stream"):
        setattr(kind, name, lambda self, *args: Nothing())
    get_accelerator()._communication_backend_name = "gloo"
    comm.init_deepspeed_backend = lambda *args, **kwargs: None
    logging.disable(logging.CRITICAL)
    return deepspeed


def build_model(torch, golden):
    class LoRALinear(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.lora_A = torch.nn.Parameter(torch.zeros(2, base.in_features))
            self.lora_B = torch.nn.Parameter(torch.zeros(base.out_features, 2))

        def forward(self, x):  # computes in FP32, whatever the parameters are stored as
            A, B = self.lora_A.float(), self.lora_B.float()
            base = torch.nn.functional.linear(x, self.base.weight.float(), self.base.bias.float())
            return base + (x @ A.T @ B.T) * 2

    model = torch.nn.Sequential(LoRALinear(torch.nn.Linear(4, 8)), torch.nn.Tanh(),
                                LoRALinear(torch.nn.Linear(8, 2)))
    model.load_state_dict({k: torch.tensor(v) for k, v in golden["initial_parameters"].items()})
    return model


def run_case(torch, deepspeed, golden, rank, case):
    world = case["world"]
    model = build_model(torch, golden)
    accumulation = 4 // world if world < 4 else 2
    rows = 8 // (world * accumulation)
    config = {"train_micro_batch_size_per_gpu": rows, "gradient_accumulation_steps": accumulation,
              "train_batch_size": 8, "zero_optimization": {"stage": case["stage"], "reduce_bucket_size": 1000},
              "zero_allow_untested_optimizer": True}
    if case["fp16"]:
        config["fp16"] = case["fp16"]
    trained = [p for p in model.parameters() if p.requires_grad]
    engine = deepspeed.initialize(model=model, optimizer=torch.optim.SGD(trained, lr=case["lr"]),
                                  config=config, dist_init_required=False)[0]
    result = {"name": case["name"], "world_size": world, "lr": case["lr"], "config": config,
              "scales": [], "skipped": [], "parameters": []}
    for step in range(STEPS):
        batch = golden["batches"][step % 3]
        x, y = torch.tensor(batch["x"]), torch.tensor(batch["y"])
        for micro in range(accumulation):
            at = (rank * accumulation + micro) * rows
            loss = torch.nn.functional.mse_loss(engine(x[at:at + rows]), y[at:at + rows])
            engine.backward(loss)
            engine.step()
        result["scales"].append(float(getattr(engine.optimizer, "loss_scale", 1)))
        result["skipped"].append(engine.skipped_steps)
        result["parameters"].append({k: p.float().tolist() for k, p in model.named_parameters()
                                     if p.requires_grad})
    return result


def run_rank(rank, world, port, queue):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    os.dup2(2, 1)
    import torch
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    deepspeed = import_deepspeed()
    golden = json.load(open(os.path.join(FOLDER, "lora.json")))
    results = [run_case(torch, deepspeed, golden, rank, case) for case in CASES
               if case["world"] == world]
    if rank == 0:
        queue.put(results)
        queue.close()
        queue.join_thread()
    torch.distributed.barrier()
    os._exit(0)


def run_world(context, world, port):
    queue = context.Queue()
    ranks = [context.Process(target=run_rank, args=(r, world, port, queue)) for r in range(world)]
    for rank in ranks:
        rank.start()
    results = queue.get(timeout=300)
    for rank in ranks:
        rank.join()
    return results


def run_scaler(deepspeed, case):
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
    import deepspeed.runtime.fp16.loss_scaler as module
    module.dist = types.SimpleNamespace(get_rank=lambda: 1)
    config = case["config"]
    scaler = DynamicLossScaler(init_scale=2 ** config.get("initial_scale_power", 16),
                               scale_window=config.get("loss_scale_window", 1000),
                               min_scale=config.get("min_loss_scale", 1),
                               delayed_shift=config.get("hysteresis", 2),
                               consecutive_hysteresis=config.get("consecutive_hysteresis", False),
                               raise_error_at_min_scale=False)
    scales = []
    for overflow in case["overflows"]:
        scaler.update_scale(overflow == "x")
        scales.append(float(scaler.cur_scale))
    return dict(case, scales=scales)


def main():
    import multiprocessing
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    context = multiprocessing.get_context("spawn")
    results = [r for world in (1, 2, 4) for r in run_world(context, world, 29600 + world)]
    cases = sorted(results, key=lambda result: [case["name"] for case in CASES].index(result["name"]))
    deepspeed = import_deepspeed()
    scalers = [run_scaler(deepspeed, case) for case in SCALERS]
    json.dump({"deepspeed": deepspeed.__version__, "cases": cases, "scalers": scalers}, output)
    output.write("\n")


if __name__ == "__main__":
    main()
