"""What the values say together: each is fine alone, and still it must not start (spec 6.2)."""

from collections.abc import Iterator

from pydantic import SecretStr

from msgexchange.broker.settings import refusals
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import default_catalogue, load, problems
from msgexchange.config.adapters import Delivery
from msgexchange.config.dsn import is_embedded, same_place
from msgexchange.config.keys import KEYS
from msgexchange.config.problem import Problem
from msgexchange.config.sections import HistoryStore
from msgexchange.config.settings import Profile, Settings
from msgexchange.lifecycle.answer import MatchBy

_ALL_INTERFACES = frozenset({"0.0.0.0", "::", "[::]", "*", "0"})  # noqa: S104 - what is refused


def contradictions(settings: Settings) -> Iterator[Problem]:
    """Every problem that only several settings together, or the profile, make one."""
    yield from _within(settings)
    yield from _catalogue(settings)
    yield from _weak_producer(settings)
    yield from _same_database(settings)
    if (
        settings.kafka.delivery is Delivery.EXACTLY_ONCE
        and settings.profile is Profile.EMBEDDED
        and settings.kafka.bootstrap is None
    ):
        yield _problem(
            settings,
            "kafka.delivery",
            "the embedded broker cannot deliver exactly once: it does not hide aborted records",
            'set kafka.bootstrap to a real broker, or leave it at "at-least-once"',
        )
    if settings.profile is not Profile.EMBEDDED:
        yield from _missing(settings)
    if settings.profile is Profile.PRODUCTION:
        yield from _undecided(settings)
        yield from _embedded_adapters(settings)
        yield from _open_to_all(settings)
    if settings.profile is Profile.SHADOW and not settings.kafka.prefix:
        yield _problem(
            settings,
            "kafka.prefix",
            "a shadow run would write to the real topics",
            'set a prefix such as "shadow-"',
        )


def _catalogue(settings: Settings) -> Iterator[Problem]:
    file = settings.codec.catalogue
    if file is None:
        yield from _asking(settings, default_catalogue())
        return
    fix = "name a usable file, see `run.py catalogue check`; or leave it out for the shipped one"
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        found = problems(text)
    except (OSError, UnicodeDecodeError) as error:
        found = [f"cannot be read: {error}"]
    for what in found:
        yield _problem(settings, "codec.catalogue", what, fix)
    if not found:
        yield from _asking(settings, load(text))


def _asking(settings: Settings, catalogue: Catalogue) -> Iterator[Problem]:
    if settings.requests.match is MatchBy.ECHO and catalogue.envelope.answer_echo is None:
        yield _problem(
            settings,
            "requests.match",
            "is echo, and the catalogue does not say where an answer echoes its request",
            "set answer_echo under [envelope] of the catalogue, or set kind",
        )
    unknown = sorted(set(settings.requests.reference_types) - set(catalogue.references))
    if unknown:
        yield _problem(
            settings,
            "requests.reference-types",
            f"has {', '.join(unknown)}, which the catalogue does not know",
            "name types of the catalogue, see `run.py catalogue show`",
        )


def _problem(settings: Settings, key: str, what: str, fix: str) -> Problem:
    return Problem(key, settings.origin(key), what, fix)


def _within(settings: Settings) -> Iterator[Problem]:
    mailbox, pipeline, store = settings.mailbox, settings.pipeline, settings.store
    accepted = mailbox.processed_values
    if mailbox.processed_value is not None and mailbox.processed_value not in accepted:
        yield _problem(
            settings,
            "mailbox.processed-value",
            "is none of mailbox.processed-values",
            f"set one of {', '.join(accepted)}, or add it there if the owner accepts it",
        )
    if mailbox.processed_value in mailbox.unprocessed_values:
        yield _problem(
            settings,
            "mailbox.unprocessed-values",
            "contains mailbox.processed-value: a marked row could not be told",
            "leave the processed value out of it",
        )
    step, offset = mailbox.inbound.id_step, mailbox.inbound.id_offset
    if offset is not None and (step is None or offset > step):
        yield _problem(
            settings,
            "mailbox.inbound.id-offset",
            "means something only with an id-step that is not smaller",
            "set mailbox.inbound.id-step as the server has it, or leave both out",
        )
    if settings.history.discard and settings.history.store is not HistoryStore.NONE:
        yield _problem(
            settings,
            "history.discard",
            "contradicts history.store, which keeps past flights",
            'leave it out, or set history.store = "none"',
        )
    for smaller, value, larger, limit in (
        (
            "pipeline.poll-interval-busy",
            pipeline.poll_interval_busy,
            "pipeline.poll-interval",
            pipeline.poll_interval,
        ),
        ("pipeline.backoff", pipeline.backoff, "pipeline.backoff-cap", pipeline.backoff_cap),
        (
            "store.lock-timeout",
            store.lock_timeout,
            "store.statement-timeout",
            store.statement_timeout,
        ),
    ):
        if value > limit:
            yield _problem(
                settings, smaller, f"is longer than {larger}", f"set it to at most {larger}"
            )


def _weak_producer(settings: Settings) -> Iterator[Problem]:
    for refusal in refusals(settings.kafka.client):
        key = f"kafka.client.{refusal.name}"
        yield Problem(key, settings.origin(key), refusal.what, refusal.fix)


def _same_database(settings: Settings) -> Iterator[Problem]:
    store, mailbox = settings.store.url, settings.mailbox.url
    if store is not None and mailbox is not None and same_place(store, mailbox):
        yield _problem(
            settings,
            "mailbox.url",
            "is the own database: the mailbox is another team's",
            "set the mailbox's own DSN",
        )


def _missing(settings: Settings) -> Iterator[Problem]:
    fixes = {
        "store.url": "set the DSN of the own PostgreSQL",
        "mailbox.url": "set the DSN of the mailbox's MySQL",
        "mailbox.start-after": "set the id after which to begin, oldest or newest",
    }
    if settings.profile is Profile.PRODUCTION:
        fixes["kafka.bootstrap"] = "set HOST:PORT of the brokers"
        fixes["mailbox.processed-value"] = "set the mark that the mailbox's owner expects"
        fixes["requests.match"] = (
            "set echo, or kind if the site accepts that answers are matched approximately"
        )
    for key, fix in fixes.items():
        if KEYS[key].value(settings) is None:
            what = f"is missing, and profile {settings.profile.value} has no default for it"
            yield _problem(settings, key, what, f"{fix} ({_how(key)})")


def _undecided(settings: Settings) -> Iterator[Problem]:
    if settings.origin("history.store") == "default" and not settings.history.discard:
        yield _problem(
            settings,
            "history.store",
            "is not chosen, and profile production has no default for it",
            "set table or files, where past flights are written before they are deleted; or none, "
            f"which keeps every flight for ever ({_how('history.store')})",
        )


def _how(key: str) -> str:
    variable = KEYS[key].variable
    return f"{variable}, or {variable}_FILE naming a file" if KEYS[key].is_secret else variable


def _embedded_adapters(settings: Settings) -> Iterator[Problem]:
    dsns: dict[str, tuple[SecretStr | None, str]] = {
        "store.url": (settings.store.url, "postgresql://USER:PASSWORD@HOST/DATABASE"),
        "mailbox.url": (settings.mailbox.url, "mysql://USER:PASSWORD@HOST/DATABASE"),
    }
    for key, (dsn, form) in dsns.items():
        if dsn is not None and is_embedded(dsn):
            what = "an embedded database is not for production"
            yield _problem(settings, key, what, f"set {form}")


def _open_to_all(settings: Settings) -> Iterator[Problem]:
    if settings.http.host in _ALL_INTERFACES and settings.http.send_token is None:
        yield _problem(
            settings,
            "http.host",
            "listens on all interfaces, and whoever reaches it may send",
            f"set http.send-token ({_how('http.send-token')}), or listen on 127.0.0.1",
        )
