"""Settings of what stands outside: own database, mailbox, broker."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from msgexchange.config.dsn import MAILBOX_SCHEMES, STORE_SCHEMES, checked
from msgexchange.config.section import Section
from msgexchange.config.values import ColumnName, Duration, TableName

_LEASE = timedelta(seconds=5)


def _store_dsn(value: SecretStr) -> SecretStr:
    return checked(value, STORE_SCHEMES)


def _mailbox_dsn(value: SecretStr) -> SecretStr:
    return checked(value, MAILBOX_SCHEMES)


class Store(Section):
    """The own database."""

    url: Annotated[SecretStr, AfterValidator(_store_dsn)] | None = Field(
        default=None,
        description="DSN of the own database: postgresql://USER:PASSWORD@HOST/DATABASE, or "
        "sqlite:///FILE (embedded only; default there: store.sqlite in the data folder)",
    )
    lock_timeout: Duration = Field(
        default=timedelta(seconds=3),
        ge=timedelta(milliseconds=10),
        lt=_LEASE,
        description="longest wait for a row lock; below the lease of 5 s",
    )
    statement_timeout: Duration = Field(
        default=timedelta(seconds=4),
        ge=timedelta(milliseconds=10),
        lt=_LEASE,
        description="longest run of one statement; below the lease of 5 s",
    )
    idle_timeout: Duration = Field(
        default=timedelta(seconds=4),
        ge=timedelta(milliseconds=10),
        lt=_LEASE,
        description="longest idle time inside a transaction; below the lease of 5 s",
    )


class Inbound(Section):
    """The mailbox table that messages come from; it belongs to another team."""

    table: TableName = Field(default="CMINMSGS", description="table the messages come from")
    id_column: ColumnName = Field(default="CMINMSGS_ID", description="its id: the strict order")
    text_column: ColumnName = Field(default="MSG_TEXT", description="its raw XML")
    received_column: ColumnName = Field(default="RECV_TIME", description="when it was written")
    flag_column: ColumnName = Field(default="PROC_FLAG", description="its processed mark")
    processed_time_column: ColumnName = Field(default="PROC_TIME", description="when it was marked")
    id_step: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        default=None,
        description="the server's auto_increment_increment, where it is declared not to be 1: "
        "ids off the step are never waited for",
    )
    id_offset: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        default=None, description="the server's auto_increment_offset; needs id-step"
    )
    extra_columns: dict[ColumnName, str | int] = Field(
        default_factory=dict,
        description="further columns an insert must fill, each with its fixed value",
    )


class Outbound(Section):
    """The mailbox table that requests go to; it belongs to another team."""

    table: TableName = Field(default="COUTMSGS", description="table the requests go to")
    id_column: ColumnName = Field(default="COUTMSGS_ID", description="its id")
    text_column: ColumnName = Field(default="MSG_TEXT", description="its raw XML")
    created_column: ColumnName = Field(default="CREATED_TIME", description="when it was written")
    flag_column: ColumnName = Field(default="SEND_FLAG", description="its owner's sent mark")
    rows_removed: bool = Field(
        default=False,
        description="true where the owner removes rows it has sent: whether an interrupted write "
        "was made can then not be looked up, and a person is asked instead of writing it again",
    )
    extra_columns: dict[ColumnName, str | int] = Field(
        default_factory=dict,
        description="further columns an insert must fill, each with its fixed value",
    )


_STARTS = frozenset({"oldest", "begin", "newest"})


def _read_start(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("id", "an id is wanted, not true or false")
    if isinstance(value, str) and not value.isdecimal() and value not in _STARTS:
        raise ValueError("is neither an id nor oldest, begin or newest")
    return "oldest" if value == "begin" else value


StartAfter: TypeAlias = Annotated[
    Annotated[int, Field(ge=0, lt=1 << 63)] | Literal["oldest", "newest"],
    BeforeValidator(_read_start),
]
"""Where the first watermark stands: after this id, before the oldest row, after the newest."""

Mark: TypeAlias = Annotated[str, Field(min_length=1, max_length=16)]


class Mailbox(Section):
    """The shared MySQL tables."""

    url: Annotated[SecretStr, AfterValidator(_mailbox_dsn)] | None = Field(
        default=None,
        description="DSN of the mailbox: mysql://USER:PASSWORD@HOST/DATABASE, or sqlite:///FILE "
        "(embedded only; default there: mailbox.sqlite in the data folder)",
    )
    processed_value: Mark | None = Field(
        default=None,
        description="what the processed mark is set to, one of processed-values; Y in embedded, "
        "no default elsewhere",
    )
    processed_values: tuple[Mark, ...] = Field(
        default=("Y",),
        min_length=1,
        description="the values the mailbox's owner accepts as a processed mark",
    )
    unprocessed_values: tuple[Annotated[str, Field(max_length=100)], ...] = Field(
        default=("N", " ", ""),
        description="what the mark reads (besides NULL) where nobody has set it; any other value "
        "is a third party's and is not overwritten before overdue-backfill",
    )
    start_after: StartAfter | None = Field(
        default=None,
        description="on the first start, the id after which to begin, or oldest (also: begin), "
        "or newest; oldest in embedded, no default elsewhere",
    )
    retention: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="how long the mailbox's owner keeps raw texts; to be declared by the site",
    )
    inbound: Inbound = Inbound()
    outbound: Outbound = Outbound()


class Delivery(StrEnum):
    """How often a consumer may see an event."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


TopicName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]


class Kafka(Section):
    """The broker."""

    bootstrap: (
        Annotated[str, Field(pattern=r"^[^\s,]+:\d{1,5}(\s*,\s*[^\s,]+:\d{1,5})*$")] | None
    ) = Field(
        default=None,
        description="brokers to begin with, HOST:PORT,HOST:PORT; embedded runs one of its "
        "own without it",
    )
    topic_msg: TopicName = Field(default="msg", description="topic of every change, in order")
    topic_schd: TopicName = Field(default="schd", description="topic of each flight's last state")
    topic_position: TopicName = Field(
        default="msgexchange-position",
        description="exactly-once: topic whose committed offsets say what is published; one "
        "partition, compacted",
    )
    topic_probe: TopicName = Field(
        default="msgexchange-probe",
        description="exactly-once: scratch topic on which a cluster must show, before its first "
        "use, that it hides aborted records and shuts out old producers",
    )
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,100}$")] = Field(
        default="",
        description="put before the topics' names and before the names the broker knows us "
        "by; shadow- in shadow",
    )
    delivery: Delivery = Field(
        default=Delivery.AT_LEAST_ONCE,
        description="exactly-once (default in production) or at-least-once (default elsewhere)",
    )
    create_topics: bool = Field(
        default=False, description="create missing topics at start; true in embedded"
    )
    message_timeout: Duration = Field(
        default=timedelta(seconds=10),
        ge=timedelta(seconds=1),
        lt=timedelta(seconds=15),
        description="longest wait for a record's acknowledgement",
    )
    client: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        repr=False,
        description="further settings of the Kafka client by its own names, such as "
        '"security.protocol"; none that weakens the producer. In a variable: '
        "MSGEXCHANGE_KAFKA__CLIENT__SECURITY_PROTOCOL",
    )

    @property
    def msg_topic(self) -> str:
        """Full name of the topic of changes."""
        return self.prefix + self.topic_msg

    @property
    def schd_topic(self) -> str:
        """Full name of the topic of states."""
        return self.prefix + self.topic_schd

    @property
    def position_topic(self) -> str:
        """Full name of the topic of positions."""
        return self.prefix + self.topic_position

    @property
    def probe_topic(self) -> str:
        """Full name of the scratch topic."""
        return self.prefix + self.topic_probe

    def client_name(self, store_id: str, target: str) -> str:
        """Transactional id and group of one target of one store: another instance has others."""
        return f"{self.prefix or 'msgexchange-'}{store_id}-{target}"
