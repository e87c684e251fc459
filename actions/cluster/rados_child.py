"""The far half of the rados channel: a process of its own, because librados can hang and does not speak to every
release. `rados.py` gives this file's text to the interpreter that has the cluster's release (Python 3.9 to 3.14);
it needs the standard library and that release's `rados`, nothing of ours.

A message is one line of JSON, followed by as many raw bytes as its `size` says. The first message in is the
connection; after that each is answered by one of the same `id`. The process ends when its input does.
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
"""An OSD that keeps an operation waiting for so long may be dead: librados then asks for a newer map. Its own ten are
no less than what we give an operation, and a host that lost its power would be asked for ever."""
Said = Tuple[int, bytes, str]  # noqa: UP006
Message = Dict[str, Any]  # noqa: UP006


class Unready(Exception):
    """There is no connection: at which stage, and what librados said."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.stage, self.rc = stage, number_of(error)


def number_of(error: BaseException) -> int:
    """A negative errno for any error."""
    return -abs(int(getattr(error, "errno", None) or errno.EIO))


def read(pipe: BinaryIO) -> Optional[Tuple[Message, bytes]]:  # noqa: UP006, UP045
    """The next message and its bytes; None at the end."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    given = pipe.read(head.get("size", 0))
    return (head, given) if len(given) == head.get("size", 0) else None


def write(pipe: BinaryIO, head: Message, out: bytes = b"") -> None:
    """Send a message with its bytes."""
    pipe.write(json.dumps({**head, "size": len(out)}).encode() + b"\n")
    pipe.write(out)
    pipe.flush()


def connect(asked: Message) -> Any:
    """A connected client. Raises Unready."""
    try:
        rados = importlib.import_module("rados")
    except ImportError as error:
        raise Unready("module", error) from error
    limits = {
        "rados_osd_op_timeout": str(asked["object_seconds"]),
        "objecter_timeout": str(STALE_MAP_SECONDS),
        "admin_socket": "",
        "log_file": "",
    }
    if asked["keyring"]:
        limits["keyring"] = asked["keyring"]
        try:  # librados says no more than "permission denied" of a keyring that is not there
            os.close(os.open(asked["keyring"], os.O_RDONLY))
        except OSError as error:
            raise Unready("keyring", error) from error
    try:
        cluster = rados.Rados(
            name=asked["name"], clustername=asked["cluster"], conffile=asked["conf"], conf=limits
        )
    except Exception as error:
        raise Unready("conf", error) from error
    try:
        cluster.connect()
    except Exception as error:
        raise Unready("connect", error) from error
    return cluster


def command(cluster: Any, to: str, asked: Message, given: bytes) -> Said:
    """One command, to the daemon that carries it out."""
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
    """A struct of version 1 as Ceph encodes it. Python's rados has no call that lists or breaks locks before 20.x, so
    the OSD's own lock class is called, whose arguments are the same on all releases."""
    return struct.pack("<BBI", 1, 1, len(content)) + content


def text_of(text: str) -> bytes:
    """A string as Ceph encodes it."""
    return struct.pack("<I", len(text.encode())) + text.encode()


class Encoded:
    """Reads what Ceph encoded, from its beginning on. Each method raises struct.error where it is too short."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, form: str) -> Any:
        """One number."""
        (value,) = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self) -> str:
        """One string."""
        return self.piece(self.take("I")).decode(errors="replace")

    def inner(self) -> "Encoded":
        """The content of a struct of any version."""
        self.take("H")
        return Encoded(self.piece(self.take("I")))

    def piece(self, size: int) -> bytes:
        """So many bytes."""
        if len(self.content) - self.at < size:
            raise struct.error("fewer bytes than said")
        self.at += size
        return self.content[self.at - size : self.at]


def lockers_in(said: bytes) -> "List[Message]":  # noqa: UP006
    """Those who hold a lock, as the OSD's lock class lists them. `expires_at`: seconds since 1970; 0 is never."""
    found, reply = [], Encoded(said).inner()
    for _ in range(reply.take("I")):
        id_, info = reply.inner(), reply.inner()
        client = [id_.take("B"), id_.take("q")]
        found.append({"client": client, "cookie": id_.text(), "expires_at": info.take("I")})
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
                raise OSError(errno.EIO, "what was read back is not what was written")
            return repr(taken).encode()
    return b""


def answer(cluster: Any, asked: Message, given: bytes) -> Said:
    """What one request asks for."""
    try:
        if asked["op"] == "ask":
            return command(cluster, asked["to"], asked["command"], given)
        return 0, on_object(cluster, asked), ""
    except Exception as error:  # noqa: BLE001 - whatever librados raises is an answer, not our end
        return number_of(error), b"", f"{type(error).__name__}: {error}"


def answer_all(cluster: Any, asked: Message) -> Said:
    """Several commands, each in a thread of its own, for rados has no call that does not wait."""
    every = [{"op": "ask", **each} for each in asked["all"]]
    with ThreadPoolExecutor(max_workers=min(TOGETHER, len(every))) as threads:
        said = list(threads.map(lambda each: answer(cluster, each, b""), every))
    heads = [{"rc": rc, "err": err, "size": len(out)} for rc, out, err in said]
    return 0, json.dumps(heads).encode() + b"\n" + b"".join(out for _, out, _ in said), ""


def listen(pipe: BinaryIO, into: "queue.SimpleQueue[Tuple[Message, bytes]]") -> None:  # noqa: UP006
    """Read on while librados works, so that the end of the input ends us even while it hangs."""
    try:
        while (message := read(pipe)) is not None:
            into.put(message)
    finally:  # the pipe of a parent that was killed before it read an answer is reset, not ended
        os._exit(0)


def main() -> None:
    """Connect, then answer until the input ends."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # whatever a library prints must not come between the messages
    first = read(inward)
    if first is None:
        return
    waiting: "queue.SimpleQueue[Tuple[Message, bytes]]" = queue.SimpleQueue()  # noqa: UP006, UP037
    threading.Thread(target=listen, args=(inward, waiting), daemon=True).start()
    try:
        cluster = connect(first[0])
    except Unready as why:
        write(outward, {"id": first[0]["id"], "rc": why.rc, "err": str(why), "stage": why.stage})
        os._exit(1)
    write(outward, {"id": first[0]["id"], "rc": 0, "err": "", "stage": "ready"})
    while True:
        asked, given = waiting.get()
        rc, out, err = (
            answer_all(cluster, asked) if asked["op"] == "ask all" else answer(cluster, asked, given)
        )
        write(outward, {"id": asked["id"], "rc": rc, "err": err}, out)


if __name__ == "__main__":
    main()
