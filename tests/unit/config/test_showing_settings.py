"""What people see of the settings, and the example file."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from msgexchange.codec.catalogue_file import default_catalogue_text
from msgexchange.config import load, rows, unconfirmed
from msgexchange.config.keys import KEYS
from msgexchange.config.values import written_duration, written_size

DATA = Path("data")
EXAMPLE = Path(__file__).parents[3] / "config.example.toml"


def test_every_setting_is_documented_and_shown() -> None:
    shown = {row.key for row in rows(load(None, {}, None, DATA))}
    assert shown == set(KEYS)
    assert all(key.description for key in KEYS.values())


def test_secrets_are_masked_and_the_rest_is_shown_with_its_origin() -> None:
    environ = {
        "MSGEXCHANGE_STORE__URL": "postgresql://me:s3cret@db/x?sslpassword=s3cret",
        "MSGEXCHANGE_HTTP__ADMIN_TOKEN": "s3cret",
        "MSGEXCHANGE_KAFKA__CLIENT__SASL_PASSWORD": "s3cret",
        "MSGEXCHANGE_KAFKA__CLIENT__SECURITY_PROTOCOL": "SASL_SSL",
        "MSGEXCHANGE_PIPELINE__POLL_INTERVAL": "500 ms",
    }
    settings = load(None, environ, None, DATA)
    by_key = {row.key: row for row in rows(settings)}
    assert "s3cret" not in str(by_key)
    assert "s3cret" not in repr(settings)
    assert by_key["store.url"].value.startswith("postgresql://me:")
    assert "@db/x" in by_key["store.url"].value
    assert by_key["kafka.client.security.protocol"].value == "SASL_SSL"
    assert by_key["pipeline.poll-interval"].value == "500 ms"
    assert by_key["pipeline.poll-interval"].origin == "env MSGEXCHANGE_PIPELINE__POLL_INTERVAL"
    assert by_key["http.port"].origin == "default"
    assert by_key["mailbox.processed-value"].origin == "profile embedded"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(milliseconds=20), "20 ms"),
        (timedelta(seconds=90), "90 s"),
        (timedelta(hours=24), "24 h"),
        (timedelta(days=7), "7 d"),
        (timedelta(0), "0 ms"),
    ],
)
def test_durations_are_shown_in_the_largest_whole_unit(value: timedelta, text: str) -> None:
    assert written_duration(value) == text


def test_sizes_are_shown_in_the_largest_whole_unit() -> None:
    assert [written_size(n) for n in (0, 1000, 4096, 64 << 20)] == [
        "0 B",
        "1000 B",
        "4 KiB",
        "64 MiB",
    ]


def test_a_default_stays_unconfirmed_until_the_site_sets_it() -> None:
    before = {one.key for one in unconfirmed(load(None, {}, None, DATA))}
    assert {"pipeline.max-commit-delay", "mailbox.retention", "codec.catalogue"} <= before
    environ = {
        "MSGEXCHANGE_PIPELINE__MAX_COMMIT_DELAY": "60 s",
        "MSGEXCHANGE_MAILBOX__INBOUND__EXTRA_COLUMNS__SITE": "x",
    }
    after = {one.key for one in unconfirmed(load(None, environ, None, DATA))}
    assert before - after == {"pipeline.max-commit-delay", "mailbox.inbound.extra-columns"}


def with_a_catalogue(text: str, folder: Path) -> str:
    """The example with a site's catalogue that is there."""
    (folder / "catalogue.toml").write_text(default_catalogue_text(), "utf-8")
    return text.replace('"catalogue.toml"', f'"{folder}/catalogue.toml"')


def test_the_example_file_has_every_key_and_loads_when_its_marks_are_taken_away(
    tmp_path: Path,
) -> None:
    text = EXAMPLE.read_text()
    assert load(EXAMPLE, {}, None, DATA).origins == load(None, {}, None, DATA).origins
    (tmp_path / "token").write_text("token")
    uncommented = re.sub(r"^#(?=[^ \n])", "", text, flags=re.MULTILINE)
    uncommented = re.sub(r'"/run/secrets/[^"]*"', f'"{tmp_path}/token"', uncommented)
    uncommented = with_a_catalogue(uncommented, tmp_path)
    file = tmp_path / "all.toml"
    file.write_text(uncommented)
    settings = load(file, {}, None, DATA)
    named = {name.split(".SITE")[0].split(".security")[0] for name in settings.origins}
    assert named == set(KEYS)


def test_the_example_file_shows_the_defaults(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    file = tmp_path / "all.toml"
    uncommented = re.sub(r"^#(?=[^ \n])", "", text, flags=re.MULTILINE)
    uncommented = with_a_catalogue(uncommented, tmp_path)
    file.write_text(re.sub(r"^\S*-token-file = .*$", "", uncommented, flags=re.MULTILINE))
    settings = load(file, {}, None, DATA)
    plain = [key for key in KEYS.values() if key.default is not None and not key.is_table]
    assert len(plain) > 40
    assert [key.dotted for key in plain if key.value(settings) != key.default] == []
