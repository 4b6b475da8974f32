"""Small programs of several processes, or that end early, with the expected trace of their lines.

``python traced_processes.py NAME`` runs the program of this name. The form is that of traced.py.
"""

# fmt: off
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np


def a_fork():
    np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view
    child = os.fork()
    np.frombuffer(b"1234", "uint8")  #: 2 numpy.frombuffer(x) view
    if child:
        os.waitpid(child, 0)
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view


def a_fork_that_ends_at_once():
    child = os.fork()
    if not child:
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view
        os._exit(0)
    os.waitpid(child, 0)


def a_fork_that_is_killed():
    child = os.fork()
    if not child:
        time.sleep(0.05)  # the first file of a process is written at its first call after 10 ms
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def an_exit_in_the_middle():
    try:
        for _ in range(3):
            np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view
            sys.exit(0)
    finally:
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view


def ctrl_c_in_a_loop():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" ignores it
    try:
        for n in range(5):
            np.frombuffer(b"1234", "uint8")  #: 3 numpy.frombuffer(x) view
            if n == 2:
                signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view


def a_pool_that_kills_its_workers(task=None):
    if task is not None:
        np.frombuffer(b"1234", "uint8")  #: 8 numpy.frombuffer(x) view
        return
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(a_pool_that_kills_its_workers, range(8), chunksize=1)


def a_program_that_starts_another():
    if len(sys.argv) > 2:
        np.frombuffer(b"1234", "uint8")  #: 1 numpy.frombuffer(x) view
    else:
        subprocess.run([sys.executable, *sys.argv, "again"], check=True)


def the_loader_of_torch_with_two_spawned_workers(batch=None):
    import torch
    from torch.utils.data import DataLoader

    if batch is not None:
        return torch.from_numpy(np.array(batch))  #: 4 torch.from_numpy(x) view
    make = the_loader_of_torch_with_two_spawned_workers
    options = {"num_workers": 2, "multiprocessing_context": "spawn", "collate_fn": make}
    return sum(map(len, DataLoader(range(8), batch_size=2, **options)))  #: 1 x.item() read


def torchrun_with_two_workers():
    if "RANK" in os.environ:
        import torch

        for _ in range(3 + int(os.environ["RANK"])):
            torch.tensor(np.ones(10))  #: 7 torch.tensor(x) copy
    else:
        from torch.distributed.run import main

        main(["--standalone", "--nproc_per_node", "2", *sys.argv])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
