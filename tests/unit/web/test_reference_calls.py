"""``GET /reference/{type}``."""

from web_world import MemoryReads, at, client

from msgexchange.ids import MailboxId
from msgexchange.ports import ReferenceView


def record(key: str) -> ReferenceView:
    return ReferenceView(
        type="ARPT",
        key=key,
        record={"CODE": key, "NAME": "北京"},
        last_message_id=MailboxId(3),
        updated_at=at(1),
    )


def test_records_come_page_by_page_in_key_order() -> None:
    web = client(reads=MemoryReads(stored_records=[record("CAN"), record("PEK"), record("SHA")]))
    first = web.get("/reference/ARPT?limit=2").get_json()
    assert first["records"][0] == {
        "key": "CAN",
        "record": {"CODE": "CAN", "NAME": "北京"},
        "lastMessageId": 3,
        "updatedAt": "2026-09-03T10:30:01.000Z",
    }
    assert (first["type"], first["count"], first["next"]) == ("ARPT", 2, "PEK")
    second = web.get("/reference/ARPT?limit=2&after=PEK").get_json()
    assert ([one["key"] for one in second["records"]], second["next"]) == (["SHA"], None)


def test_a_type_without_records_is_empty_and_an_unknown_one_is_not_found() -> None:
    web = client()
    assert web.get("/reference/GATS").get_json()["records"] == []
    answer = web.get("/reference/GATE")
    assert answer.status_code == 404
    assert "ARPT, GATS" in answer.get_json()["error"]
