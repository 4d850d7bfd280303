"""Settings of what msgexchange does itself."""

from datetime import time, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from msgexchange.codec.limits import DEPTH_CEILING, Limits
from msgexchange.config.section import Section
from msgexchange.config.values import Duration, Size, TimeOfDay
from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.lifecycle.answer import MatchBy
from msgexchange.lifecycle.gap import EvidenceUse
from msgexchange.lifecycle.request import DAYS_MAX

_MS = timedelta(milliseconds=1)
_S = timedelta(seconds=1)
_MIN = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MIB = 1 << 20


class Site(Section):
    """The airport."""

    timezone: ZoneInfo = Field(
        default=ZoneInfo("Asia/Shanghai"), description="the airport's IANA time zone"
    )
    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        default="msgexchange", description="what this site is called in traces and logs"
    )


class LatePolicy(StrEnum):
    """What a row below the watermark becomes."""

    DEAD = "dead"
    PROCESS = "process"


class Pipeline(Section):
    """Inbox, pump and marks."""

    poll_interval: Duration = Field(
        default=_S, ge=10 * _MS, le=_MIN, description="pause between looks at an idle mailbox"
    )
    poll_interval_busy: Duration = Field(
        default=20 * _MS, ge=_MS, le=_MIN, description="the same while rows keep coming"
    )
    claim_batch: int = Field(
        default=50, ge=1, le=1_000, description="rows taken in at once; grows under backlog"
    )
    batch: int = Field(
        default=50, ge=1, le=200, description="messages that share a commit; grows under backlog"
    )
    max_attempts: int = Field(
        default=5, ge=1, le=100, description="charged failures after which a message is dead"
    )
    backoff: Duration = Field(
        default=_S, ge=_MS, le=10 * _MIN, description="wait after the first charged failure"
    )
    backoff_cap: Duration = Field(
        default=_MIN, ge=_MS, le=60 * _MIN, description="longest wait between attempts"
    )
    head_deadline: Duration = Field(
        default=10 * _MIN,
        ge=_S,
        le=_DAY,
        description="after this long a head that fails again is dead",
    )
    max_commit_delay: Duration = Field(
        default=_MIN,
        ge=_S,
        le=60 * _MIN,
        description="how late the mailbox's writers may commit: a missing id older than this is "
        "given up. Too short: late rows are quarantined as LATE",
    )
    max_commit_delay_proven: Duration = Field(
        default=10 * _MIN,
        ge=_S,
        le=24 * 60 * _MIN,
        description="with gap-evidence: how long a missing id is waited for whose writer is "
        "proven to live",
    )
    gap_evidence: EvidenceUse = Field(
        default=EvidenceUse.OFF,
        description="ask the mailbox's locks whether a missing id has a living writer: off; extend "
        "(wait on while it has one); early (also give up after two empty looks 3 s apart: faster, "
        "and less safe). Needs the owner's consent",
    )
    late_watch: Duration = Field(
        default=_DAY,
        ge=_MIN,
        le=30 * _DAY,
        description="how long ids given up are looked for often (every 1 to 60 min); later daily",
    )
    overdue_backfill: Duration = Field(
        default=_DAY,
        ge=_MIN,
        le=30 * _DAY,
        description="R: when a terminal message must carry its mark",
    )
    backfill_batch: int = Field(
        default=500, ge=1, le=10_000, description="marks one sweep tries at once"
    )
    autostart: bool = Field(
        default=False, description="start the pipeline with the process; true in embedded"
    )
    late_policy: LatePolicy = Field(
        default=LatePolicy.DEAD,
        description="a row that shows up below the watermark: dead (LATE, a person decides) or "
        "process (out of order)",
    )


class Schd(Section):
    """The topic of states."""

    flush_period: Duration = Field(
        default=3 * _S, ge=10 * _MS, le=_MIN, description="pause between flushes"
    )
    flush_limit: int = Field(default=500, ge=1, le=10_000, description="flights of one flush")


class Flights(Section):
    """Flights."""

    unknown: UnknownFlight = Field(
        default=UnknownFlight.SKIP,
        description="an operation for a flight nobody announced: skip it, or create the flight",
    )


class Identity(Section):
    """Which two mailbox rows are the same message."""

    include_day_boundary: bool = Field(
        default=False,
        description="add the date of DTTM to the identity; not to be changed on a store in use",
    )
    reuse_after: Duration = Field(
        default=7 * _DAY,
        ge=60 * _MIN,
        le=3_650 * _DAY,
        description="after this long a SEQN may come back as a new message",
    )


class CodecLimits(Section):
    """How much of a message is read before it is refused."""

    text_max: Size = Field(
        default=64 * _MIB, ge=1, le=512 * _MIB, description="size of a text (MALFORMED above)"
    )
    depth_max: int = Field(
        default=32, ge=3, le=DEPTH_CEILING, description="nested elements (MALFORMED above)"
    )
    nodes_max: int = Field(
        default=Limits().nodes_max,
        ge=1,
        description="elements and attributes together (MALFORMED above)",
    )
    flights_max: int = Field(
        default=10_000, ge=1, le=100_000, description="flights of a plan (PROTOCOL above)"
    )
    records_max: int = Field(
        default=100_000,
        ge=1,
        le=1_000_000,
        description="records of a reference message (PROTOCOL above)",
    )
    items_max: int = Field(
        default=99, ge=1, le=10_000, description="items of a group (PROTOCOL above)"
    )
    value_characters_max: int = Field(
        default=4_000, ge=1, le=1_000_000, description="characters of a value (PROTOCOL above)"
    )


class Codec(Section):
    """The site's message dialect."""

    catalogue: Path | None = Field(
        default=None, description="the site's own catalogue file; the shipped one without it"
    )
    limits: CodecLimits = CodecLimits()


class Requests(Section):
    """Requests to the AODB, and which answers are theirs."""

    match: MatchBy | None = Field(
        default=None,
        description="how an answer is known as ours: echo (it carries our SEQN in the catalogue's "
        "answer_echo, exact) or kind (same kind, time and days fit: approximate, a risk the site "
        "accepts); kind in embedded and shadow, no default in production",
    )
    timeout: Duration = Field(
        default=10 * _MIN,
        ge=_S,
        le=_DAY,
        description="after this long without an answer a request is expired; an answer that was "
        "taken in later is not applied",
    )
    resend: int = Field(
        default=0,
        ge=0,
        le=10,
        description="how often an unanswered request is sent again, each time with a new SEQN",
    )
    clock_tolerance: Duration = Field(
        default=2 * _MIN,
        ge=timedelta(0),
        le=60 * _MIN,
        description="match kind: by how much the DTTM of an answer may be before its request was "
        "sent, as clocks differ",
    )
    sender: Annotated[str, Field(min_length=1, max_length=32, pattern=r"^\S+$")] = Field(
        default="MSGEXCHANGE", description="SNDR of our requests"
    )
    daily_plan_at: TimeOfDay | None = Field(
        default=None, description="when a plan is asked for every day; never without it"
    )
    daily_plan_days: int = Field(
        default=1,
        ge=1,
        le=DAYS_MAX,
        description="days that request covers, the day it is sent included",
    )
    reference_at: TimeOfDay | None = Field(
        default=None, description="when reference data is asked for every day; never without it"
    )
    reference_types: tuple[Annotated[str, Field(min_length=1, max_length=32)], ...] = Field(
        default=(), description="types asked for then; without any, all of the catalogue"
    )
    accept_foreign: bool = Field(
        default=False,
        description="apply plan and reference answers that another system asked for; for a "
        "cut-over; true in shadow",
    )


class HistoryStore(StrEnum):
    """Where swept flights are written."""

    NONE = "none"
    TABLE = "table"
    FILES = "files"


class History(Section):
    """Flights past their day."""

    store: HistoryStore = Field(
        default=HistoryStore.NONE,
        description="where flights past their day are written before they are deleted: none "
        "(nothing is deleted), table (FLIGHT_HST in the own database), files (history.folder); "
        "production must choose",
    )
    discard: bool = Field(
        default=False,
        description="with store none: delete past flights without writing them anywhere",
    )
    folder: Path | None = Field(
        default=None, description="folder of store files; history in the data folder without it"
    )
    sweep_at: TimeOfDay = Field(default=time(3, 30), description="when past flights are swept")
    retention_days: int = Field(
        default=3,
        ge=0,
        le=365,
        description="days a flight stays after its operation day; then it goes once it is deleted, "
        "cancelled, arrived, final or silent",
    )
    silence: Duration = Field(
        default=_DAY,
        ge=60 * _MIN,
        le=365 * _DAY,
        description="without a change for so long, a past flight goes whatever its status",
    )
    terminal_stat: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), description="values of STAT that say a flight is over"
    )
    change_retention: Duration = Field(
        default=90 * _DAY,
        ge=_DAY,
        le=3_650 * _DAY,
        description="how long it is known which message changed what",
    )


class Archive(Section):
    """Messages that are done with."""

    after: Duration = Field(
        default=7 * _DAY,
        ge=60 * _MIN,
        le=3_650 * _DAY,
        description="how long a terminal, marked message stays in the inbox before it moves to its "
        "archive",
    )
    at: TimeOfDay = Field(default=time(4), description="when messages are archived")


class Retention(Section):
    """How long rows are kept that nobody needs for ever."""

    at: TimeOfDay = Field(default=time(4, 30), description="when old rows are deleted")
    sent_events: Duration = Field(
        default=30 * _DAY,
        ge=_DAY,
        le=3_650 * _DAY,
        description="events that were sent; dead ones stay until they are redelivered",
    )
    plans: Duration = Field(
        default=90 * _DAY,
        ge=_DAY,
        le=3_650 * _DAY,
        description="the log of received plans",
    )
    audit: Duration = Field(
        default=730 * _DAY,
        ge=30 * _DAY,
        le=3_650 * _DAY,
        description="what people did",
    )
    attempts: Duration = Field(
        default=90 * _DAY,
        ge=_DAY,
        le=3_650 * _DAY,
        description="failed attempts of messages",
    )
    gaps: Duration = Field(
        default=180 * _DAY,
        ge=91 * _DAY,
        le=3_650 * _DAY,
        description="rows of the gap ledger that are looked at no more",
    )
