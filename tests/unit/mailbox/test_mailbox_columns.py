"""Names of a foreign table go into statements, so they must be nothing but names (spec 3.1)."""

import pytest

from msgexchange.mailbox.columns import ColumnMap


def test_the_defaults_are_the_owners_table() -> None:
    columns = ColumnMap()
    assert (columns.table, columns.id, columns.text) == ("CMINMSGS", "CMINMSGS_ID", "MSG_TEXT")
    assert (columns.received, columns.flag) == ("RECV_TIME", "PROC_FLAG")
    assert (columns.processed_time, columns.processed) == ("PROC_TIME", "Y")


@pytest.mark.parametrize("name", ["", "a b", "a`b", 'a"b', "1a", "a-b", "a;b", "a" * 65, "naïve"])
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain name"):
        ColumnMap(flag=name)
    with pytest.raises(ValueError, match="not a plain name"):
        ColumnMap(table=f"aodb.{name}")
    with pytest.raises(ValueError, match="not a plain name"):
        ColumnMap(extra={name: "x"})


def test_a_table_may_carry_its_schema_and_nothing_more() -> None:
    columns = ColumnMap(table="aodb.CMINMSGS")
    assert (columns.schema, columns.name) == ("aodb", "CMINMSGS")
    assert (ColumnMap().schema, ColumnMap().name) == (None, "CMINMSGS")
    with pytest.raises(ValueError, match=r"write schema\.table"):
        ColumnMap(table="a.b.c")


def test_a_column_serves_one_purpose() -> None:
    with pytest.raises(ValueError, match="two purposes"):
        ColumnMap(extra={"msg_text": "x"})


def test_a_mark_must_be_something() -> None:
    with pytest.raises(ValueError, match="processed value"):
        ColumnMap(processed="")
