"""The child process of the rados channel: a separate process, because librados can hang, and because it does not work
with every release. `rados.py` gives the text of this file to the interpreter that has the cluster's release (Python
3.9 to 3.14). The file needs the standard library and that release's `rados`, nothing else of predrain.

A message is one line of JSON, followed by as many raw bytes as its `size` says. The first incoming message is the
connection. Each later one is answered by a message with the same `id`. The process ends when its input ends.
"""

import errno
import importlib
import json
import os
import queue
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Dict, List, Optional, Tuple  # noqa: UP035 - Python 3.9

TOGETHER = 64
MUST_RENEW = 2
LOCKERS_BYTES = 65536
STALE_MAP_SECONDS = 2
"""An OSD that does not answer an operation for this long may be dead: librados then asks for a newer map. The default
of librados, 10 s, is not shorter than predrain's own time limit of an operation, so a host without power would be
asked for ever.
"""
Said = Tuple[int, bytes, str]  # noqa: UP006
Message = Dict[str, Any]  # noqa: UP006


class RadosNotReady(Exception):
    """There is no connection. The exception holds the stage that failed and the error of librados."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.stage, self.rc = stage, number_of(error)


def number_of(error: BaseException) -> int:
    """Return a negative errno for any error."""
    return -abs(int(getattr(error, "errno", None) or errno.EIO))


def read_message(pipe: BinaryIO) -> Optional[Tuple[Message, bytes]]:  # noqa: UP006, UP045
    """Read the next message and its bytes. Return None at the end of the input."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    given = pipe.read(head.get("size", 0))
    return (head, given) if len(given) == head.get("size", 0) else None


def write_message(pipe: BinaryIO, head: Message, out: bytes = b"") -> None:
    """Send a message with its bytes."""
    pipe.write(json.dumps({**head, "size": len(out)}).encode() + b"\n")
    pipe.write(out)
    pipe.flush()


def connect_to_cluster(asked: Message) -> Any:
    """Connect and return the client. Raises RadosNotReady."""
    try:
        rados = importlib.import_module("rados")
    except ImportError as error:
        raise RadosNotReady("module", error) from error
    limits = {
        "rados_osd_op_timeout": str(asked["object_seconds"]),
        "objecter_timeout": str(STALE_MAP_SECONDS),
        "admin_socket": "",
        "log_file": "",
    }
    if asked["keyring"]:
        limits["keyring"] = asked["keyring"]
        try:  # librados reports only "permission denied" for a missing keyring
            os.close(os.open(asked["keyring"], os.O_RDONLY))
        except OSError as error:
            raise RadosNotReady("keyring", error) from error
    try:
        cluster = rados.Rados(
            name=asked["name"], clustername=asked["cluster"], conffile=asked["conf"], conf=limits
        )
    except Exception as error:
        raise RadosNotReady("conf", error) from error
    try:
        cluster.connect()
    except Exception as error:
        raise RadosNotReady("connect", error) from error
    return cluster


def run_daemon_command(cluster: Any, to: str, asked: Message, given: bytes) -> Said:
    """Send one command to the daemon that executes it."""
    text = json.dumps(asked)
    if to.startswith("osd."):
        rc, out, err = cluster.osd_command(int(to[4:]), text, given)
    elif to == "mgr":
        rc, out, err = cluster.mgr_command(text, given)
    else:
        rc, out, err = cluster.mon_command(text, given)
    words = err if isinstance(err, str) else bytes(err or b"").decode(errors="replace")
    return -abs(rc), out or b"", words  # a few errors of 20.x come without their sign


def encode_struct(content: bytes) -> bytes:
    """Encode a struct of version 1 as Ceph does. Before 20.x Python's rados has no call that lists or breaks locks, so
    the OSD's own lock class is called, whose arguments are the same in all releases.
    """
    return struct.pack("<BBI", 1, 1, len(content)) + content


def text_of(text: str) -> bytes:
    """Encode a string as Ceph does."""
    return struct.pack("<I", len(text.encode())) + text.encode()


class Encoded:
    """A reader of Ceph's encoding, from the beginning on. Each method raises struct.error if the content
    is too short.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def read_number(self, form: str) -> Any:
        """Read one number."""
        (value,) = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def read_string(self) -> str:
        """Read one string."""
        return self.read_bytes(self.read_number("I")).decode(errors="replace")

    def read_struct(self) -> "Encoded":
        """Read the content of a struct of any version."""
        self.read_number("H")
        return Encoded(self.read_bytes(self.read_number("I")))

    def read_bytes(self, size: int) -> bytes:
        """Read `size` bytes."""
        if len(self.content) - self.at < size:
            raise struct.error("fewer bytes than said")
        self.at += size
        return self.content[self.at - size : self.at]


def lockers_in(said: bytes) -> "List[Message]":  # noqa: UP006
    """List the holders of a lock from the answer of the OSD's lock class. `expires_at`: seconds since 1970; 0 means
    never.
    """
    found, reply = [], Encoded(said).read_struct()
    for _ in range(reply.read_number("I")):
        id_, info = reply.read_struct(), reply.read_struct()
        client = [id_.read_number("B"), id_.read_number("q")]
        found.append({"client": client, "cookie": id_.read_string(), "expires_at": info.read_number("I")})
    return found


def on_object(cluster: Any, asked: Message) -> bytes:
    """Lock, unlock, list or break locks, or probe. Raises rados.Error."""
    with cluster.open_ioctx(asked["pool"]) as pool:
        name = asked["name"]
        if asked["op"] == "lock":
            flags = MUST_RENEW if asked["renew"] else 0
            pool.lock_exclusive(name, name, asked["cookie"], "predrain", asked["seconds"], flags)
        elif asked["op"] == "unlock":
            pool.unlock(name, name, asked["cookie"])
        elif asked["op"] == "lockers":
            said = pool.execute(name, "lock", "get_info", encode_struct(text_of(name)), LOCKERS_BYTES)[1]
            return json.dumps(lockers_in(said)).encode()
        elif asked["op"] == "break":
            locker = text_of(name) + struct.pack("<Bq", *asked["client"]) + text_of(asked["cookie"])
            pool.execute(name, "lock", "break_lock", encode_struct(locker))
        else:
            body = os.urandom(asked["bytes"])
            begun = time.monotonic()
            pool.write_full(name, body)
            back = pool.read(name, len(body))
            taken = time.monotonic() - begun
            if back != body:
                raise OSError(errno.EIO, "the value that was read back is not the one that was written")
            return repr(taken).encode()
    return b""


def answer_request(cluster: Any, asked: Message, given: bytes) -> Said:
    """Execute one request. Return its return code, output and message."""
    try:
        if asked["op"] == "ask":
            return run_daemon_command(cluster, asked["to"], asked["command"], given)
        return 0, on_object(cluster, asked), ""
    except Exception as error:  # noqa: BLE001 - whatever librados raises is an answer, not our end
        return number_of(error), b"", f"{type(error).__name__}: {error}"


def answer_all(cluster: Any, asked: Message) -> Said:
    """Execute several commands, each in its own thread, because every call of rados waits for its answer."""
    every = [{"op": "ask", **each} for each in asked["all"]]
    with ThreadPoolExecutor(max_workers=min(TOGETHER, len(every))) as threads:
        said = list(threads.map(lambda each: answer_request(cluster, each, b""), every))
    heads = [{"rc": rc, "err": err, "size": len(out)} for rc, out, err in said]
    return 0, json.dumps(heads).encode() + b"\n" + b"".join(out for _, out, _ in said), ""


def queue_incoming_requests(pipe: BinaryIO, into: "queue.SimpleQueue[Tuple[Message, bytes]]") -> None:  # noqa: UP006
    """Read the input while librados works, so that the end of the input ends this process even if librados hangs."""
    try:
        while (message := read_message(pipe)) is not None:
            into.put(message)
    finally:  # if the parent was killed before it read an answer, the pipe is reset and does not end
        os._exit(0)


def main() -> None:
    """Connect, then answer requests until the input ends."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # the output of a library must not come between the messages
    first = read_message(inward)
    if first is None:
        return
    waiting: "queue.SimpleQueue[Tuple[Message, bytes]]" = queue.SimpleQueue()  # noqa: UP006, UP037
    threading.Thread(target=queue_incoming_requests, args=(inward, waiting), daemon=True).start()
    try:
        cluster = connect_to_cluster(first[0])
    except RadosNotReady as why:
        write_message(outward, {"id": first[0]["id"], "rc": why.rc, "err": str(why), "stage": why.stage})
        os._exit(1)
    write_message(outward, {"id": first[0]["id"], "rc": 0, "err": "", "stage": "ready"})
    while True:
        asked, given = waiting.get()
        rc, out, err = (
            answer_all(cluster, asked) if asked["op"] == "ask all" else answer_request(cluster, asked, given)
        )
        write_message(outward, {"id": asked["id"], "rc": rc, "err": err}, out)


if __name__ == "__main__":
    main()
