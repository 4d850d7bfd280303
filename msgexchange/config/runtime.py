"""Settings of the process around the pipeline: HTTP, supervision, telemetry."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, SecretStr

from msgexchange.config.section import Section
from msgexchange.config.values import Duration, Size

_S = timedelta(seconds=1)
_MIN = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MIB = 1 << 20


def _sendable(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError("a token is one or more visible ASCII characters without blanks")
    return token


Token: TypeAlias = Annotated[SecretStr, AfterValidator(_sendable)]


class Http(Section):
    """The HTTP interface."""

    host: Annotated[str, Field(min_length=1)] = Field(
        default="127.0.0.1", description="address to listen on; TLS belongs to a proxy in front"
    )
    port: int = Field(default=8080, ge=0, le=65_535, description="port; 0 takes a free one")
    workers: int = Field(default=8, ge=1, le=64, description="requests answered at once")
    send_token: Token | None = Field(
        default=None, description="bearer token of POST /cminmsgs/send; open without it"
    )
    admin_token: Token | None = Field(
        default=None, description="bearer token of /admin; admin is off without it"
    )
    body_max: Size = Field(
        default=64 * _MIB, ge=1_024, le=512 * _MIB, description="largest request body"
    )
    request_timeout: Duration = Field(
        default=30 * _S, ge=_S, le=10 * _MIN, description="longest silence of a client"
    )


class Supervisor(Section):
    """Restarts, leadership and stop."""

    max_restarts: int = Field(
        default=10, ge=0, le=1_000, description="actor restarts within window before exit 70"
    )
    window: Duration = Field(
        default=5 * _MIN, ge=_S, le=_DAY, description="over which restarts are counted"
    )
    lease: Duration = Field(
        default=5 * _S,
        ge=5 * _S,
        le=_MIN,
        description="how long a leader that falls silent keeps the others waiting; longer than "
        "every wait of store",
    )
    watchdog: Duration = Field(
        default=_MIN, ge=_S, le=60 * _MIN, description="longest step before liveness turns red"
    )
    shutdown_timeout: Duration = Field(
        default=20 * _S, ge=_S, le=10 * _MIN, description="longest orderly stop"
    )


class LogFormat(StrEnum):
    """How log lines look; auto is text on a terminal and JSON elsewhere."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least weight of a line that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Telemetry(Section):
    """Logs and traces."""

    log_format: LogFormat = Field(
        default=LogFormat.AUTO, description="auto (text on a terminal, JSON elsewhere), text, json"
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="debug, info, warning or error")
    jaeger_url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = Field(
        default=None, description="Jaeger's address, to which stories link"
    )
    traces_per_second: float = Field(
        default=20.0,
        ge=0.0,
        le=10_000.0,
        description="sampled traces; 0 only what fails or is slow",
    )
    slow_after: Duration = Field(
        default=_S, ge=_S / 100, le=10 * _MIN, description="attempts that take longer are traced"
    )
    otlp_endpoint: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = Field(
        default=None,
        description="where traces go (OTLP/HTTP); without it OTEL_EXPORTER_OTLP_* decides",
    )
