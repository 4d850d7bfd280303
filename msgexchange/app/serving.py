"""The pipeline and the HTTP interface in one process, put together (spec 6.1)."""

import os
import socket
from collections.abc import Sequence
from typing import TextIO

from prometheus_client import CollectorRegistry, ProcessCollector

from msgexchange.app.adapters import Adapters, open_adapters
from msgexchange.app.addresses import BOOTSTRAP_FILE, URL_FILE, AddressFiles
from msgexchange.app.candidacy import Candidacy
from msgexchange.app.desks import admin_desk
from msgexchange.app.duties import open_history
from msgexchange.app.health import HealthWatch
from msgexchange.app.steps import Steps, step_rule
from msgexchange.app.traces import open_export, tracing
from msgexchange.clock import AnchoredClock, SystemClock
from msgexchange.config import ConfigError, Problem, Profile, Settings
from msgexchange.config.runtime import LogFormat
from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from msgexchange.pipeline.entry import Entry
from msgexchange.pipeline.first_start import begin_intake
from msgexchange.pipeline.leadership import Right
from msgexchange.pipeline.site_check import Check, SiteCheck
from msgexchange.ports import Dependency, PortError, Refused, RetryNow, Unavailable
from msgexchange.telemetry.gauges import ProcessGauges, StoreGauges
from msgexchange.telemetry.instruments import Instruments
from msgexchange.telemetry.journal import Journal
from msgexchange.telemetry.logs import start_logging
from msgexchange.web.app import create_app
from msgexchange.web.deps import WebDeps
from msgexchange.web.server import RunningServer, start


class Serving:
    """A running msgexchange: adapters, pipeline, HTTP; ``batch_max`` as ``Steps`` take it."""

    def __init__(self, settings: Settings, *, log: TextIO, batch_max: int | None = None) -> None:
        self.settings = settings
        self._batch_max = batch_max
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._instruments = Instruments(self.registry)
        self._stop_logging = start_logging(
            level=settings.telemetry.log_level,
            as_json=_as_json(settings.telemetry.log_format, log),
            sink=log,
            dropped=lambda: self._instruments.count("log_lines_dropped", 1, {}),
        )
        self.owner = _owner()
        self.adapters: Adapters = open_adapters(settings, owner=self.owner)
        mailbox = self.adapters.mailbox
        # Nothing durable is written before ``open`` has asked the database for its time.
        self.clock = AnchoredClock(SystemClock().now())
        self.journal = Journal(self._instruments, self.clock)
        self.registry.register(
            StoreGauges(self.adapters.store.reads.counts, mailbox.newest_id, self.clock)
        )
        self._export = open_export(settings, os.environ, instance=self.owner)
        self._tracing = tracing(settings, self._export, self.clock)
        self._started = False
        self._waits_for: PortError | None = Unavailable(Dependency.STORE, "it was not asked yet")
        self._told_to_wait = False
        self._site_check = SiteCheck(
            [
                self._at_start(self.adapters.prepare_topics),
                self._at_start(mailbox.check),
                self._at_start(self.adapters.check_outbound),
            ],
            self.journal,
        )
        self.candidacy = Candidacy(
            settings,
            owner=self.owner,
            store=self.adapters.store.leader,
            open_steps=self._open_steps,
            calls={
                Dependency.STORE: self.adapters.store.reads.probe,
                Dependency.MAILBOX: mailbox.newest_id,
                Dependency.BROKER: self.adapters.probe_broker,
            },
            site_check=self._site_check,
            clock=self.clock,
            telemetry=self.journal,
            took_over=lambda: self._write_addresses(as_leader=True),
        )
        self.registry.register(
            ProcessGauges(
                fence=lambda: self.candidacy.leadership.fence,
                lease=self.adapters.store.reads.leadership,
                breakers=self.candidacy.breakers,
                clock=self.clock,
            )
        )
        self._address_files = AddressFiles(settings.data_dir, self.owner)
        self.entry = Entry(
            mailbox=mailbox,
            store=self.adapters.store.intake,
            clock=self.clock,
            telemetry=self.journal,
            wake_inbox=lambda: self.candidacy.ring("inbox"),
            waits_for=lambda: self._waits_for,
            tracing=self._tracing,
        )
        self._server: RunningServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    def begin(self) -> bool:
        """Open the store and, where ``pipeline.autostart`` says so, start the pipeline.

        False while something that needs is down: health tells, and it is to be tried again.
        ``ConfigError`` or ``StartAfterMissing`` for what no waiting cures.
        """
        try:
            if self.settings.pipeline.autostart:
                self.start_pipeline()
            else:
                self.open()
        except Refused as refusal:
            raise _refused(self.settings, refusal) from refusal
        except (Unavailable, RetryNow) as outage:
            if not self._told_to_wait:
                self.journal.alert("start-waits", f"{outage}; the start goes on once it is there")
            self._told_to_wait = True
            self._waits_for = outage
            return False
        return True

    def open(self) -> None:
        """The own store is at head from here on, time is its time, and messages are taken in."""
        self._open_store()
        self._waits_for = None

    def _open_store(self) -> None:
        self.adapters.prepare_store()
        asked_at_s = self.clock.monotonic()
        self.clock.anchor(self.adapters.store.leader.database_now(), asked_at_s, jump=True)

    def start_pipeline(self) -> None:
        """As ``open``, and begin to wait for leadership; whoever has it runs the actors."""
        self._open_store()
        self._site_check.step()
        begin_intake(
            self.adapters.store.intake,
            self.adapters.mailbox,
            start_after=_start_after(self.settings),
            clock=self.clock,
            step_rule=step_rule(self.settings),
        )
        self._started = True
        self._waits_for = None
        self.candidacy.start()

    def _open_steps(self, fence: Fence, right: Right) -> Steps:
        return Steps(
            self.settings,
            self.adapters,
            clock=self.clock,
            telemetry=self.journal,
            fence=fence,
            right=right,
            info=self.adapters.store.leader.info(),
            ring=self.candidacy.ring,
            green_at_s=lambda dependency: self.candidacy.probes[dependency].green_at_s,
            batch_max=self._batch_max,
            tracing=self._tracing,
        )

    def _at_start(self, check: Check) -> Check:
        """What a site lacks ends the start of the pipeline; a running one is not stopped for it."""

        def checked() -> Sequence[str]:
            try:
                return check()
            except Refused as refusal:
                if self._started:
                    raise
                raise _refused(self.settings, refusal) from refusal
            except ConfigError as refusal:
                if not self._started:
                    raise
                return [str(problem) for problem in refusal.problems]

        return checked

    def start_http(self) -> None:
        """Bind and answer; the address goes to ``http.url`` in the data folder."""
        settings = self.settings
        reads = self.adapters.store.reads
        history = open_history(settings, self.adapters.store)
        watch = HealthWatch(
            settings,
            self.candidacy,
            started=lambda: self._started,
            kafka_bootstrap=self.adapters.embedded_bootstrap,
        )
        token = settings.http.send_token
        deps = WebDeps(
            reads=reads,
            written_lives=(lambda _flid: []) if history is None else history.lives,
            entry=self.entry,
            health=watch.look,
            metrics=self.registry,
            timezone=settings.site.timezone.key,
            topics={Target.MSG: settings.kafka.msg_topic, Target.SCHD: settings.kafka.schd_topic},
            reference_types=frozenset(self.adapters.catalogue.references),
            send_token=token.get_secret_value() if token else None,
            body_bytes_max=settings.http.body_max,
            now=self.clock.now,
            is_shadow=settings.profile is Profile.SHADOW,
            jaeger_url=settings.telemetry.jaeger_url,
            admin=admin_desk(
                settings,
                self.adapters.store,
                self.adapters.catalogue,
                self.adapters.mailbox,
                wake_sender=lambda: self.candidacy.ring("dispatcher-out"),
            ),
        )
        self._server = start(
            create_app(deps),
            settings.http.host,
            settings.http.port,
            workers=settings.http.workers,
            body_bytes_max=settings.http.body_max,
            request_timeout_s=settings.http.request_timeout.total_seconds(),
        )
        self._write_addresses(as_leader=self.candidacy.leadership.fence is not None)

    def stop(self) -> bool:
        """Leadership and actors first, so that a standby takes over; False if one did not end."""
        ended = self.candidacy.stop()
        if self._server is not None:
            self._server.stop()
            self._address_files.remove()
        self.adapters.close()
        if self._export is not None:
            self._export.close()
        self._stop_logging()
        return ended

    def _addresses(self) -> dict[str, str]:
        """What a shared data folder should say of this process.

        An embedded broker holds what was sent since this process leads, no more.
        """
        addresses = {}
        if self.adapters.embedded_bootstrap is not None:
            since = self.clock.now().isoformat()
            addresses[BOOTSTRAP_FILE] = f"{self.adapters.bootstrap} {since}"
        return {**addresses, URL_FILE: self.url}

    def _write_addresses(self, *, as_leader: bool) -> None:
        """Where HTTP starts and where leadership comes, which may be the same moment.

        A folder that takes no file costs people a look into the log, never the leadership.
        """
        if self._server is None:
            return
        try:
            self._address_files.write(self._addresses(), as_leader=as_leader)
        except OSError as error:
            self.journal.alert("addresses", f"the data folder takes no address file: {error}")


def _as_json(wanted: LogFormat, log: TextIO) -> bool:
    if wanted is LogFormat.AUTO:
        return not log.isatty()
    return wanted is LogFormat.JSON


def _refused(settings: Settings, refusal: Refused) -> ConfigError:
    key = f"{refusal.dependency.value}.url"
    fix = "set what lets this process in"
    return ConfigError([Problem(key, settings.origin(key), refusal.reason, fix)])


def _start_after(settings: Settings) -> str | None:
    start_after = settings.mailbox.start_after
    return None if start_after is None else str(start_after)


def _owner() -> str:
    """A name no other process start has; host and pid are for people."""
    host = "".join(c for c in socket.gethostname() if c.isascii() and c.isalnum())[:16]
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}"
