# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a study, for editors.

`python -m lagometer.study.schema_json` writes schema/study.schema.json.

It is looser than the loader where JSON Schema cannot express a rule (units, names of adapters). The loader
rejects everything that it rejects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lagometer.study.capacity import CAPACITY
from lagometer.study.devices import CPUS_MAX, DEVICES
from lagometer.study.factors import FACTORS, PART, Factor
from lagometer.study.hosts import DRIFT_PPM_MAX, LAUNCHERS
from lagometer.study.link_changes import CHANGES, OF_A_PROFILE
from lagometer.study.links import DISTRIBUTIONS, LINK_KEYS, SOURCES
from lagometer.study.parts import PART_KEYS
from lagometer.study.schema import CONTROL_FLOOR, CONTROL_NONE, NESTED_KEYS, TOP_LEVEL_KEYS, TopLevelKey

_WORD: dict[str, object] = {"type": "string"}
SCHEMA_PATH = Path(__file__).resolve().parents[2] / "schema" / "study.schema.json"


def study_schema() -> dict[str, object]:
    """The schema as a JSON value."""
    properties = {key.name: _top_level(key) for key in TOP_LEVEL_KEYS}
    properties["options"] = {
        "description": NESTED_KEYS["options"],
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
    }
    properties["variants"] = {
        "description": NESTED_KEYS["variants"],
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        },
    }
    properties["hosts"] = _hosts()
    properties["links"] = _links()
    properties["scales"] = {
        "description": NESTED_KEYS["scales"],
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "object"},
    }
    properties["control"] = {
        "description": NESTED_KEYS["control"],
        "anyOf": [
            {"enum": [CONTROL_NONE, CONTROL_FLOOR]},
            {
                "type": "object",
                "properties": {factor.name: dict(factor.schema) for factor in FACTORS if factor.name != PART},
                "required": ["adapter", "workload"],
                "additionalProperties": False,
            },
        ],
    }
    properties["exclude"] = {
        "description": NESTED_KEYS["exclude"],
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    }
    properties["matrix"] = {
        "description": NESTED_KEYS["matrix"],
        "type": "object",
        "properties": {factor.name: _factor(factor) for factor in FACTORS if factor.name != PART},
        "patternProperties": {"^[^.]+[.].+$": _one_or_more({"type": ["string", "number", "boolean"]})},
        "additionalProperties": False,
    }
    properties["parts"] = _parts(properties)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A lagometer study",
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": False,
        # Parts may set what the outer matrix omits.
        "if": {"not": {"required": ["parts"]}},
        "then": {"required": ["matrix"], "properties": {"matrix": {"required": ["adapter", "workload"]}}},
    }


def _hosts() -> dict[str, object]:
    """Places where workers run, or the file that has them."""
    return {"description": NESTED_KEYS["hosts"], "anyOf": [{"type": "string"}, _hosts_by_name()]}


def _hosts_by_name() -> dict[str, object]:
    return {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "properties": {
                "launcher": {"description": "how its agent is started", "enum": list(LAUNCHERS)},
                "destination": {
                    "description": "of the launcher ssh: what your ssh understands; else the host's name",
                    "type": "string",
                },
                "config": {
                    "description": "of the launcher ssh: a file of its configuration",
                    "type": "string",
                },
                "path": {
                    "description": "of the launcher ssh: an installation there, else lagometer is copied",
                    "type": "string",
                },
                "address": {"description": "IPv4 address of its link to the other hosts", "type": "string"},
                "symmetric": {
                    "description": "its link to the others takes the same time both ways",
                    "type": "boolean",
                },
                "drift_ppm": {
                    "description": "by how much its clock may be fast or slow, in parts in a million",
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": DRIFT_PPM_MAX,
                },
                "before": {"description": "words before the agent's command", **_one_or_more(_WORD)},
                "runs": {"description": "nodes and groups that run there", **_one_or_more(_WORD)},
                "device": _device(),
            },
            "additionalProperties": False,
        },
    }


def _device() -> dict[str, object]:
    """What a host's CPUs are limited to."""
    keys = {
        "cpus": {"description": "how many it has", "type": "integer", "minimum": 1, "maximum": CPUS_MAX},
        "speed": {"description": "of one of them, by `7zr b -mmt1`, like 1600MIPS", "type": "string"},
    }
    own = {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
    return {
        "description": "what its CPUs are limited to, an approximation; not of the launcher ssh",
        "anyOf": [{"enum": list(DEVICES)}, own],
    }


def _links() -> dict[str, object]:
    """Emulated links."""
    keys: dict[str, object] = {
        name: {"description": key.description, "type": ["string", "number"]}
        for name, key in LINK_KEYS.items()
    }
    keys["distribution"] = {"description": LINK_KEYS["distribution"].description, "enum": list(DISTRIBUTIONS)}
    of_a_change: dict[str, object] = {
        "at": {"description": "when, from the start of the measure phase on"},
        "every": {"description": "again and again, so far apart"},
        "outage": {"description": "how long all frames are lost"},
        **{name: keys[name] for name in OF_A_PROFILE},
    }
    keys[CHANGES] = {
        "description": "what the link is like later, in the order of time",
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": of_a_change,
            "required": ["at"],
            "additionalProperties": False,
        },
    }
    keys[CAPACITY] = {
        "description": "the file of a recorded capacity, as Mahimahi has them",
        "type": "string",
    }
    keys[SOURCES] = {"description": "where each number is from, by its key", "type": "object"}
    return {
        "description": NESTED_KEYS["links"],
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "object", "properties": keys, "additionalProperties": False},
    }


def _parts(properties: Mapping[str, object]) -> dict[str, object]:
    """Studies within the study, with some of its keys."""
    return {
        "description": NESTED_KEYS["parts"],
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "properties": {name: properties[name] for name in PART_KEYS},
            "additionalProperties": False,
        },
    }


def schema_text() -> str:
    """The text of the schema's file."""
    return json.dumps(study_schema(), indent=2, ensure_ascii=False) + "\n"


def _top_level(key: TopLevelKey) -> dict[str, object]:
    described: dict[str, object] = {"description": key.description, **key.schema}
    if key.default:
        described["default"] = int(key.default) if key.default.isdigit() else key.default
    return described


def _one_or_more(schema: dict[str, object]) -> dict[str, object]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


def _factor(factor: Factor) -> dict[str, object]:
    described: dict[str, object] = {"description": factor.description, **_one_or_more(dict(factor.schema))}
    if factor.default is not None:
        written = factor.write(factor.default)
        described["default"] = int(written) if written.isdigit() else written
    return described


def main() -> None:
    """Writes the file in a checkout."""
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
