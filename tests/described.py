"""Answers held against the document that describes the calls."""

import json
import re
from importlib.resources import files
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

DOCUMENT: dict[str, Any] = json.loads(
    files("msgexchange.web").joinpath("openapi.json").read_text("utf-8")
)

Call = tuple[str, str]
"""Path and method."""


def described_calls() -> set[Call]:
    """The calls of the document."""
    return {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}


def routed_calls(app: Flask) -> set[Call]:
    """The calls that an application answers."""
    return {
        (path_of(rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def path_of(rule: str) -> str:
    """A route as the document writes it."""
    return re.sub(r"<(\w+)>", r"{\1}", rule)


def departures(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """Where the value is not what the schema says; the part of JSON Schema the document uses."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if "oneOf" in schema:
        return min((departures(value, one, where) for one in schema["oneOf"]), key=len)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return [f"{where}: {value!r} is not of type {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where}: {value!r} does not match")
    if isinstance(value, list):
        for index, one in enumerate(value):
            found += departures(one, schema.get("items", {}), f"{where}[{index}]")
    if isinstance(value, dict):
        found += _members(value, schema, where)
    return found


def _members(value: dict[str, Any], schema: dict[str, Any], where: str) -> list[str]:
    known = schema.get("properties", {})
    more = schema.get("additionalProperties", {})
    found = [f"{where}: lacks {name}" for name in schema.get("required", ()) if name not in value]
    for name, one in value.items():
        if name not in known and more is False:
            found.append(f"{where}: has {name}")
        else:
            found += departures(one, known.get(name) or more or {}, f"{where}.{name}")
    return found


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    python: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "object": dict,
        "array": list,
        "null": type(None),
    }
    return kind in python and isinstance(value, python[kind])


def described(answer: TestResponse, path: str, method: str = "get") -> list[str]:
    """Departures of a real answer from what the document says of it."""
    responses = DOCUMENT["paths"][path][method]["responses"]
    mimetype = answer.mimetype or ""
    media = responses[str(answer.status_code)]["content"][mimetype]
    is_json = mimetype.endswith("json")
    return departures(answer.get_json(force=True) if is_json else answer.text, media["schema"])
