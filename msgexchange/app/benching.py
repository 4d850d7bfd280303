"""``bench``: the composition as the measurements drive it."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from prometheus_client import CollectorRegistry

from msgexchange.app.adapters import Adapters, open_adapters, open_catalogue, open_store
from msgexchange.app.adapters import open_mailbox as open_site_mailbox
from msgexchange.app.observing import Broker, Sources, observe, verify
from msgexchange.app.process import tune_interpreter
from msgexchange.app.serving import Serving
from msgexchange.app.steps import Opened, Steps
from msgexchange.bench.process import ServerMissing
from msgexchange.bench.profiling import Profile, profile
from msgexchange.bench.run import Bench, Measured, measure, steps
from msgexchange.bench.servers import servers
from msgexchange.bench.site import Site, Sites, WrongResult
from msgexchange.bench.sizes import SIZES
from msgexchange.cli.context import BenchOptions, Failure
from msgexchange.clock import SystemClock
from msgexchange.config import Settings, load
from msgexchange.ids import Fence
from msgexchange.pipeline.first_start import begin_intake
from msgexchange.pipeline.leadership import Right
from msgexchange.pipeline.step import Step
from msgexchange.telemetry.instruments import Instruments
from msgexchange.telemetry.journal import Journal

OWNER = "bench"
LEASE = timedelta(hours=1)
PROFILED = {"short": 4_000, "full": 20_000, "tiny": 60}


def bench(options: BenchOptions) -> Measured:
    """Measure on servers of its own; ``Failure`` where one is missing or a result is wrong."""
    tune_interpreter()
    size = SIZES[options.size]
    with _prepared() as (product, sites, said, folder):
        options.begin(steps(size, options.only))
        return measure(
            Bench(product, sites, size, folder), said=said, only=options.only, tell=options.tell
        )


def bench_profile(options: BenchOptions) -> Profile:
    """Where the time of a message goes; failures as with ``bench``."""
    tune_interpreter()
    with _prepared() as (product, sites, _, _):
        size = SIZES[options.size]
        return profile(product, sites, messages=PROFILED[options.size], flights=size.flights)


@contextmanager
def _prepared() -> "Iterator[tuple[_Product, Sites, dict[str, str], Path]]":
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory("-msgexchange-bench")))
            log = stack.enter_context((folder / "log").open("w", encoding="utf-8"))
            found = stack.enter_context(servers())
            sites = Sites(found)
            stack.callback(sites.close)
            yield _Product(folder, log), sites, dict(found.said), folder
    except (ServerMissing, WrongResult) as failure:
        raise Failure(str(failure)) from failure


class _Line:
    """Steps of one leader, opened once each, closed together."""

    def __init__(self, adapters: Adapters, steps: Steps) -> None:
        self.store = adapters.store
        self._steps = steps
        self._opened: dict[str, Opened] = {}

    def step(self, name: str) -> Step:
        if name not in self._opened:
            self._opened[name] = self._steps.open(name)
        return self._opened[name].step

    def close(self) -> None:
        for opened in self._opened.values():
            opened.close()


class _Running:
    """A ``Serving`` as measurements see it."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    @property
    def url(self) -> str:
        return self._serving.url

    def look(self) -> None:
        self._serving.candidacy.ring("inbox")


class _Product:
    """What is measured: the same composition that serves, on each round's site."""

    def __init__(self, folder: Path, log: TextIO) -> None:
        self._folder = folder
        self._log = log

    @contextmanager
    def line(self, site: Site) -> Iterator[_Line]:
        settings = self._settings(site)
        adapters = open_adapters(settings, owner=OWNER)
        try:
            adapters.prepare_topics()
            clock = SystemClock()
            begin_intake(
                adapters.store.intake,
                adapters.mailbox,
                start_after=str(settings.mailbox.start_after),
                clock=clock,
            )
            fence = adapters.store.leader.take_lease(OWNER, LEASE)
            assert fence is not None
            line = _Line(adapters, _steps(settings, adapters, clock, fence))
            try:
                yield line
            finally:
                line.close()
        finally:
            adapters.close()

    @contextmanager
    def running(
        self,
        site: Site,
        *,
        batch_max: int | None = None,
        works: bool = True,
        keeps_house: bool = False,
        traces_to: str | None = None,
    ) -> Iterator[_Running]:
        more = {"MSGEXCHANGE_HISTORY__STORE": "table"} if keeps_house else {}
        if traces_to is not None:
            more["MSGEXCHANGE_TELEMETRY__OTLP_ENDPOINT"] = traces_to
        settings = self._settings(site, more)
        serving = Serving(settings, log=self._log, batch_max=batch_max)
        try:
            if works:
                serving.start_pipeline()
            else:
                serving.open()
            serving.start_http()
            yield _Running(serving)
        finally:
            serving.stop()

    def violations(self, site: Site) -> Sequence[str]:
        settings = self._settings(site)
        catalogue = open_catalogue(settings)
        store = open_store(settings, catalogue)
        mailbox = open_site_mailbox(settings)
        try:
            broker = Broker(site.bootstrap, None)
            sources = Sources(catalogue=catalogue, store=store, mailbox=mailbox, broker=broker)
            verification = verify(observe(settings, sources))
        finally:
            mailbox.close()
            store.close()
        return [
            f"{name}: {violation.text}"
            for name, found in verification.found.items()
            for violation in found
        ]

    def _settings(self, site: Site, more: Mapping[str, str] | None = None) -> Settings:
        environ = {**site.environment, **(more or {})}
        return load(None, environ, None, self._folder / site.topics)


def _steps(settings: Settings, adapters: Adapters, clock: SystemClock, fence: Fence) -> Steps:
    right = Right(clock)
    right.extend(float("inf"))
    return Steps(
        settings,
        adapters,
        clock=clock,
        telemetry=Journal(Instruments(CollectorRegistry()), clock),
        fence=fence,
        right=right,
        info=adapters.store.leader.info(),
        ring=lambda *_names: None,
        green_at_s=lambda _dependency: float("-inf"),
    )
