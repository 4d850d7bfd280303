"""Random flight contents: names of the catalogue and others, of any shape."""

from typing import TypeAlias

from hypothesis import strategies as st

from msgexchange.codec.catalogue import GroupShape
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.state import Json

Contents: TypeAlias = "dict[str, Json]"

_GROUPS = default_catalogue().groups
_FIELDS = sorted({field for group in _GROUPS.values() for field in group.columns if field})

texts = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    st.sampled_from(["", "A12", "03SEP261804"]),
)
names = st.from_regex(r"(x:)?[A-Z][A-Z0-9_.-]{0,7}", fullmatch=True)
fields = st.sampled_from(_FIELDS) | names
values: st.SearchStrategy[Json] = st.recursive(
    texts,
    lambda inner: (
        st.lists(inner, max_size=2).map(tuple) | st.dictionaries(names, inner, max_size=2)
    ),
    max_leaves=4,
)
items: st.SearchStrategy[Json] = st.lists(
    st.dictionaries(fields, values, max_size=4), max_size=3
).map(tuple)


def _of(name: str) -> st.SearchStrategy[Json]:
    """What the name usually holds; now and then anything else."""
    match _GROUPS[name].shape:
        case GroupShape.SCALAR:
            usual: st.SearchStrategy[Json] = texts
        case GroupShape.COLLECTION:
            usual = items
        case GroupShape.EXCEPTION:
            usual = st.dictionaries(fields, values, max_size=4)
        case GroupShape.TEXT:
            usual = values
    return st.one_of(usual, usual, usual, values)


def contents() -> st.SearchStrategy[Contents]:
    """A flight's content: catalogue names with their shapes, and unknown names with any."""
    known: st.SearchStrategy[Contents] = st.fixed_dictionaries(
        {}, optional={name: _of(name) for name in _GROUPS}
    )
    unknown: st.SearchStrategy[Contents] = st.dictionaries(names, values, max_size=3)
    return st.builds(lambda extra, said: {**extra, **said}, unknown, known)
