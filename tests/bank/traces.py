"""What a submission may leave behind: processes, files, shared memory.

Hostile entries begin the names of all files that they try to leave with "bank-trace-" and their own
name, and give shared memory the key 0xba17ace.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile

from entries import ROOT

PR_SET_CHILD_SUBREAPER = 36
PLACES = {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", "/run", "/", os.path.expanduser("~")}
SHARED_MEMORY_KEY = 0xBA17ACE


def adopt_orphans():
    """From now on, whoever flees from this process's children becomes its child."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except AttributeError:
        pass  # not Linux: who flees is not found


def descendants():
    """Process ids and names of all that this process's children are, or have started."""
    parents, names = {}, {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (process / "stat").read_text(errors="replace")
        except OSError:
            continue  # gone meanwhile
        head, _, tail = stat.rpartition(")")
        state, parent = tail.split()[:2]
        pid = int(process.name)
        names[pid] = head.partition("(")[2] + (" (zombie)" if state == "Z" else "")
        parents.setdefault(int(parent), []).append(pid)
    found, queue = {}, [os.getpid()]
    while queue:
        for pid in parents.get(queue.pop(), []):
            found[pid] = names[pid]
            queue.append(pid)
    return found


def kill_descendants():
    """returns: the names of those that there were"""
    killed = []
    while True:
        left = descendants()
        killed += [name for name in left.values()]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            if not descendants():
                return killed


def remove_files(entry):
    """returns: the paths of those that there were"""
    pattern = f"*bank-trace-{entry.name}*"
    places = [pathlib.Path(place) for place in PLACES | {str(ROOT)}]
    found = [path for place in places for path in place.glob(pattern)]
    for path in found:
        subprocess.run(["rm", "-rf", "--", path], check=False)
    return [str(path) for path in found]


def remove_shared_memory():
    try:
        lines = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except OSError:
        return []
    keys = [line.split()[0] for line in lines if int(line.split()[0]) == SHARED_MEMORY_KEY]
    for key in keys:
        subprocess.run(["ipcrm", "-M", key], check=False)
    return [f"shared memory {key}" for key in keys]


def remove_all(entry):
    """returns: what was left, in words"""
    return (
        [f"a process {name}" for name in kill_descendants()]
        + [f"a file {path}" for path in remove_files(entry)]
        + (remove_shared_memory() if "shmget" in entry.code else [])
    )
