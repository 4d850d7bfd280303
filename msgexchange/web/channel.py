"""How one connection behaves: bounded in time, and every refusal readable."""

from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.task import ErrorTask
from waitress.utilities import RequestEntityTooLarge

from msgexchange.web.answers import HEADERS
from msgexchange.web.problems import MEDIA_TYPE, Problem, too_large

_DRAINED_TIMES_MAX: Final = 8


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Reads a body over the limit to its end, keeping nothing.

    A connection closed while its client still writes is reset, and the client never reads why.
    """

    error: Any
    completed: bool
    _refusal: Any = None
    _left_bytes = 0

    def received(self, data: bytes) -> int:
        """Bytes consumed of ``data``."""
        if self._refusal is None:
            consumed: int = super().received(data)
            if isinstance(self.error, RequestEntityTooLarge) and self._is_worth_draining():
                self._refusal, self.error, self.completed = self.error, None, False
                self._left_bytes = self.content_length
            return consumed
        drained = min(len(data), self._left_bytes)
        self._left_bytes -= drained
        if self._left_bytes == 0:
            self.error, self.completed = self._refusal, True
        return drained

    def _is_worth_draining(self) -> bool:
        """Not for one who waits for a 100, sends without end, or sends beyond all measure."""
        length_max = self.adj.max_request_body_size * _DRAINED_TIMES_MAX
        return not (self.expect_continue or self.chunked or self.content_length > length_max)


class _Refusal(ErrorTask):  # type: ignore[misc]
    """What the server refuses before the application sees it, in the application's form."""

    def execute(self) -> None:
        """Write the answer and close."""
        error = self.request.error
        if isinstance(error, RequestEntityTooLarge):
            problem = too_large(self.channel.server.body_bytes_max)
        else:
            detail = "The request is not HTTP as this server reads it; check the client."
            problem = Problem(error.code, f"http-{error.code}", error.reason, detail)
        body = problem.body()
        self.status = f"{error.code} {error.reason}"
        self.response_headers.extend([("Content-Type", MEDIA_TYPE), *HEADERS.items()])
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose time runs from a request's first byte, not from its last."""

    parser_class = _Parser
    error_task_class = _Refusal
    last_activity: float
    _began_at: float | None = None

    def received(self, data: bytes) -> bool:
        """Take in what arrived.

        The server closes what was idle for too long. Were every byte an activity, a client that
        sends one now and then would hold its connection for ever.
        """
        taken: bool = super().received(data)
        if self.request is None:
            self._began_at = None
        elif self._began_at is None:
            self._began_at = self.last_activity
        else:
            self.last_activity = self._began_at
        return taken
