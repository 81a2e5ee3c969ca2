"""All benchmarks, one after the other: `python -m lakestream_bench [NAME ...]`.

Each is a module with a `main()` that takes `--out FILE`, prints a table and writes the figures as JSON. Each runs in a
process of its own, so that none measures what another has left in memory.
"""

import argparse
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import lakestream_bench
from lakestream_bench._processes import INTERRUPTED_SECONDS, ended, no_process_left

RESULTS = Path("build/bench")


def benchmarks() -> list[str]:
    """The names of all benchmarks: the modules that can be run."""
    names = [module.name for module in pkgutil.iter_modules(lakestream_bench.__path__)]
    return [name for name in names if not name.startswith("_") and _is_program(name)]


def _is_program(name: str) -> bool:
    found = find_spec(f"lakestream_bench.{name}")
    assert found is not None
    assert found.origin is not None
    return 'if __name__ == "__main__":' in Path(found.origin).read_text("utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks asked for, by default all; the exit status is 1 if any failed."""
    parser = argparse.ArgumentParser(prog="lakestream_bench", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(benchmarks())}")
    names = parser.parse_args(arguments).names or benchmarks()
    if unknown := set(names) - set(benchmarks()):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; choose from: {', '.join(benchmarks())}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    failed = []
    for number, name in enumerate(names, 1):
        print(f"\n=== {name} ({number} of {len(names)})", flush=True)
        command = [sys.executable, "-m", f"lakestream_bench.{name}", "--out", str(RESULTS / f"{name}.json")]
        # It ends what it has started itself, one after the other.
        with ended(subprocess.Popen(command), hurry=4 * INTERRUPTED_SECONDS) as program:
            if program.wait():
                failed.append(name)
    if failed:
        print(f"\n{len(failed)} of {len(names)} benchmarks failed: {', '.join(failed)}")
        return 1
    print(f"\n{len(names)} benchmarks done, figures in {RESULTS}")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main(sys.argv[1:]))
