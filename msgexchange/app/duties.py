"""Daily jobs built from settings: what each does, and when (spec 5.4)."""

from collections.abc import Mapping
from datetime import time, timedelta

from msgexchange.clock import Clock
from msgexchange.config import Profile, Settings
from msgexchange.config.sections import HistoryStore as Chosen
from msgexchange.flight.past import SweepPolicy
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Fence
from msgexchange.lifecycle.daily import Daily
from msgexchange.pipeline.archive import Archive, ArchiveRules
from msgexchange.pipeline.daily import DailyJob, Duty
from msgexchange.pipeline.history_sweep import HistorySweep, SweepRules
from msgexchange.pipeline.jobs import Job
from msgexchange.pipeline.leaving import WayMaking
from msgexchange.pipeline.retention import Retention
from msgexchange.ports import HistoryStore, Kept, Telemetry, retention_job
from msgexchange.store.sql_store import SqlStore

SWEEP = "history-sweep"
ARCHIVE = "archive"


def schedules(settings: Settings) -> Mapping[str, Daily]:
    """Every daily job by name, with the time it is due, in the order of a day."""
    at: dict[str, time] = {
        SWEEP: settings.history.sweep_at,
        ARCHIVE: settings.archive.at,
        **{retention_job(kept): settings.retention.at for kept in Kept},
    }
    return {name: Daily(due, settings.site.timezone) for name, due in at.items()}


def open_history(settings: Settings, store: SqlStore) -> HistoryStore | None:
    """Where past flights are written; None where nobody keeps them."""
    match settings.history.store:
        case Chosen.TABLE:
            return store.history
        case Chosen.FILES:
            return HistoryFiles(settings.history.folder or settings.data_dir / "history")
        case Chosen.NONE:
            return None


def daily_jobs(
    settings: Settings, store: SqlStore, *, clock: Clock, fence: Fence, telemetry: Telemetry
) -> list[Job]:
    """The daily jobs of a leader."""
    duties: dict[str, Duty] = {
        SWEEP: HistorySweep(
            store=store.sweep,
            history=open_history(settings, store),
            clock=clock,
            fence=fence,
            rules=_sweep_rules(settings),
        ),
        ARCHIVE: Archive(
            store=store.archive,
            clock=clock,
            fence=fence,
            rules=ArchiveRules(
                after=settings.archive.after, marks=settings.profile is not Profile.SHADOW
            ),
        ),
        **{
            retention_job(kept): Retention(
                kept, keep_for=keep_for, store=store.retention, fence=fence
            )
            for kept, keep_for in _kept_for(settings).items()
        },
    }
    return [
        Job(
            name,
            DailyJob(
                name,
                duties[name],
                schedule=schedule,
                store=store.jobs,
                clock=clock,
                fence=fence,
                telemetry=telemetry,
            ),
        )
        for name, schedule in schedules(settings).items()
    ]


def leaves_by_plan(settings: Settings) -> SweepPolicy | None:
    """When a flight makes way for a plan of another day; None where no flight is ever swept."""
    history = settings.history
    if history.store is Chosen.NONE and not history.discard:
        return None
    return _sweep_policy(settings)


def way_making(settings: Settings, store: SqlStore) -> WayMaking:
    """What the pump writes to history before a flight makes way."""
    return WayMaking(open_history(settings, store))


def _sweep_rules(settings: Settings) -> SweepRules:
    return SweepRules(
        policy=_sweep_policy(settings),
        discards=settings.history.discard,
        timezone=settings.site.timezone.key,
    )


def _sweep_policy(settings: Settings) -> SweepPolicy:
    history = settings.history
    return SweepPolicy(
        retention_days=history.retention_days,
        silence=history.silence,
        terminal_stat=frozenset(history.terminal_stat),
        timezone=settings.site.timezone,
    )


def _kept_for(settings: Settings) -> Mapping[Kept, timedelta]:
    kept = settings.retention
    return {
        Kept.CHANGES: settings.history.change_retention,
        Kept.SENT_EVENTS: kept.sent_events,
        Kept.PLANS: kept.plans,
        Kept.AUDIT: kept.audit,
        Kept.ATTEMPTS: kept.attempts,
        Kept.GAPS: kept.gaps,
    }
