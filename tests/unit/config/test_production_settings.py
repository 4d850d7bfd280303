"""What production and shadow refuse, and how secrets are kept."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest

from msgexchange.config import ConfigError, Settings, load
from msgexchange.config.adapters import Delivery
from msgexchange.lifecycle.answer import MatchBy

GOOD = {
    "MSGEXCHANGE_PROFILE": "production",
    "MSGEXCHANGE_STORE__URL": "postgresql://me:pw-own@db/msgexchange",
    "MSGEXCHANGE_MAILBOX__URL": "mysql://me:pw-mail@mail/mailbox",
    "MSGEXCHANGE_MAILBOX__PROCESSED_VALUE": "Y",
    "MSGEXCHANGE_MAILBOX__START_AFTER": "oldest",
    "MSGEXCHANGE_KAFKA__BOOTSTRAP": "k1:9092, k2:9092",
    "MSGEXCHANGE_HISTORY__STORE": "table",
    "MSGEXCHANGE_REQUESTS__MATCH": "kind",
}


def settings_of(environ: Mapping[str, str], file: Path | None = None) -> Settings:
    return load(file, environ, None, Path("data"))


def problems_of(environ: Mapping[str, str], file: Path | None = None) -> dict[str, str]:
    with pytest.raises(ConfigError) as failure:
        settings_of(environ, file)
    return {problem.key: str(problem) for problem in failure.value.problems}


def test_a_complete_production_site_starts_with_the_pipeline_off() -> None:
    settings = settings_of(GOOD)
    assert not settings.pipeline.autostart
    assert not settings.kafka.create_topics


def test_production_lists_everything_it_misses() -> None:
    found = problems_of({"MSGEXCHANGE_PROFILE": "production"})
    assert set(found) == {
        "store.url",
        "mailbox.url",
        "mailbox.processed-value",
        "mailbox.start-after",
        "kafka.bootstrap",
        "history.store",
        "requests.match",
    }
    assert "MSGEXCHANGE_STORE__URL_FILE" in found["store.url"]


def test_production_delivers_exactly_once_unless_told_otherwise() -> None:
    assert settings_of(GOOD).kafka.delivery is Delivery.EXACTLY_ONCE
    weaker = {**GOOD, "MSGEXCHANGE_KAFKA__DELIVERY": "at-least-once"}
    assert settings_of(weaker).kafka.delivery is Delivery.AT_LEAST_ONCE
    assert settings_of({}).kafka.delivery is Delivery.AT_LEAST_ONCE


def test_exactly_once_on_the_embedded_broker_is_refused_by_name() -> None:
    chosen = {"MSGEXCHANGE_KAFKA__DELIVERY": "exactly-once"}
    assert "embedded broker" in problems_of(chosen)["kafka.delivery"]
    settings_of({**chosen, "MSGEXCHANGE_KAFKA__BOOTSTRAP": "k1:9092"})


@pytest.mark.parametrize("key", ["STORE__URL", "MAILBOX__URL"])
def test_production_refuses_embedded_databases(key: str) -> None:
    found = problems_of({**GOOD, f"MSGEXCHANGE_{key}": "sqlite:///x.sqlite"})
    assert set(found) == {key.lower().replace("__", ".")}


def test_a_mailbox_that_is_the_own_database_is_refused_in_every_profile() -> None:
    same = {
        "MSGEXCHANGE_STORE__URL": "sqlite:///one.sqlite",
        "MSGEXCHANGE_MAILBOX__URL": "sqlite:///./one.sqlite",
    }
    assert "own database" in problems_of(same)["mailbox.url"]


def test_listening_on_all_interfaces_needs_a_token() -> None:
    open_to_all = {**GOOD, "MSGEXCHANGE_HTTP__HOST": "0.0.0.0"}
    assert "http.send-token" in problems_of(open_to_all)["http.host"]
    settings_of({**open_to_all, "MSGEXCHANGE_HTTP__SEND_TOKEN": "s3cret"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ACKS", "1"),
        ("REQUEST_REQUIRED_ACKS", "0"),
        ("ENABLE_IDEMPOTENCE", "false"),
        ("MAX_IN_FLIGHT", "6"),
        ("MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION", "many"),
        ("MESSAGE_TIMEOUT_MS", "0"),
        ("TRANSACTIONAL_ID", "x"),
        ("BOOTSTRAP_SERVERS", "k:9092"),
        ("SOCKET_TIMEOUT_MS", "3600000"),
        ("PARTITIONER", "random"),
        ("ISOLATION_LEVEL", "read_uncommitted"),
        ("QUEUING_STRATEGY", "lifo"),
        ("MESSAGE_MAX_BYTES", "10"),
        ("TOPIC_ACKS", "1"),
    ],
)
def test_no_variable_weakens_the_producer(name: str, value: str) -> None:
    found = problems_of({f"MSGEXCHANGE_KAFKA__CLIENT__{name}": value})
    assert set(found) == {f"kafka.client.{name.lower().replace('_', '.')}"}


def test_no_file_weakens_the_producer(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[kafka.client]\nacks = 1\npartitioner = "random"\n')
    assert set(problems_of(GOOD, file)) == {"kafka.client.acks", "kafka.client.partitioner"}


def test_producer_settings_that_are_ours_anyway_may_stand() -> None:
    given = {"ACKS": "all", "ENABLE_IDEMPOTENCE": "True", "MAX_IN_FLIGHT": "5"}
    settings_of({f"MSGEXCHANGE_KAFKA__CLIENT__{name}": value for name, value in given.items()})


def test_production_takes_no_secret_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(
        '[store]\nurl = "postgresql://me:top-secret@db/x"\n'
        '[mailbox]\nurl = "mysql://me@mail/x"\n'
        '[http]\nadmin-token = "top-secret"\n'
        '[kafka.client]\n"sasl.password" = "top-secret"\n"security.protocol" = "SSL"\n'
    )
    found = problems_of(GOOD, file)
    assert set(found) == {"store.url", "http.admin-token", "kafka.client.sasl.password"}
    assert "MSGEXCHANGE_KAFKA__CLIENT__SASL_PASSWORD" in found["kafka.client.sasl.password"]
    assert "top-secret" not in str(found)


def test_a_secret_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    (tmp_path / "dsn").write_text("mysql://me:pw@mail/from-file")
    file = tmp_path / "site.toml"
    file.write_text(
        f'[http]\nadmin-token-file = "{tmp_path}/token"\n'
        f'[kafka.client]\n"sasl.password-file" = "{tmp_path}/token"\n'
    )
    environ = {**GOOD, "MSGEXCHANGE_MAILBOX__URL_FILE": f"{tmp_path}/dsn"}
    del environ["MSGEXCHANGE_MAILBOX__URL"]
    settings = settings_of(environ, file)
    assert settings.http.admin_token is not None
    assert settings.http.admin_token.get_secret_value() == "t0ken"
    assert settings.kafka.client == {"sasl.password": "t0ken"}
    assert settings.mailbox.url is not None
    assert settings.mailbox.url.get_secret_value().endswith("/from-file")


def test_a_secret_file_that_gives_no_secret_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    assert (
        "cannot be read"
        in problems_of({"MSGEXCHANGE_HTTP__SEND_TOKEN_FILE": str(tmp_path / "none")})[
            "http.send-token-file"
        ]
    )
    assert (
        "empty"
        in problems_of({"MSGEXCHANGE_HTTP__SEND_TOKEN_FILE": str(tmp_path / "empty")})[
            "http.send-token-file"
        ]
    )


def test_a_secret_given_twice_in_one_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    environ = {
        "MSGEXCHANGE_HTTP__SEND_TOKEN": "b",
        "MSGEXCHANGE_HTTP__SEND_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert "twice" in problems_of(environ)["http.send-token"]


@pytest.mark.parametrize(
    "dsn", ["nonsense:s3cret", "oracle://me:s3cret@db/x", "postgresql://me:s3cret@db"]
)
def test_a_refused_dsn_is_never_repeated(dsn: str) -> None:
    found = problems_of({"MSGEXCHANGE_STORE__URL": dsn})
    assert set(found) == {"store.url"}
    assert "s3cret" not in found["store.url"]


@pytest.mark.parametrize("token", ["", "two words", "schlüssel"])
def test_a_token_that_no_client_could_send_is_refused(token: str) -> None:
    assert set(problems_of({"MSGEXCHANGE_HTTP__SEND_TOKEN": token})) == {"http.send-token"}


def test_shadow_needs_its_databases_and_never_the_real_topics() -> None:
    shadow = {"MSGEXCHANGE_PROFILE": "shadow"}
    assert set(problems_of(shadow)) == {"store.url", "mailbox.url", "mailbox.start-after"}
    complete = {
        **shadow,
        "MSGEXCHANGE_STORE__URL": GOOD["MSGEXCHANGE_STORE__URL"],
        "MSGEXCHANGE_MAILBOX__URL": GOOD["MSGEXCHANGE_MAILBOX__URL"],
        "MSGEXCHANGE_MAILBOX__START_AFTER": "newest",
    }
    settings = settings_of(complete)
    assert settings.kafka.msg_topic == "shadow-msg"
    assert settings.kafka.schd_topic == "shadow-schd"
    assert settings.requests.accept_foreign
    assert not settings.pipeline.autostart
    assert set(problems_of({**complete, "MSGEXCHANGE_KAFKA__PREFIX": ""})) == {"kafka.prefix"}


def test_a_profile_that_does_not_exist_is_a_problem_of_its_own() -> None:
    assert (
        "one of embedded, production, shadow"
        in problems_of({"MSGEXCHANGE_PROFILE": "prod"})["profile"]
    )


def test_a_catalogue_that_cannot_be_used_is_told_with_everything_else(tmp_path: Path) -> None:
    broken = tmp_path / "catalogue.toml"
    broken.write_text("nonsense = 1\n", "utf-8")
    for file, part in ((tmp_path / "missing.toml", "cannot be read"), (broken, "nonsense")):
        environ = {"MSGEXCHANGE_CODEC__CATALOGUE": str(file), "MSGEXCHANGE_HTTP__PORT": "many"}
        with pytest.raises(ConfigError) as refused:
            load(None, environ, None, tmp_path)
        keys = {problem.key for problem in refused.value.problems}
        assert {"codec.catalogue", "http.port"} == keys
        assert part in str(refused.value)


def test_production_must_choose_what_becomes_of_past_flights() -> None:
    undecided = {k: v for k, v in GOOD.items() if k != "MSGEXCHANGE_HISTORY__STORE"}
    assert "for ever" in problems_of(undecided)["history.store"]
    settings_of(undecided | {"MSGEXCHANGE_HISTORY__STORE": "none"})
    settings_of(undecided | {"MSGEXCHANGE_HISTORY__DISCARD": "true"})
    both = GOOD | {"MSGEXCHANGE_HISTORY__DISCARD": "true"}
    assert set(problems_of(both)) == {"history.discard"}


def test_matching_by_echo_needs_a_catalogue_that_names_the_field(tmp_path: Path) -> None:
    echo = {"MSGEXCHANGE_REQUESTS__MATCH": "echo"}
    assert "answer_echo" in problems_of(echo)["requests.match"]
    shipped = files("msgexchange.codec").joinpath("catalogue.toml").read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(shipped.replace("# answer_echo", "answer_echo"), encoding="utf-8")
    naming = {**echo, "MSGEXCHANGE_CODEC__CATALOGUE": str(own)}
    assert settings_of(naming).requests.match is MatchBy.ECHO


def test_reference_types_nobody_knows_are_told() -> None:
    found = problems_of({"MSGEXCHANGE_REQUESTS__REFERENCE_TYPES": '["ARPT", "NOPE"]'})
    assert "NOPE" in found["requests.reference-types"]
