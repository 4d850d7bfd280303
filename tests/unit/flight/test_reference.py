from msgexchange.flight.reference import Record, Reference, ReferenceAct, References
from msgexchange.ids import MailboxId

STORED: dict[tuple[str, str], Record] = {
    ("ARPT", "PEK"): {"CODE": "PEK", "NAME": "Beijing", "CITY": "BJS"},
    ("ARPT", "CAN"): {"CODE": "CAN", "NAME": "Guangzhou"},
    ("GATS", "A1"): {"CODE": "A1"},
}


def told(
    act: ReferenceAct, *records: Record, type_: str = "ARPT", replaces_all: bool = False
) -> Reference:
    return Reference(type_, act, {str(one["CODE"]): one for one in records}, replaces_all)


def test_what_a_record_does_not_carry_stays() -> None:
    references = References(STORED)
    references.apply(told(ReferenceAct.UPD, {"CODE": "PEK", "NAME": "Peking"}), MailboxId(5))
    merged = {"CODE": "PEK", "NAME": "Peking", "CITY": "BJS"}
    assert references.changes().written == {("ARPT", "PEK"): (merged, 5)}
    assert not references.changes().replaced_types


def test_a_type_that_is_replaced_forgets_what_is_not_carried() -> None:
    references = References(STORED)
    references.apply(told(ReferenceAct.ADD, {"CODE": "SHA"}), MailboxId(4))
    whole = told(ReferenceAct.RESP, {"CODE": "PEK", "NAME": "Peking"}, replaces_all=True)
    references.apply(whole, MailboxId(5))
    changes = references.changes()
    assert changes.replaced_types == {"ARPT"}
    assert changes.written == {("ARPT", "PEK"): ({"CODE": "PEK", "NAME": "Peking"}, 5)}


def test_a_deletion_and_what_comes_after_it_are_taken_in_order() -> None:
    references = References(STORED)
    gone = told(ReferenceAct.DEL, {"CODE": "PEK"}, {"CODE": "NONE"})
    references.apply(gone, MailboxId(4))
    assert references.changes().removed == {("ARPT", "PEK"), ("ARPT", "NONE")}
    references.apply(told(ReferenceAct.UPD, {"CODE": "PEK"}), MailboxId(5))
    changes = references.changes()
    assert changes.removed == {("ARPT", "NONE")}
    assert changes.written == {("ARPT", "PEK"): ({"CODE": "PEK"}, 5)}


def test_one_type_leaves_the_others_alone() -> None:
    references = References(STORED)
    references.apply(
        told(ReferenceAct.DNLD, {"CODE": "B1"}, type_="GATS", replaces_all=True), MailboxId(5)
    )
    assert references.changes().replaced_types == {"GATS"}
    assert set(references.changes().written) == {("GATS", "B1")}
