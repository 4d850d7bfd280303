"""Tables and columns a catalogue may map names to; the own database is built from these (2.3)."""

from collections.abc import Mapping
from types import MappingProxyType

SEQUENCE_COLUMN = "source_seq"
"""Column of a detail table that takes the protocol's sequence."""

ROUTE_TABLE = "flight_route_point"
ROUTE_KINDS = ("ROUT", "ERUT")
"""Two groups share the route table, told apart by ROUTE_KIND."""

DETAIL_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "flight_gate": ("gate", "gotm", "gctm"),
        "flight_checkin": ("cntr", "cotm", "cctm", "ccls"),
        "flight_belt": ("belt", "pcot", "pcct"),
        "flight_stand_plan": ("stnd", "sstm", "setm"),
        "flight_chute": ("chut", "hotm", "hctm"),
        "flight_delay": ("code", "dura", "text_"),
        "flight_bridge_op": ("brdg", "batm", "bdtm"),
        "flight_chock_op": ("stnd", "cntm", "cftm"),
        ROUTE_TABLE: ("stop", "artm", "dptm"),
    }
)
"""Item columns by detail table; each table also has the sequence column."""

SCALAR_COLUMNS = (
    "flno",
    "alcd",
    "mvtp",
    "sctm",
    "flty",
    "shar",
    "estm",
    "actm",
    "cncl",
    "brdo",
    "lstc",
    "brdc",
    "stnd",
    "acrg",
    "actp",
    "term",
    "stat",
    "rmrk",
    "link",
)
EXCEPTION_COLUMNS = (
    "fdiv_dest",
    "fdiv_rson",
    "fdiv_text",
    "fret_rson",
    "fret_text",
    "flab_rson",
    "flab_text",
)
TEXT_COLUMNS = ("srvt_text", "vipf_text", "mafl_text")
"""The three sets together are the mapped columns of FLIGHT_SCHD."""
