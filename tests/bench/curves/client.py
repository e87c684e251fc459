"""The clients, which the release's own interpreter runs: 4 KiB reads and writes in an open loop.

In an open loop an operation is due at its time whether or not earlier ones have come back, and its latency counts from
then. A cluster that stalls can therefore not hide the operations that were due meanwhile. Arrivals are Poisson. Times
are `time.monotonic()`, which all processes of a machine share.

The arguments are the path of ceph.conf, the client name and the keyring. Each line on stdin is JSON. The first line
names the pools and the number of their objects: {"pools": {name: objects}}. Each further line is an order, {"rate":
operations a second}, and the end of file stops the clients. Twice a second the clients print a line of JSON on stdout
with the operations that have ended: a list of [due, milliseconds or null where it failed, pool, object].
"""

import json
import os
import random
import sys
import threading
import time


def main(conf, name, keyring):
    """Serve until stdin ends."""
    import rados  # type: ignore[import-not-found]

    unbounded = {"objecter_inflight_ops": "1000000", "objecter_inflight_op_bytes": str(1 << 40)}
    cluster = rados.Rados(conffile=conf, name=name, conf={"keyring": keyring, **unbounded})
    cluster.connect(timeout=30)
    pools = json.loads(sys.stdin.readline())["pools"]
    data = os.urandom(4096)
    targets = []
    for pool, objects in pools.items():
        ioctx = cluster.open_ioctx(pool)
        for number in range(objects):
            key = f"op{number:05d}"
            ioctx.write_full(key, data)
            targets.append((ioctx, pool, key))
    done, turn, order = [], threading.Lock(), {"rate": 0.0, "over": False}

    def listen():
        for line in sys.stdin:
            order["rate"] = json.loads(line)["rate"]
        order["over"] = True

    def tell():
        while True:
            time.sleep(0.5)
            with turn:
                lot, done[:] = list(done), []
            print(json.dumps(lot), flush=True)

    print("[]", flush=True)
    for work in (listen, tell):
        threading.Thread(target=work, daemon=True).start()
    chance = random.Random(1)
    due, rate = 0.0, 0.0
    while not order["over"]:
        if order["rate"] != rate:
            rate, due = order["rate"], time.monotonic()
        if not rate:
            time.sleep(0.01)
            continue
        due += chance.expovariate(rate)
        while (left := due - time.monotonic()) > 0 and order["rate"] == rate and not order["over"]:
            time.sleep(min(left, 0.05))
        if order["rate"] != rate:
            continue
        ioctx, pool, key = targets[chance.randrange(len(targets))]

        def back(completion, *_, due=due, pool=pool, key=key):
            ms = (time.monotonic() - due) * 1000
            failed = completion.get_return_value() < 0
            with turn:
                done.append((round(due, 4), None if failed else round(ms, 2), pool, key))

        if chance.random() < 0.5:
            ioctx.aio_write_full(key, data, oncomplete=back)
        else:
            ioctx.aio_read(key, 4096, 0, back)
    sys.stdout.flush()
    os._exit(0)  # librados aborts when the interpreter ends under its threads


if __name__ == "__main__":
    main(*sys.argv[1:])
