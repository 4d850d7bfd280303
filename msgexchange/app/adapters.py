"""Adapters from settings: own store, mailbox, broker; opened together, closed together."""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random  # noqa: TID251 - the root hands randomness in

from sqlalchemy.engine import URL, make_url

from msgexchange.broker.cluster_probe import ClusterProbe
from msgexchange.broker.embedded import EmbeddedBroker
from msgexchange.broker.producer import KafkaRecordProducer
from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.broker.settings import ClientSettings, ProducerBounds, unknown_to_client
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.broker.transactions import KafkaTransactions
from msgexchange.clock import Clock, SystemClock
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import default_catalogue, load
from msgexchange.config import ConfigError, Problem, Profile, Settings
from msgexchange.config.adapters import Delivery
from msgexchange.lifecycle.gap import EvidenceUse
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.outbound import (
    OutColumnMap,
    open_mysql_outbound,
    open_sqlite_outbound,
)
from msgexchange.mailbox.probe import MysqlGapProbe
from msgexchange.mailbox.read_only import ReadOnlyMailbox
from msgexchange.mailbox.sqlite import open_sqlite_mailbox
from msgexchange.ports import DeliveryStopped, Mailbox, RecordProducer, TransactionProducer
from msgexchange.ports.outbound import OutMailbox
from msgexchange.store.engine import LEASE_WAITS, Waits, open_engine
from msgexchange.store.schema import at_head, upgrade
from msgexchange.store.sql_store import SqlStore

LEASE_CONNECTIONS = 2


@dataclass(frozen=True, slots=True)
class TopicContents:
    """A topic read back; ``complete`` False when the broker has removed its oldest records."""

    records: Sequence[StoredRecord]
    starts: Mapping[int, int]

    @property
    def complete(self) -> bool:
        return not any(self.starts.values())


class Adapters:
    """Everything that talks to the outside."""

    def __init__(
        self,
        settings: Settings,
        *,
        catalogue: Catalogue,
        store: SqlStore,
        mailbox: Mailbox,
        embedded: EmbeddedBroker | None,
    ) -> None:
        self._settings = settings
        self._embedded = embedded
        self._clock: Clock = SystemClock()
        self.catalogue = catalogue
        self.store = store
        self.mailbox = mailbox

    @property
    def embedded_bootstrap(self) -> str | None:
        """Address of the embedded broker, None where the site has its own."""
        return None if self._embedded is None else self._embedded.bootstrap

    @property
    def bootstrap(self) -> str:
        bootstrap = self.embedded_bootstrap or self._settings.kafka.bootstrap
        assert bootstrap is not None
        return bootstrap

    def prepare_store(self) -> None:
        """The own store at head, as ``prepare_store`` below."""
        prepare_store(self._settings, self.store)

    def open_producer(self, topic: str) -> RecordProducer:
        """A producer of one topic; for one thread, nothing connects before its first call."""
        kafka = self._settings.kafka
        return KafkaRecordProducer(
            self.bootstrap,
            topic,
            clock=self._clock,
            settings=kafka.client,
            bounds=self._bounds(),
        )

    def open_transactions(self, topic: str, target: str, store_id: str) -> TransactionProducer:
        """The producer of one target whose windows are transactions; for one thread."""
        kafka = self._settings.kafka
        return KafkaTransactions(
            self.bootstrap,
            topic,
            name=kafka.client_name(store_id, target),
            position_topic=kafka.position_topic,
            clock=self._clock,
            prove=self._cluster_probe(store_id).prove,
            settings=kafka.client,
            bounds=self._bounds(),
        )

    def open_probe(self) -> MysqlGapProbe | None:
        """A lock probe of the mailbox, None where it is off or the mailbox has no such locks."""
        settings = self._settings
        wanted = settings.pipeline.gap_evidence is not EvidenceUse.OFF
        url = mailbox_url(settings)
        if not wanted or settings.profile is Profile.SHADOW or is_sqlite(url):
            return None
        return MysqlGapProbe(url, inbound_columns(settings))

    def open_outbound(self) -> OutMailbox:
        """The table of our requests; for one thread. Not to be opened in a shadow run."""
        settings = self._settings
        assert settings.profile is not Profile.SHADOW
        url = mailbox_url(settings)
        if is_sqlite(url):
            return open_sqlite_outbound(mailbox_file(settings), outbound_columns(settings))
        return open_mysql_outbound(url, outbound_columns(settings))

    def check_outbound(self) -> Sequence[str]:
        """What is wrong or doubtful about that table."""
        if self._settings.profile is Profile.SHADOW:
            return ()
        outbound = self.open_outbound()
        try:
            return outbound.check()
        finally:
            outbound.close()

    def probe_broker(self) -> None:
        """A metadata round trip; raises ``Unavailable``."""
        self._topics().missing(topic_needs(self._settings))

    def prepare_topics(self) -> Sequence[str]:
        """Create missing topics where that is allowed; what is doubtful about them then.

        ``ConfigError`` where production lacks a topic.
        """
        needs = topic_needs(self._settings)
        topics = self._topics()
        if self._settings.kafka.create_topics and self._embedded is None:
            topics.create(topics.missing(needs))
        missing = topics.missing(needs)
        if missing and self._settings.profile is Profile.PRODUCTION:
            raise ConfigError(
                Problem(
                    "kafka",
                    self._settings.origin("kafka.create-topics"),
                    f"topic {need.name} does not exist",
                    "create it, or set kafka.create-topics",
                )
                for need in missing
            )
        doubts = topics.check(needs, record_bytes_max=ProducerBounds().record_bytes_max)
        if self._is_exactly_once and not missing:
            self._prove_cluster()
        return doubts

    def close(self) -> None:
        self.mailbox.close()
        self.store.close()
        if self._embedded is not None:
            self._embedded.close()

    @property
    def _is_exactly_once(self) -> bool:
        return self._settings.kafka.delivery is Delivery.EXACTLY_ONCE

    def _prove_cluster(self) -> None:
        """``ConfigError`` where the cluster cannot do what kafka.delivery asks for."""
        try:
            self._cluster_probe(self.store.leader.info().store_id).prove()
        except DeliveryStopped as refusal:
            origin = self._settings.origin("kafka.delivery")
            fix = 'use a broker with transactions, or set kafka.delivery = "at-least-once"'
            raise ConfigError([Problem("kafka.delivery", origin, refusal.reason, fix)]) from refusal

    def _cluster_probe(self, store_id: str) -> ClusterProbe:
        kafka = self._settings.kafka
        return ClusterProbe(
            self.bootstrap,
            name=kafka.client_name(store_id, "cluster"),
            scratch_topic=kafka.probe_topic,
            position_topic=kafka.position_topic,
            token=lambda: secrets.token_hex(8),
            settings=kafka.client,
            bounds=self._bounds(),
        )

    def _bounds(self) -> ProducerBounds:
        timeout = self._settings.kafka.message_timeout
        return ProducerBounds(message_timeout_s=timeout.total_seconds())

    def _topics(self) -> Topics:
        return Topics(self.bootstrap, settings=self._settings.kafka.client)


def read_topic(bootstrap: str, topic: str, client: ClientSettings) -> TopicContents:
    """Every committed record the broker still has."""
    reader = TopicReader(bootstrap, topic, settings=client)
    try:
        starts = reader.starts()
        return TopicContents(list(reader.records()), starts)
    finally:
        reader.close()


def topic_needs(settings: Settings) -> Sequence[TopicNeed]:
    """The topics that are written to."""
    kafka = settings.kafka
    needs = [
        TopicNeed(name=kafka.msg_topic, compacted=False),
        TopicNeed(name=kafka.schd_topic, compacted=True),
    ]
    if kafka.delivery is Delivery.EXACTLY_ONCE:
        needs += [
            TopicNeed(name=kafka.position_topic, compacted=True, partitions=1, keeps_flights=False),
            TopicNeed(name=kafka.probe_topic, compacted=False, partitions=1, keeps_flights=False),
        ]
    return needs


def open_adapters(settings: Settings, *, owner: str) -> Adapters:
    """Open all for the process called ``owner``; own database and site are not asked yet.

    Raises ``ConfigError`` for what only opening shows.
    """
    _check_client(settings)
    catalogue = open_catalogue(settings)
    opened: list[Callable[[], None]] = []
    try:
        store = connect_store(settings, catalogue, owner=owner)
        opened.append(store.close)
        mailbox = open_mailbox(settings)
        opened.append(mailbox.close)
        topics = [need.name for need in topic_needs(settings)]
        embedded = EmbeddedBroker(topics) if settings.kafka.bootstrap is None else None
        return Adapters(
            settings, catalogue=catalogue, store=store, mailbox=mailbox, embedded=embedded
        )
    except BaseException:
        for close in reversed(opened):
            close()
        raise


def _check_client(settings: Settings) -> None:
    """Refused here, not by the first actor that connects."""
    given = settings.kafka.client
    said = unknown_to_client(given)
    if said is not None:
        alone = (name for name in given if unknown_to_client({name: given[name]}) is not None)
        name = next(alone, None)
        key = "kafka.client" if name is None else f"kafka.client.{name}"
        raise ConfigError(
            [Problem(key, settings.origin(key), said, "use the names of librdkafka's settings")]
        )


def open_catalogue(settings: Settings) -> Catalogue:
    """The site's catalogue, which the settings were checked with, or the shipped one."""
    file = settings.codec.catalogue
    return default_catalogue() if file is None else load(file.read_text(encoding="utf-8"))


def open_store(settings: Settings, catalogue: Catalogue) -> SqlStore:
    """The own store at head."""
    store = connect_store(settings, catalogue)
    try:
        prepare_store(settings, store)
    except BaseException:
        store.close()
        raise
    return store


def prepare_store(settings: Settings, store: SqlStore) -> None:
    """The embedded store is brought to head; another must be there already, or ``ConfigError``.

    ``Unavailable`` while the own database is down.
    """
    if at_head(store.engine):
        return
    if settings.profile is not Profile.EMBEDDED:
        what = "the schema is not of this version"
        raise _refused(settings, "store.url", what, "run.py store upgrade")
    migrate(settings, store)


def connect_store(settings: Settings, catalogue: Catalogue, *, owner: str = "") -> SqlStore:
    """The own store as it is; ``owner`` for a process that may lead."""
    assert settings.store.url is not None
    url = settings.store.url.get_secret_value()
    if settings.profile is Profile.EMBEDDED:
        make_data_dir(settings)
    waits = Waits(
        lock=settings.store.lock_timeout,
        statement=settings.store.statement_timeout,
        idle_in_transaction=settings.store.idle_timeout,
    )
    engine = open_engine(url, waits=waits, owner=owner)
    lease_engine = (
        open_engine(url, waits=LEASE_WAITS, connections_max=LEASE_CONNECTIONS, owner=owner)
        if owner
        else None
    )
    return SqlStore(engine, catalogue, nonce=_nonces(), lease_engine=lease_engine)


def _nonces() -> Callable[[], int]:
    """Random numbers below 2**62; seeded by the system once, as asking it for each takes longer
    than all the rest of an event's row.
    """
    source = Random(secrets.randbits(256))  # noqa: S311 - told apart by chance, not kept secret
    return lambda: source.getrandbits(62)


def make_data_dir(settings: Settings) -> None:
    """The data folder; ``ConfigError`` where it cannot be made."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            [
                Problem(
                    "--data-dir",
                    "command line",
                    f"the folder {settings.data_dir} cannot be made: {error.strerror}",
                    "name one that this user may write to",
                )
            ]
        ) from error


def migrate(settings: Settings, store: SqlStore) -> None:
    """Bring the schema to head; a new store gets a random id."""
    rule = "day" if settings.identity.include_day_boundary else "plain"
    upgrade(store.engine, store_id=os.urandom(8).hex(), identity_rule=rule)


def open_mailbox(settings: Settings) -> Mailbox:
    """The mailbox by its column map."""
    columns = inbound_columns(settings)
    url = mailbox_url(settings)
    if is_sqlite(url):
        file = mailbox_file(settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        return _as_allowed(settings, open_sqlite_mailbox(file, columns))
    return _as_allowed(settings, open_mysql_mailbox(url, columns))


def inbound_columns(settings: Settings) -> ColumnMap:
    """``mailbox.inbound.*`` and the mark's values."""
    inbound = settings.mailbox.inbound
    return ColumnMap(
        table=inbound.table,
        id=inbound.id_column,
        text=inbound.text_column,
        received=inbound.received_column,
        flag=inbound.flag_column,
        processed_time=inbound.processed_time_column,
        extra=inbound.extra_columns,
        processed=settings.mailbox.processed_value or "Y",
        unprocessed=settings.mailbox.unprocessed_values,
        id_step=inbound.id_step or 1,
    )


def outbound_columns(settings: Settings) -> OutColumnMap:
    """``mailbox.outbound.*``."""
    outbound = settings.mailbox.outbound
    return OutColumnMap(
        table=outbound.table,
        id=outbound.id_column,
        text=outbound.text_column,
        created=outbound.created_column,
        flag=outbound.flag_column,
        extra=outbound.extra_columns,
    )


def mailbox_url(settings: Settings) -> URL:
    """``mailbox.url``."""
    assert settings.mailbox.url is not None
    return make_url(settings.mailbox.url.get_secret_value())


def is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _as_allowed(settings: Settings, mailbox: Mailbox) -> Mailbox:
    """In a shadow run what could write to the mailbox is not even there."""
    return ReadOnlyMailbox(mailbox) if settings.profile is Profile.SHADOW else mailbox


def mailbox_file(settings: Settings) -> Path:
    """The embedded mailbox's file."""
    return Path(mailbox_url(settings).database or "")


def _refused(settings: Settings, key: str, what: str, command: str) -> ConfigError:
    return ConfigError([Problem(key, settings.origin(key), what, f"see `{command}`")])
