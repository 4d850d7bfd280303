"""How this site asks the AODB, from its settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from msgexchange.clock import Clock
from msgexchange.codec.catalogue import Catalogue
from msgexchange.config import Profile, Settings
from msgexchange.ids import Fence, RequestId
from msgexchange.lifecycle.answer import AnswerPolicy
from msgexchange.lifecycle.daily import Daily
from msgexchange.lifecycle.request import ExpiryPolicy, PlanWanted, ReferenceWanted, Wanted
from msgexchange.pipeline.asking import AskingRules
from msgexchange.pipeline.asking_daily import AskDaily
from msgexchange.pipeline.daily import DailyJob
from msgexchange.pipeline.jobs import Job
from msgexchange.pipeline.request_watch import DoubledWatch, RequestTimeouts
from msgexchange.ports import Telemetry
from msgexchange.ports.outbound import OutMailbox
from msgexchange.store.sql_store import SqlStore

DAILY_PLAN = "daily-plan"
DAILY_REFERENCE = "daily-reference"


def asking_rules(settings: Settings, catalogue: Catalogue) -> AskingRules:
    """As whom, in which names, for which types."""
    return AskingRules(
        sender=settings.requests.sender,
        zone=settings.site.timezone,
        envelope=catalogue.envelope,
        reference_types=frozenset(catalogue.references),
        allowed=settings.profile is not Profile.SHADOW,
    )


def answer_policy(settings: Settings) -> AnswerPolicy:
    """Which answers are ours."""
    requests = settings.requests
    return AnswerPolicy(
        match=requests.match,
        accepts_foreign=requests.accept_foreign,
        clock_tolerance=requests.clock_tolerance,
        zone=settings.site.timezone,
        expiry=ExpiryPolicy(timeout=requests.timeout, resend=requests.resend),
    )


def new_request_id() -> RequestId:
    return RequestId(os.urandom(8).hex())


def request_schedules(settings: Settings) -> Mapping[str, Daily]:
    """When requests are made by the clock, by job; none where no time is set."""
    if settings.profile is Profile.SHADOW:
        return {}
    at: dict[str, time | None] = {
        DAILY_PLAN: settings.requests.daily_plan_at,
        DAILY_REFERENCE: settings.requests.reference_at,
    }
    zone = settings.site.timezone
    return {name: Daily(due, zone) for name, due in at.items() if due is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What looks after requests beside the sender."""

    settings: Settings
    catalogue: Catalogue
    store: SqlStore
    clock: Clock
    fence: Fence
    telemetry: Telemetry
    wake_sender: Callable[[], None]

    def jobs(self, outbound: OutMailbox) -> Sequence[Job]:
        """Timeouts, the look for doubled rows, and the schedule."""
        timeouts = RequestTimeouts(
            store=self.store.requests,
            clock=self.clock,
            fence=self.fence,
            policy=answer_policy(self.settings).expiry,
            rules=self._rules,
            new_request_id=new_request_id,
            telemetry=self.telemetry,
            wake_sender=self.wake_sender,
        )
        doubled = DoubledWatch(self.store.outbound, outbound, self.clock, self.telemetry)
        daily = [
            Job(name, self._daily(name, schedule))
            for name, schedule in request_schedules(self.settings).items()
        ]
        return [Job("request-timeouts", timeouts), Job("doubled-requests", doubled), *daily]

    def _daily(self, name: str, schedule: Daily) -> DailyJob:
        wanted = self._plan if name == DAILY_PLAN else self._references
        duty = AskDaily(
            wanted,
            store=self.store.requests,
            fence=self.fence,
            rules=self._rules,
            new_request_id=new_request_id,
            wake_sender=self.wake_sender,
        )
        return DailyJob(
            name,
            duty,
            schedule=schedule,
            store=self.store.jobs,
            clock=self.clock,
            fence=self.fence,
            telemetry=self.telemetry,
        )

    @property
    def _rules(self) -> AskingRules:
        return asking_rules(self.settings, self.catalogue)

    def _plan(self, local: datetime) -> Sequence[Wanted]:
        first = local.date()
        return [PlanWanted(first, first + timedelta(self.settings.requests.daily_plan_days - 1))]

    def _references(self, _local: datetime) -> Sequence[Wanted]:
        types = self.settings.requests.reference_types or sorted(self.catalogue.references)
        return [ReferenceWanted(type_) for type_ in types]
