#!/usr/bin/env python3
"""Grade the bank of submissions (entries.py says what that is), and check every verdict.

Each is graded on the CPU or, if it cannot be judged there, on simulated GPUs. A submission is caught
if the statuses of all criteria are as its entry declares them. It is caught elsewhere if not its
own criterion but another failed it, and has escaped if none did; it is wrongly failed where a
criterion failed that had no reason to. After each run nothing may be left over, and the report and
the files beside it must be whole.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import traces
from entries import CRITERIA, ROOT, SECTIONS, all_entries

PATIENCE_S = 240  # for one run of the grader
HANG_S = {"cpu": 5, "sim": 20, "cuda": 20}  # --timeout for entries that hang, and for hostile ones
BAD = ("failed", "timeout")


# ---- one run of the grader ----


def prepare(entry, folder):
    for name in ("submission", "results", "tmp"):
        (folder / name).mkdir()
    entry.write(folder / "submission")
    # Some hostile entries spoil what is beside the report.
    (folder / "results" / "bank-canary").write_text("sing\n")


def is_graded_whole(entry):
    """Other entries change one file, which the criteria of other sections never see."""
    return entry.kind == "hostile"


def grade(entry, device, folder, options):
    """returns: exit status, the report (None: none that can be read), what it printed"""
    command = [options.grader, "--device", device, "--color", "never"]
    command += ["--submission", folder / "submission", "--output", folder / "results" / "grade.json"]
    if not is_graded_whole(entry):
        command += ["--section", entry.section()]
    if options.seed is not None:
        command += ["--seed", str(options.seed)]
    if entry.kind == "hostile" or entry.ids("hangs"):
        command += ["--timeout", str(HANG_S[device])]
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=PATIENCE_S, env=environment, cwd=folder, start_new_session=True, errors="replace",
        )
        status, printed = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, printed = None, f"the grader ran longer than {PATIENCE_S} s"
    try:
        report = json.loads((folder / "results" / "grade.json").read_text())
    except (OSError, ValueError):
        report = None
    return status, report, printed


# ---- what was wrong with it ----


def report_faults(status, report, printed, criteria_selected):
    if status not in (0, 1, 2) or report is None:
        return [f"the grader ended with status {status}: {printed.strip()[-600:]}"]
    criteria = report["criteria"]
    earned = sum(c["possible"] for c in criteria if c["status"] == "passed")
    whole = (
        report["state"] == "complete"
        and sorted(c["id"] for c in criteria) == sorted(criteria_selected)
        and report["earned"] == earned
    )
    return [] if whole else ["the report is not what the grader wrote"]


def folder_faults(entry, folder):
    faults = []
    beside = {path.name for path in (folder / "results").iterdir()}
    if beside != {"grade.json", "grade-logs", "bank-canary"}:
        faults.append(f"beside the report: {sorted(beside)}")
    elif (folder / "results" / "bank-canary").read_text() != "sing\n":
        faults.append("the file beside the report was changed")
    if left := [path.name for path in (folder / "tmp").iterdir()]:
        faults.append(f"left in the temporary folder: {left}")
    for path in (folder / "submission").iterdir():
        if path.read_text() != entry.text(path.name):
            faults.append(f"the submission's {path.name} was changed")
    return faults


class Verdict:
    """What came of one entry, compared with what it declares."""

    def __init__(self, entry, device, report, faults, seconds):
        self.entry, self.faults, self.seconds = entry, faults, seconds
        criteria = report["criteria"] if report and not faults else []
        statuses = {c["id"]: c["status"] for c in criteria}
        self.reasons = {c["id"]: c["reason"] or "" for c in criteria if c["status"] in BAD}
        ran = {id for id, status in statuses.items() if status != "blocked"}
        expected = {id: right for id, right in entry.expected(device).items() if id in ran}
        passes = entry.kind == "accepted" and statuses.get(entry.intended()) != "blocked"
        self.judged = passes or bool(expected)
        self.missed = [id for id in expected if statuses[id] == "passed"]
        self.harmed = [id for id in self.reasons if id not in expected]
        self.other = [
            f"{id} is {statuses[id]}, not {' or '.join(right)}"
            for id, right in expected.items()
            if statuses[id] not in (*right, "passed")
        ]
        first = self.reasons.get(entry.intended(), "")
        if "says" in entry.keys and first and entry.keys["says"] not in first:
            self.other.append(f"{entry.intended()} does not say: {entry.keys['says']}")
        cause = next((c.get("cause") or "" for c in criteria if c["id"] == entry.intended()), "")
        self.cause_named = "cause" in entry.keys and entry.keys["cause"] in cause
        if cause.startswith("likely cause") and "cause" in entry.keys and not self.cause_named:
            self.other.append(f"a wrong cause, not \"{entry.keys['cause']}\": {cause}")

    def escaped(self):
        return bool(self.missed) and not self.reasons

    def caught_elsewhere(self):
        return bool(self.missed) and bool(self.reasons)

    def good(self):
        return not (self.missed or self.harmed or self.other or self.faults)

    def complaints(self):
        for id in self.missed:
            yield f"{id} passed"
        for id in self.harmed:
            yield f"{id} wrongly failed: {self.reasons[id]}"
        yield from self.other + self.faults


def judge_on(device, entry, options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bank-")).resolve()
    begin = time.monotonic()
    try:
        prepare(entry, folder)
        status, report, printed = grade(entry, device, folder, options)
        seconds = time.monotonic() - begin
        left = [f"left behind: {what}" for what in traces.remove_all(entry)]
        selected = CRITERIA if is_graded_whole(entry) else SECTIONS[entry.section()]
        faults = report_faults(status, report, printed, selected)
        faults += folder_faults(entry, folder) + left
        return Verdict(entry, device, report, faults, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge_entry(entry, options):
    verdict = judge_on(options.device or "cpu", entry, options)
    if verdict.judged or options.device or not verdict.good():
        return verdict
    return judge_on("sim", entry, options)


# ---- all of them ----


def chosen(patterns):
    entries = all_entries()
    if not patterns:
        return entries
    names = {e: (e.name, f"{e.kind}/{e.name}") for e in entries}
    return [e for e in entries if any(fnmatch.filter(names[e], p) for p in patterns)]


def show(verdict, options):
    entry = verdict.entry
    if verdict.good() and not options.verbose:
        return
    print(f"{'ok  ' if verdict.good() else 'BAD '}{entry.kind}/{entry.name} ({verdict.seconds:.1f} s)")
    for complaint in verdict.complaints():
        print(f"      {complaint}")
    for id, reason in verdict.reasons.items() if options.verbose else ():
        print(f"    {id}: {reason}")
    sys.stdout.flush()


COLUMNS = (
    ("entries", lambda v: True),
    ("caught", lambda v: v.judged and v.entry.kind != "accepted" and not v.missed),
    ("elsewhere", lambda v: v.caught_elsewhere()),
    ("escaped", lambda v: v.escaped()),
    ("harmed", lambda v: bool(v.harmed)),
    ("faults", lambda v: bool(v.other or v.faults)),
    ("not judged here", lambda v: not v.judged),
    ("with a cause", lambda v: "cause" in v.entry.keys),
    ("cause named", lambda v: v.cause_named),
)


def group_of(entry):
    return entry.intended() if entry.kind == "defective" else entry.kind


def print_table(verdicts):
    groups = [*CRITERIA, "accepted", "hostile"]
    rows = [(g, [v for v in verdicts if group_of(v.entry) == g]) for g in groups]
    rows = [(g, members) for g, members in rows if members] + [("all", verdicts)]
    print("\n| | " + " | ".join(name for name, _ in COLUMNS) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    for group, members in rows:
        counts = (sum(map(counted, members)) for _, counted in COLUMNS)
        print(f"| {group} | " + " | ".join(str(n) for n in counts) + " |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="NAME", help="entries, or globs of their names")
    parser.add_argument("--device", choices=("cpu", "sim", "cuda"), help="for all runs (default: see above)")
    parser.add_argument("--grader", type=pathlib.Path, default=ROOT / "grade", metavar="PROGRAM")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--seed", type=int, help="for all runs (default: one of its own for each)")
    parser.add_argument("--verbose", "-v", action="store_true", help="every verdict, with reasons")
    parser.add_argument("--list", action="store_true", help="print the names, and grade nothing")
    options = parser.parse_args()
    options.grader = options.grader.resolve()
    help_text = subprocess.run([options.grader, "--help"], capture_output=True, text=True).stdout
    devices = next((line for line in help_text.splitlines() if "--device" in line), "")
    if (options.device or "sim") not in devices:
        raise SystemExit(f"bank: {options.grader} has no --device {options.device or 'sim'}")
    return options


def main():
    options = arguments()
    entries = chosen(options.patterns)
    if options.list:
        print("\n".join(f"{e.kind}/{e.name}" for e in entries))
        return 0
    if not entries:
        raise SystemExit("bank: no entry has such a name")
    verdicts, begin = [], time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=traces.adopt_orphans) as pool:
        for done in concurrent.futures.as_completed(
            [pool.submit(judge_entry, entry, options) for entry in entries]
        ):
            verdicts.append(done.result())
            show(verdicts[-1], options)
    print_table(verdicts)
    print(f"\n{time.monotonic() - begin:.0f} s, {options.jobs} at a time")
    escaped = sum(bool(v.missed) for v in verdicts)
    harmed = sum(bool(v.harmed) for v in verdicts)
    faults = sum(bool(v.other or v.faults) for v in verdicts)
    more = f", {faults} with other faults" if faults else ""
    print(f"bank: {len(verdicts)} submissions, {escaped} escaped, {harmed} wrongly failed{more}")
    return 0 if all(v.good() for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
