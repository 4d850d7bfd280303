"""Where values come from, and that every problem is told at once."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from msgexchange.config import ConfigError, Profile, Settings, load
from msgexchange.flight.dynamic import UnknownFlight

DATA = Path("data")


def loaded(
    tmp_path: Path,
    toml: str | None = None,
    environ: Mapping[str, str] | None = None,
    dotenv: str | None = None,
) -> Settings:
    file = None if toml is None else tmp_path / "site.toml"
    if file is not None and toml is not None:
        file.write_text(toml)
    dotenv_file = tmp_path / ".env"
    if dotenv is not None:
        dotenv_file.write_text(dotenv)
    return load(file, environ or {}, dotenv_file, DATA)


def problems(
    tmp_path: Path,
    toml: str | None = None,
    environ: Mapping[str, str] | None = None,
    dotenv: str | None = None,
) -> dict[str, str]:
    with pytest.raises(ConfigError) as failure:
        loaded(tmp_path, toml, environ, dotenv)
    return {problem.key: str(problem) for problem in failure.value.problems}


def test_nothing_given_is_the_embedded_profile_in_the_data_folder() -> None:
    settings = load(None, {}, None, DATA)
    assert settings.profile is Profile.EMBEDDED
    assert settings.store.url is not None
    assert settings.store.url.get_secret_value() == "sqlite:///data/store.sqlite"
    assert settings.mailbox.processed_value == "Y"
    assert settings.mailbox.start_after == "oldest"
    assert settings.pipeline.autostart
    assert settings.pipeline.poll_interval == timedelta(seconds=1)
    assert settings.codec.limits.text_max == 64 * 1024 * 1024


def test_the_environment_wins_over_dotenv_over_toml_over_profile(tmp_path: Path) -> None:
    toml = "[pipeline]\nbatch = 10\nclaim-batch = 10\nmax-attempts = 10\nautostart = false\n"
    dotenv = "MSGEXCHANGE_PIPELINE__BATCH=20\nMSGEXCHANGE_PIPELINE__CLAIM_BATCH=20\nOTHER=1\n"
    settings = loaded(tmp_path, toml, {"MSGEXCHANGE_PIPELINE__BATCH": "30"}, dotenv)
    pipeline = settings.pipeline
    assert (pipeline.batch, pipeline.claim_batch, pipeline.max_attempts) == (30, 20, 10)
    assert not pipeline.autostart
    assert settings.origin("pipeline.batch") == "env MSGEXCHANGE_PIPELINE__BATCH"
    assert settings.origin("pipeline.claim-batch") == ".env"
    assert settings.origin("pipeline.max-attempts") == f"file:{tmp_path / 'site.toml'}"
    assert settings.origin("mailbox.start-after") == "profile embedded"
    assert settings.origin("pipeline.backoff") == "default"


def test_deeper_keys_and_tables_come_from_variables_too(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        '[kafka.client]\nlinger.ms = 5\n"client.id" = "a"\n',
        {
            "MSGEXCHANGE_MAILBOX__INBOUND__TABLE": "site.IN_MSGS",
            "MSGEXCHANGE_MAILBOX__INBOUND__EXTRA_COLUMNS__SITE": "PEK",
            "MSGEXCHANGE_MAILBOX__PROCESSED_VALUES": "Y, D",
            "MSGEXCHANGE_KAFKA__CLIENT__CLIENT_ID": "b",
            "MSGEXCHANGE_MAILBOX__START_AFTER": "17",
        },
    )
    assert settings.mailbox.inbound.table == "site.IN_MSGS"
    assert settings.mailbox.inbound.extra_columns == {"SITE": "PEK"}
    assert settings.mailbox.processed_values == ("Y", "D")
    assert settings.kafka.client == {"linger.ms": 5, "client.id": "b"}
    assert settings.mailbox.start_after == 17


def test_a_table_and_a_list_in_a_variable_may_be_json(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        environ={
            "MSGEXCHANGE_KAFKA__CLIENT": '{"linger.ms": 5}',
            "MSGEXCHANGE_MAILBOX__PROCESSED_VALUES": '["Y", "D"]',
        },
    )
    assert settings.kafka.client == {"linger.ms": 5}
    assert settings.mailbox.processed_values == ("Y", "D")
    assert (
        "is not JSON"
        in problems(tmp_path, environ={"MSGEXCHANGE_KAFKA__CLIENT": "{"})["kafka.client"]
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"20 ms"', timedelta(milliseconds=20)),
        ('"1 s"', timedelta(seconds=1)),
        ('"1.5s"', timedelta(seconds=1.5)),
        ('"0.5 min"', timedelta(seconds=30)),
        ("2", timedelta(seconds=2)),
        ("0.25", timedelta(milliseconds=250)),
        ('"2"', timedelta(seconds=2)),
    ],
)
def test_durations_are_read_as_people_write_them(
    tmp_path: Path, written: str, meant: timedelta
) -> None:
    settings = loaded(
        tmp_path, f"[pipeline]\npoll-interval = {written}\npoll-interval-busy = '1 ms'"
    )
    assert settings.pipeline.poll_interval == meant


@pytest.mark.parametrize("written", ['"1 week"', '"soon"', '"-1 s"', "-1", "true", '"PT1S"', "nan"])
def test_what_is_no_duration_is_refused_with_what_one_looks_like(
    tmp_path: Path, written: str
) -> None:
    found = problems(tmp_path, f"[pipeline]\npoll-interval = {written}\n")
    assert 'set a duration such as "20 ms"' in found["pipeline.poll-interval"]


def test_sizes_have_binary_units(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[http]\nbody-max = "2 MiB"\n[codec.limits]\ntext-max = 4096\n')
    assert settings.http.body_max == 2 * 1024 * 1024
    assert settings.codec.limits.text_max == 4096
    assert "a size such as" in problems(tmp_path, '[http]\nbody-max = "2 MB"\n')["http.body-max"]


def test_begin_is_another_word_for_oldest(tmp_path: Path) -> None:
    assert loaded(tmp_path, '[mailbox]\nstart-after = "begin"\n').mailbox.start_after == "oldest"
    found = problems(tmp_path, '[mailbox]\nstart-after = "middle"\n')
    assert "neither an id" in found["mailbox.start-after"]


def test_every_problem_is_told_at_once_with_its_origin_and_what_to_set(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        '[pipeline]\nbatch = "many"\npol-interval = 1\n[http]\nport = true\n'
        '[site]\ntimezone = "X"\n[flights]\nunknown = "guess"\n[mailbox]\nprocessed-value = "D"\n',
        {"MSGEXCHANGE_HTTP__WORKERS": "0", "MSGEXCHANGE_HTPP__PORT": "1"},
    )
    assert set(found) == {
        "pipeline.batch",
        "pipeline.pol-interval",
        "http.port",
        "site.timezone",
        "flights.unknown",
        "mailbox.processed-value",
        "http.workers",
        "MSGEXCHANGE_HTPP__PORT",
    }
    assert f"file:{tmp_path / 'site.toml'}" in found["pipeline.batch"]
    assert "at least 1, at most 200" in found["pipeline.batch"]
    assert "env MSGEXCHANGE_HTTP__WORKERS" in found["http.workers"]
    assert "one of skip, create" in found["flights.unknown"]


def test_an_unknown_key_names_the_nearest_known_one(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "[pipeline]\npol-interval = 1\n[pipelines]\nbatch = 3\n",
        {"MSGEXCHANGE_PIPELINE__BACH": "1"},
    )
    assert "did you mean pipeline.poll-interval?" in found["pipeline.pol-interval"]
    assert "did you mean pipeline" in found["pipelines"]
    assert "did you mean MSGEXCHANGE_PIPELINE__BATCH?" in found["MSGEXCHANGE_PIPELINE__BACH"]


def test_what_is_handed_in_cannot_be_set_from_outside(tmp_path: Path) -> None:
    found = problems(tmp_path, 'data-dir = "/"\n', {"MSGEXCHANGE_ORIGINS": "{}"})
    assert set(found) == {"data-dir", "MSGEXCHANGE_ORIGINS"}


def test_variables_that_name_test_servers_are_no_settings(tmp_path: Path) -> None:
    loaded(tmp_path, environ={"MSGEXCHANGE_TEST_POSTGRES": "x", "PATH": "/bin"})


def test_a_section_must_be_a_section_and_a_setting_no_table(tmp_path: Path) -> None:
    found = problems(tmp_path, "http = 5\n[pipeline.batch]\nx = 1\n")
    assert "write [http]" in found["http"]
    assert "pipeline.batch" in found


def test_a_file_that_is_missing_or_no_toml_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.toml", {}, None, DATA)
    assert "is not TOML" in problems(tmp_path, "a = = 1")["--config"]


def test_a_dollar_in_dotenv_is_a_dollar(tmp_path: Path) -> None:
    settings = loaded(tmp_path, dotenv="MSGEXCHANGE_HTTP__SEND_TOKEN=a${HOME}b\n")
    assert settings.http.send_token is not None
    assert settings.http.send_token.get_secret_value() == "a${HOME}b"


def test_settings_are_frozen_to_the_last_section() -> None:
    settings = load(None, {}, None, DATA)
    assert settings.flights.unknown is UnknownFlight.SKIP
    with pytest.raises(ValidationError):
        settings.pipeline.batch = 7  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.profile = Profile.SHADOW  # type: ignore[misc]


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("[mailbox.inbound]\nid-offset = 1\n", "mailbox.inbound.id-offset"),
        ("[mailbox.inbound]\nid-offset = 3\nid-step = 2\n", "mailbox.inbound.id-offset"),
        ('[pipeline]\npoll-interval-busy = "2 s"\n', "pipeline.poll-interval-busy"),
        ('[pipeline]\nbackoff = "2 min"\n', "pipeline.backoff"),
        ('[store]\nlock-timeout = "4.5 s"\n', "store.lock-timeout"),
        ('[store]\nstatement-timeout = "5 s"\n', "store.statement-timeout"),
        ('[mailbox.inbound]\ntable = "x; DROP TABLE y"\n', "mailbox.inbound.table"),
        ('[history]\nstore = "tape"\n', "history.store"),
        ('[history]\nsweep-at = "25:00"\n', "history.sweep-at"),
        ("[history]\nsweep-at = 330\n", "history.sweep-at"),
        ('[retention]\ngaps = "30 d"\n', "retention.gaps"),
    ],
)
def test_values_that_cannot_hold_are_refused(tmp_path: Path, toml: str, key: str) -> None:
    assert set(problems(tmp_path, toml)) == {key}
