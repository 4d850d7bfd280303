"""The real server on a free port: bounds that no test client can show."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from web_world import BODY_MAX, MemoryEntry, deps

from msgexchange.web import CannotListen, RunningServer, create_app, start

SEND = "/cminmsgs/send"


@pytest.fixture
def entry() -> MemoryEntry:
    return MemoryEntry()


@pytest.fixture
def server(entry: MemoryEntry) -> Iterator[RunningServer]:
    running = start(
        create_app(deps(entry=entry)),
        "127.0.0.1",
        0,
        workers=2,
        body_bytes_max=BODY_MAX,
        request_timeout_s=1,
    )
    yield running
    running.stop()


def port_of(server: RunningServer) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


def connection(server: RunningServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=10)


def test_a_message_goes_in_with_a_length_and_in_chunks(
    server: RunningServer, entry: MemoryEntry
) -> None:
    with closing(connection(server)) as web:
        web.request("POST", SEND, body=b"<A/>")
        answer = web.getresponse()
        assert (answer.status, answer.read(), answer.getheader("Server")) == (200, b"1", None)
        web.request("POST", SEND, body=iter([b"<B>", b"</B>"]), encode_chunked=True)
        assert web.getresponse().read() == b"2"
    assert entry.received == [("<A/>", None), ("<B></B>", None)]


@pytest.mark.parametrize("bytes_sent", [BODY_MAX + 1, 4_000_000])
def test_a_body_over_the_limit_gets_a_readable_413(entry: MemoryEntry, bytes_sent: int) -> None:
    running = start(
        create_app(deps(entry=entry)),
        "127.0.0.1",
        0,
        workers=1,
        body_bytes_max=1_000_000,
        request_timeout_s=10,
    )
    # Far more than the sockets buffer: a server that closes early resets the connection.
    with closing(connection(running)) as web:
        web.request("POST", SEND, body=b"x" * bytes_sent)
        answer = web.getresponse()
        assert answer.status == 413
        assert answer.getheader("Content-Type") == "application/problem+json"
        assert json.loads(answer.read())["status"] == 413
    running.stop()
    assert entry.received == []


def test_a_body_at_the_limit_goes_in(server: RunningServer) -> None:
    with closing(connection(server)) as web:
        web.request("POST", SEND, body=b"x" * BODY_MAX)
        assert web.getresponse().status == 200


def test_a_length_beyond_all_measure_is_refused_before_the_body(server: RunningServer) -> None:
    with closing(socket.create_connection(("127.0.0.1", port_of(server)), timeout=10)) as raw:
        raw.sendall(b"POST /cminmsgs/send HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 413")


def test_chunks_over_the_limit_get_a_413(server: RunningServer, entry: MemoryEntry) -> None:
    over = BODY_MAX + BODY_MAX // 8 + 1_100
    with closing(socket.create_connection(("127.0.0.1", port_of(server)), timeout=10)) as raw:
        raw.sendall(
            b"POST /cminmsgs/send HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        raw.sendall(b"%x\r\n%s\r\n" % (over, b"x" * over))
        assert raw.recv(4096).startswith(b"HTTP/1.1 413")
    with closing(connection(server)) as web:
        body = iter([b"x" * 1_000] * (BODY_MAX // 1_000 + 1))
        web.request("POST", SEND, body=body, encode_chunked=True)
        assert web.getresponse().status == 413
    assert entry.received == []


def test_a_client_that_drips_its_request_is_cut_off(server: RunningServer) -> None:
    with closing(socket.create_connection(("127.0.0.1", port_of(server)), timeout=0.25)) as raw:
        raw.sendall(b"POST /cminmsgs/send HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
        for _ in range(60):
            try:
                raw.sendall(b"x")
                if raw.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("the connection was still open after 60 drips, far past its bound of 1 s")


def test_what_is_no_http_gets_a_problem_too(server: RunningServer) -> None:
    with closing(socket.create_connection(("127.0.0.1", port_of(server)), timeout=10)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nno header\r\n\r\n")
        answer = raw.recv(4096)
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert b"application/problem+json" in answer


def test_a_busy_port_is_told_before_anything_starts(server: RunningServer) -> None:
    with pytest.raises(CannotListen, match=r"set http\.host and http\.port"):
        start(
            create_app(deps()),
            "127.0.0.1",
            port_of(server),
            workers=1,
            body_bytes_max=BODY_MAX,
            request_timeout_s=1,
        )


def test_a_stopped_server_has_given_its_port_back(server: RunningServer) -> None:
    with closing(connection(server)) as web:
        web.request("GET", "/health/live")
        assert web.getresponse().read()
        server.stop()
        server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(server)), timeout=5)


def test_a_loop_that_ends_before_its_last_wake_up_does_not_break_the_stop(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = server._server.trigger
    wake = trigger._physical_pull

    def woken_by_another_first() -> None:
        wake()
        server._loop.join(0.2)
        wake()

    monkeypatch.setattr(trigger, "_physical_pull", woken_by_another_first)
    server.stop()
    assert not server._loop.is_alive()
