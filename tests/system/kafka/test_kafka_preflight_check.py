"""A broker that will not have us says why at once, in a sentence with the cure; one that will, serves."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from predrain.data.log.kafka import Broker, BrokerAway, BrokerRefuses, KafkaLog, check_broker_topics
from predrain.data.log.log_port import LogFull, Record, Topic
from predrain.data.refusal import Refusal
from tests.system.kafka.broker import PASSWORD, USER
from tests.system.kafka.broker import Broker as Process
from tests.system.kafka.conftest import Make

pytestmark = pytest.mark.timeout(
    30, func_only=True
)  # kafka-python alone would take that long for each of them
WAYS = ("PLAIN", "TLS", "MTLS", "SCRAM")


def _broker(process: Process, way: str) -> Broker:
    plain = Broker((process.address(way),))
    secured = replace(plain, security="tls", ca=process.ca)
    return {
        "PLAIN": plain,
        "TLS": secured,
        "MTLS": replace(secured, certificate=process.certificate, key=process.key),
        "SCRAM": replace(secured, security="scram", user=USER, password=PASSWORD),
    }[way]


@pytest.mark.parametrize("way", WAYS)
def test_the_log_appends_reads_and_commits_with_correct_security_settings(
    broker: Process, make: Make, way: str
) -> None:
    given = _broker(broker, way)
    log = KafkaLog(replace(given, prefix=make().prefix))
    with closing(log):
        log.check_broker()
        log.append(Topic.READINGS, [Record("a", b"over " + way.encode())])
        (one,) = log.read(Topic.READINGS, "worker", 10)
        log.commit(Topic.READINGS, "worker", [one])
        assert one.value == b"over " + way.encode()


WRONG = {
    "password": ("SCRAM", {"password": "wrong"}, "does not accept user 'predrain' with this password: correct user"),
    "user": ("SCRAM", {"user": "nobody"}, "does not accept user 'nobody' with this password: correct user"),
    "no user": ("TLS", {"bootstrap": "SCRAM"}, "as we speak tls: it may want .* security to scram"),
    "a user too many": ("SCRAM", {"bootstrap": "TLS"}, "does not take SCRAM-SHA-512 at this port"),
    "no certificate": ("MTLS", {"certificate": None, "key": None}, "demands a client's certificate: set certificate"),
    "a stranger's certificate": (
        "MTLS", {"certificate": "stranger", "key": "stranger_key"}, "does not accept the certificate .*stranger.crt",
    ),
    "another authority": ("TLS", {"ca": "stranger"}, "is not trusted .*: set ca to the PEM file of who signed it"),
    "another name": ("TLS", {"bootstrap": "localhost"}, "is not valid for 'localhost'.* as its certificate does"),
    "no authority": ("TLS", {"ca": "absent"}, "cannot be used .No such file.*: set ca to the PEM file"),
    "a key for an authority": ("TLS", {"ca": "key"}, "cannot be used .*: set ca to the PEM file"),
    "a key that is another's": ("MTLS", {"key": "stranger_key"}, "with its key .* cannot be used .*belong together"),
    "TLS to a plain port": ("TLS", {"bootstrap": "PLAIN"}, "does not speak TLS .*or set security to plaintext"),
    "plain to a TLS port": ("PLAIN", {"bootstrap": "TLS"}, "as we speak plaintext: it may want TLS, or a user"),
    "plain to a user's port": ("PLAIN", {"bootstrap": "SCRAM"}, "as we speak plaintext: it may want TLS, or a user"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_every_call_of_the_log_reports_a_wrong_security_setting(broker: Process, what: str) -> None:
    way, changes, sentence = WRONG[what]
    stands_for = {
        "stranger": broker.stranger,
        "stranger_key": broker.stranger.with_suffix(".key"),
        "key": broker.key,
        "absent": broker.ca.with_suffix(".absent"),
        "localhost": (broker.address("TLS").replace("127.0.0.1", "localhost"),),
        **{way: (broker.address(way),) for way in WAYS},
    }
    options = {name: stands_for.get(str(value), value) for name, value in changes.items()}
    log = KafkaLog(replace(_broker(broker, way), **options))  # type: ignore[arg-type]
    with closing(log):
        for call in (
            log.check_broker,
            lambda: log.append(Topic.READINGS, [Record("a", b"b")]),
            lambda: log.read(Topic.READINGS, "worker", 1),
            lambda: log.commit(Topic.READINGS, "worker", []),
            lambda: log.read_newest(Topic.READINGS, 1),
        ):
            with pytest.raises(BrokerRefuses, match=sentence) as refused:
                call()
            assert isinstance(refused.value, Refusal)
            assert isinstance(refused.value, LogFull)
            assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "bootstrap", [(), ("here",), ("here:",), (":9092",), ("here:99999",), ("here:\u0663",)]
)
def test_bootstrap_servers_without_a_valid_address_are_refused(bootstrap: tuple[str, ...]) -> None:
    with pytest.raises(BrokerRefuses, match="bootstrap_servers"):
        check_broker_topics(Broker(bootstrap))


def test_a_password_is_not_shown_with_the_broker() -> None:
    assert "secret" not in repr(Broker(("here:9092",), "scram", user="u", password="secret"))


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of something that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_nobody_there_is_told_for_each_address(mute: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(BrokerAway) as away:
        check_broker_topics(Broker((dead, mute, "no-such-host.invalid:9092")))
    assert f"no broker listens at {dead}: start it" in str(away.value)
    assert f"the broker {mute} does not answer within 3 s" in str(away.value)
    assert "no address is known for the broker no-such-host.invalid" in str(away.value)


def test_one_address_that_answers_is_enough(broker: Process, mute: str) -> None:
    check_broker_topics(Broker((mute, broker.address())))


def test_something_else_at_the_port_is_told() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        pool.submit(answer)
        with pytest.raises(BrokerRefuses, match="ends the conversation as we speak plaintext"):
            check_broker_topics(Broker((f"127.0.0.1:{server.getsockname()[1]}",)))
