"""The entries of tests/submissions/{defective,accepted,hostile}, and the submissions made of them.

An entry is one small C file. It holds only what deviates from the reference: a function takes the
place of the reference's function of that name, everything else is added to the helpers, and #include
and #define lines at its start go to the top of the file. The comment that it begins with says what
it does, and what must come of it:

    fails: ID...   must be `failed`; the first is the criterion that is there to catch it
    hangs: ID...   must be `timeout`
    costs: ID...   must be either, as the machine's speed decides
    sim: ID...     must be `failed` where there are GPUs, real or simulated
    cause: PHRASE  what the diagnosis must say where it calls a cause likely; counted where it says it
    says: PHRASE   what the first criterion's reason must say
    file: NAME.c   the student's file, where no function's name tells it
    whole: NAME.c  the entry is all of that file

Every other criterion must pass.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "submissions"
REFERENCE = FOLDER / "reference" / "assignment"
FILES = ("data_parallel.c", "pipeline.c", "finetune.c")
KINDS = ("defective", "accepted", "hostile")
SECTIONS = {
    "dp": ("partitions", "gradients", "updates", "dp_performance"),
    "pipeline": ("schedule", "forward", "backward", "pipeline_performance"),
    "finetune": ("config", "zero_runtime", "lora", "zero_updates", "adapter"),
}
CRITERIA = tuple(criterion for section in SECTIONS.values() for criterion in section)
KEYS = ("fails", "hangs", "costs", "sim", "cause", "says", "file", "whole")

# In clang-format's layout a definition has its braces in the first column.
FUNCTION = re.compile(r"^(?!/)([A-Za-z_][^;{}=#]*\))\n\{\n.*?^\}\n", re.M | re.S)
HELPERS_END = "/* END_STUDENT helpers */"


def function_name(signature):
    return re.search(r"(\w+)\((?!\()", re.sub(r"__attribute__\(\(.*?\)\)", "", signature)).group(1)


def functions_of(text):
    return {function_name(match[1]): match[0] for match in FUNCTION.finditer(text)}


class Entry:
    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.kind = path.parent.name
        text = path.read_text()
        header, _, self.code = text.partition("*/\n")
        self.keys = dict(re.findall(r"^ \* (\w+): (.*)$", header, re.M))
        unknown = self.keys.keys() - set(KEYS)
        if unknown or not text.startswith("/* "):
            raise SystemExit(f"{path}: no header comment, or unknown keys {sorted(unknown)}")
        self.file = self.file_changed()
        self.ids_named = [i for key in ("fails", "hangs", "costs", "sim") for i in self.ids(key)]
        if wrong := set(self.ids_named) - set(CRITERIA):
            raise SystemExit(f"{path}: no such criteria: {sorted(wrong)}")

    def ids(self, key):
        return self.keys.get(key, "").split()

    def expected(self, device):
        """Where it is not to pass: {criterion: the statuses that are right}"""
        failed = self.ids("fails") + (self.ids("sim") if device != "cpu" else [])
        expected = dict.fromkeys(failed, ("failed",))
        expected |= dict.fromkeys(self.ids("hangs"), ("timeout",))
        expected |= dict.fromkeys(self.ids("costs"), ("failed", "timeout"))
        for section in SECTIONS.values():
            speedups = [criterion for criterion in section if criterion.endswith("_performance")]
            if any(criterion in expected for criterion in section):
                expected |= dict.fromkeys(speedups, ("failed",))
        return expected

    def intended(self):
        """The criterion that is there to judge it."""
        named = self.ids_named or [c for c in CRITERIA if self.name.startswith(f"{c}_")]
        return named[0] if named else None

    def section(self):
        return tuple(SECTIONS)[FILES.index(self.file)]

    def text(self, file):
        reference = (REFERENCE / file).read_text()
        if self.keys.get("whole") == file:
            return self.code
        return overlay(reference, self.code) if file == self.file else reference

    def file_changed(self):
        named = self.keys.get("file") or self.keys.get("whole")
        changed = functions_of(self.code).keys()
        owners = [f for f in FILES if changed & functions_of((REFERENCE / f).read_text()).keys()]
        if not named and len(owners) != 1:
            raise SystemExit(f"{self.path}: changes {owners or 'no file'}: it needs `file:`")
        return named or owners[0]

    def write(self, folder):
        for file in FILES:
            (folder / file).write_text(self.text(file))


def overlay(reference, code):
    """The reference's text with the entry's code in it."""
    lines = code.splitlines(keepends=True)
    top = next((i for i, line in enumerate(lines) if line.strip() and line[0] != "#"), len(lines))
    helpers = "".join(lines[top:])
    before, helpers_end, after = reference.partition(HELPERS_END)
    theirs = functions_of(helpers)
    for name, text in functions_of(before).items():
        before = before.replace(text, "") if name in theirs else before
    for name, text in functions_of(after).items():
        if name in theirs:
            after = after.replace(text, theirs[name])
            helpers = helpers.replace(theirs[name], "")
    return "".join(lines[:top]) + before + helpers + helpers_end + after


def all_entries():
    return [Entry(path) for kind in KINDS for path in sorted((FOLDER / kind).glob("*.c"))]
