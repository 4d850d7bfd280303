"""What a fold goes by: the site's rules, and what the store says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.flight.past import SweepPolicy
from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import FlightState
from msgexchange.ids import Flid, Identity
from msgexchange.lifecycle.answer import AnswerPolicy
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import Holder, IdentityPolicy
from msgexchange.lifecycle.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpRules:
    """What a site configures of the decisions the pump takes."""

    identity: IdentityPolicy
    failure: FailurePolicy
    unknown_flight: UnknownFlight
    timezone: str
    plan_type: str = "SCHD"
    """TYPE of plans, by the catalogue's envelope."""
    sweep: SweepPolicy | None = None
    """When a flight makes way for a plan of another day (spec 5.4); None: never."""
    answers: AnswerPolicy = field(default_factory=AnswerPolicy)
    """Which answers are ours."""
    codec_version: str
    """Software version and catalogue fingerprint: who judged a kind as hopeless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the own database says, read under the locks."""

    holders: Mapping[Identity, Holder]
    flights: Mapping[Flid, FlightState]
    last_versions: Mapping[Flid, int]
    newest_plans: Mapping[date, datetime]
    exhausted_kinds: frozenset[tuple[str, str]]
    changed_at: Mapping[Flid, datetime] = field(default_factory=dict)
    """When each flight that clashes with a plan last changed."""
    references: Mapping[RecordKey, Record] = field(default_factory=dict)
    requests: Mapping[str, Request] = field(default_factory=dict)
    """Open requests by kind."""
