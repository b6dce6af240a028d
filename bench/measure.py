"""CPU times, percentiles and memory, as the commands of this folder print them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def cpu_seconds(work: Callable[[], object]) -> float:
    """Do some work in this process and return the CPU seconds that it took."""
    start = time.process_time()
    work()
    return time.process_time() - start


def cpu_milliseconds(work: Callable[[], object]) -> float:
    """Do some work in this process and return the CPU milliseconds that it took."""
    return 1000 * cpu_seconds(work)


def child_cpu_seconds(command: Sequence[str]) -> float:
    """Run a command without its output and return the CPU seconds of it and its children.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    start = cpu_of_ended_children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu_of_ended_children() - start


def cpu_of_ended_children() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of all values lies, such as 0.95."""
    ordered = sorted(values)
    position = int(len(ordered) * share)
    return ordered[min(position, len(ordered) - 1)]


def peak_memory() -> float:
    """Return the MB of memory that this process had at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return peak / unit


def memory_status() -> dict[str, float]:
    """Return the sizes of this process in MB by name, such as VmRSS; {} where there is no /proc."""
    try:
        return process_memory("self")
    except OSError:
        return {}


def process_memory(process: int | str) -> dict[str, float]:
    """Return the sizes in /proc/PID/status in MB by name. Raises OSError if there is no process."""
    sizes = {}
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            sizes[name] = int(value.split()[0]) / 1024
    return sizes


def process_cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process since its start, without its children."""
    # proc(5): the 12th and 13th fields after the name are user and system ticks.
    ticks = sum(map(int, stat_fields(process)[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def stat_fields(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may contain spaces."""
    text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return text.rpartition(")")[2].split()
