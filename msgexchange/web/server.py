"""The HTTP server in a thread of its own, with a bound on everything (spec 6.4)."""

import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from flask import Flask
from waitress import wasyncore
from waitress.server import create_server

from msgexchange.web.channel import Channel

CONNECTIONS_MAX: Final = 200
_BACKLOG: Final = 128
_BUFFERED_BYTES_MAX: Final = 1 << 30
_STOP_TIMEOUT_S: Final = 5.0


class CannotListen(Exception):
    """The address is taken, not ours, or not allowed; the text says what to set."""


class RunningServer:
    """A server that answers until it is stopped."""

    def __init__(self, server: Any, host: str) -> None:
        self._server = server
        named = f"[{host}]" if ":" in host else host
        self.url = f"http://{named}:{server.effective_port}"
        """Where it answers, the port it really has included."""
        self._loop = threading.Thread(target=server.run, name="http", daemon=True)
        self._loop.start()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Take no more connections, let running requests end within ``timeout_s``, close."""
        if not self._loop.is_alive():
            return
        # Sockets belong to the loop's thread: closed from another one, it could select on a
        # number that already means another file.
        self._in_loop(lambda: wasyncore.dispatcher.close(self._server))
        self._server.task_dispatcher.shutdown(timeout=timeout_s)
        self._in_loop(self._end)
        self._loop.join(timeout_s)
        # The pipe outlives everybody who may still write to it: its number, once closed, could
        # already mean another file.
        if not self._loop.is_alive() and not self._server.task_dispatcher.threads:
            self._server.trigger.close()

    def _in_loop(self, step: Callable[[], None]) -> None:
        self._server.trigger.pull_trigger(step)

    def _end(self) -> None:
        """Close all connections and leave the loop nothing to watch, which ends it."""
        for channel in list(self._server.active_channels.values()):
            channel.handle_close()
        self._server.trigger.del_channel()


def start(
    app: Flask,
    host: str,
    port: int,
    *,
    workers: int,
    body_bytes_max: int,
    request_timeout_s: float,
    connections_max: int = CONNECTIONS_MAX,
) -> RunningServer:
    """Answer ``app`` on ``host`` and ``port`` (0 takes a free one).

    The address is bound before anything starts: ``CannotListen`` if that fails. A request must
    be complete within ``request_timeout_s`` of its first byte.
    """
    listener = _bound(host, port)
    timeout_s = max(1, round(request_timeout_s))
    server: Any = create_server(
        app,
        sockets=[listener],
        threads=workers,
        connection_limit=connections_max,
        channel_timeout=timeout_s,
        cleanup_interval=max(1, timeout_s // 4),
        # The framing of a chunked body counts here, and a length equal to the limit is over it:
        # the exact limit is the application's.
        max_request_body_size=body_bytes_max + body_bytes_max // 8 + 1_024,
        # A worker must never wait for a client that reads slowly.
        outbuf_high_watermark=_BUFFERED_BYTES_MAX,
        clear_untrusted_proxy_headers=True,
        ident=None,
    )
    server.channel_class = Channel
    server.body_bytes_max = body_bytes_max
    return RunningServer(server, host)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise CannotListen(
            f"cannot listen on {host} port {port}: {reason}; set http.host and http.port to an "
            "address of this machine that is free (port 0 takes a free one)"
        ) from exc
    listener.setblocking(False)
    return listener
