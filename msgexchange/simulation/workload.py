"""What the AODB writes in a simulated world: good, bad, twice, and in any order."""

from random import Random  # noqa: TID251 - seeded, the same every time

KINDS = (
    "plan",
    "operation",
    "operation",
    "operation",
    "deletion",
    "duplicate",
    "malformed",
    "unknown",
    "unsupported",
    "poison",
)
POISON = "poison"
"""A text with this word makes the decoder raise."""


def texts(random: Random, *, amount: int) -> list[str]:
    """``amount`` raw texts, a plan first."""
    made = [_message(random, "plan", 1)]
    for seqn in range(2, amount + 1):
        kind = random.choice(KINDS)
        made.append(random.choice(made) if kind == "duplicate" else _message(random, kind, seqn))
    return made


def _message(random: Random, kind: str, seqn: int) -> str:
    flid = str(9000 + random.randrange(6))
    match kind:
        case "plan":
            flids = sorted({flid, *(str(9000 + random.randrange(6)) for _ in range(3))})
            flights = "".join(
                f"<FLGT><FLID>{one}</FLID><FLNO>CZ{one}</FLNO><MVTP>D</MVTP>"
                f"<SCTM>03SEP261900</SCTM></FLGT>"
                for one in flids
            )
            body = f"<SCHD><RCNT>{len(flids)}</RCNT>{flights}</SCHD>"
            return _xml(body, "SCHD", random.choice(("DNLD", "DNLD", "ADHC")), seqn)
        case "deletion":
            return _xml(f"<FDEL><FLID>{flid}</FLID></FDEL>", "FDEL", "", seqn)
        case "malformed":
            return f"<MSG><META><SEQN>{seqn}"
        case "unsupported":
            return _xml("", "NOPE", "X", seqn)
        case "poison":
            return f"<!-- {POISON} {seqn} -->"
        case _:
            one = "7777" if kind == "unknown" else flid
            value = random.choice(("BRD", "DEP", "DLY", "CNL"))
            body = f"<FLOP><FLID>{one}</FLID><STAT>{value}{seqn}</STAT></FLOP>"
            return _xml(body, "FLOP", "STAT", seqn)


def _xml(body: str, type_: str, styp: str, seqn: int) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<MSG><META><SNDR>AODB</SNDR><SEQN>{seqn:06d}</SEQN><DTTM>20260903180000</DTTM>"
        f"<TYPE>{type_}</TYPE><STYP>{styp}</STYP></META>{body}</MSG>"
    )
