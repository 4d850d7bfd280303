"""Event bytes: the same value is always the same bytes, and contents come back exactly."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgexchange.codec.encode import encode, parse_content, parse_json
from msgexchange.flight.state import Json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Json] = st.recursive(
    TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
CONTENTS = st.dictionaries(TEXTS, VALUES, max_size=6)


def test_bytes_are_sorted_compact_utf8() -> None:
    value = {"b": ("晚", {"y": "", "x": ()}), "a": None, "B": 3}
    assert encode(value) == '{"B":3,"a":null,"b":["晚",{"x":[],"y":""}]}'.encode()


def test_any_mapping_is_an_object() -> None:
    assert encode({"a": MappingProxyType({"c": "1", "b": "2"})}) == b'{"a":{"b":"2","c":"1"}}'


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError):
        encode({"a": {1, 2}})


@given(CONTENTS)
def test_a_content_comes_back_exactly(content: Mapping[str, Json]) -> None:
    octets = encode(content)
    assert parse_content(octets) == content
    assert parse_content(octets.decode()) == content
    assert encode(parse_content(octets)) == octets


@given(CONTENTS, st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_show(content: dict[str, Json], random: object) -> None:
    names = list(content)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert encode({name: content[name] for name in names}) == encode(content)


@pytest.mark.parametrize(
    "octets", [b"", b"{", b"[]", b'"a"', b'{"a":1}', b'{"a":null}', b'{"a":[true]}', b"\xff"]
)
def test_what_is_no_content_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError):
        parse_content(octets)


def test_a_single_value_is_parsed_too() -> None:
    assert parse_json('[{"TEXT":"a"},"b"]') == ({"TEXT": "a"}, "b")
    with pytest.raises(ValueError):
        parse_json("1")
