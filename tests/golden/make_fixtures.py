"""The public fixtures as C arrays, from dp.json and lora.json:

python3 make_fixtures.py > ../../runtime/fixtures_data.h
"""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
HEAD = """#ifndef RUNTIME_FIXTURES_DATA_H
#define RUNTIME_FIXTURES_DATA_H
/* Made by tests/golden/make_fixtures.py; for fixtures.c alone. */
"""


def flat(values):
    return [x for value in values for x in flat(value)] if isinstance(values, list) else [values]


def literal(value):
    text = f"{value:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def rows(values):
    literals = [literal(value) for value in flat(values)]
    return ",\n    ".join(", ".join(literals[i : i + 6]) for i in range(0, len(literals), 6))


def array(name, values):
    return f"\nstatic const float {name}[] = {{\n    {rows(values)}}};"


def table(name, batches):
    body = ",\n".join(f"    {{{rows(batch)}}}" for batch in batches)
    return f"\nstatic const float {name}[][{len(flat(batches[0]))}] = {{\n{body}}};"


dp = json.loads((HERE / "dp.json").read_text())
lora = json.loads((HERE / "lora.json").read_text())
assert dp["batches"] == lora["batches"]
print(HEAD + "\n/* clang-format off */", end="")
for parameter, values in dp["initial_parameters"].items():
    print(array("small_" + parameter.replace(".", "_"), values))
for parameter in ("0.lora_A", "2.lora_A"):
    print(array("small_" + parameter.replace(".", "_").lower(), lora["initial_parameters"][parameter]))
print(table("batch_x", [batch["x"] for batch in dp["batches"]]))
print(table("batch_y", [batch["y"] for batch in dp["batches"]]))
print("\n/* clang-format on */\n#endif")
