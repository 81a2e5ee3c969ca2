"""A scenario that is over leaves nothing in the memory of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

MEBIBYTE = 2**20

# A process of its own, as a run is: how glibc gives memory back follows from all that was freed before, too.
RUN = """
import gc, json, threading
import psutil
from chaos.memory import give_back, hold_in_few_arenas

class Circle:
    '''As a world, and a producer that asks it how many batches there are.'''
    def __init__(self):
        self.itself = self
        self.records = [b"x" * 50_000 for _ in range(2_000)]

def live():
    Circle()
    held.append(b"x" * 50_000)  # above it

held = []
hold_in_few_arenas()
gc.disable()  # Python collects nothing by itself, as with few objects, however large
sizes = [psutil.Process().memory_info().rss]
thread = threading.Thread(target=live)  # as servers and producers are in one
thread.start()
thread.join()
sizes.append(psutil.Process().memory_info().rss)
give_back()
sizes.append(psutil.Process().memory_info().rss)
print(json.dumps(sizes))
"""


def test_what_refers_to_itself_is_given_back_to_the_system() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", RUN], env=environment, stdout=subprocess.PIPE, check=True, timeout=60)
    before, during, after = json.loads(told.stdout)
    assert during > before + 80 * MEBIBYTE
    assert after < before + 20 * MEBIBYTE
