"""Three nodes as processes; one is killed when a third of the sessions is there."""

import subprocess
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster

store = Path("results")
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
plan = Path("plan.toml")
plan.write_text(
    Path("plan.in").read_text()
    + f'\n[machines.cluster]\nexecutor = "ray"\naddress = "{cluster.address}"\n'
)
begun = time.time()
dlprof = subprocess.Popen([str(Path(sys.executable).with_name("dlprof")), "jobs", "run", str(plan)])
killed = False
while dlprof.poll() is None:
    done = (
        len([p for p in store.glob("*.json") if not p.name.endswith(".job.json")])
        if store.exists()
        else 0
    )
    if not killed and done >= 66:
        cluster.remove_node(nodes[1], allow_graceful=False)
        killed = True
        print(f"--- a node was killed after {done} sessions", flush=True)
    time.sleep(0.5)
print("exit code", dlprof.returncode, f"{time.time() - begun:.0f} s")
cluster.shutdown()
