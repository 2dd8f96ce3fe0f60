# SPDX-License-Identifier: Apache-2.0
"""The topics of a workload file: payload, type, QoS, domain, security and adapter of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from lagometer.study.distribution import read_distribution
from lagometer.study.document import Entries, Scalar, Tree
from lagometer.study.factors import FACTORS_BY_NAME, parse_domains
from lagometer.study.load_shape import ContentFile, load_content
from lagometer.study.schedule import RECORDED
from lagometer.study.traffic import TopicSettings
from lagometer.study.values import Problems, is_null, nearest, parsed, single
from lagometer.units import UnitError, parse_payload_bytes

FACTOR_KEYS = (
    "payload",
    "type",
    "content",
    "reliability",
    "history",
    "depth",
    "durability",
    "lifespan",
    "liveliness",
    "partition",
    "instances",
    "domain",
    "security",
    "adapter",
)
TOPIC_KEYS = (*FACTOR_KEYS, "deadline")
DEADLINE = "deadline_period"  # the factor that a topic's key `deadline` sets


def read_topics(
    value: Tree | None,
    published: Collection[str],
    described: Iterable[tuple[str, str, Entries]],
    folder: Path,
    problems: Problems,
) -> tuple[dict[str, TopicSettings], dict[str, ContentFile]]:
    """The key `topics`, and the files that payloads are filled from, by their names in it.

    described: topics that other keys describe: name, place, settings.
    """
    contents: dict[str, ContentFile] = {}
    settings = {topic: _topic(item, where, folder, contents, problems) for topic, where, item in described}
    if value is None:
        return settings, contents
    if not isinstance(value, Entries):
        problems.add("has no topics under it", value.line, "topics", "write `image: {payload: 900KB}`")
        return settings, contents
    for key, item in value.entries:
        where = f"topics.{key.text}"
        if key.text not in published:
            message = f"no node publishes the topic '{key.text}'"
            problems.add(message, key.line, "topics", nearest(key.text, sorted(published)))
        elif not isinstance(item, Entries):
            problems.add(
                "says nothing of the topic", key.line, where, f"write one of {', '.join(TOPIC_KEYS)}"
            )
        else:
            settings[key.text] = _topic(item, where, folder, contents, problems)
    return settings, contents


def _topic(
    value: Entries, where: str, folder: Path, contents: dict[str, ContentFile], problems: Problems
) -> TopicSettings:
    topic = TopicSettings()
    for key, item in value.entries:
        key_path = f"{where}.{key.text}"
        if key.text not in TOPIC_KEYS:
            problems.add(f"unknown key '{key.text}'", key.line, where, nearest(key.text, TOPIC_KEYS))
        elif key.text == "payload" and isinstance(item, Entries):
            topic = replace(
                topic, payload=read_distribution(item, key_path, parse_payload_bytes, folder, problems)
            )
        elif key.text == "adapter" and is_null(item):
            topic = replace(topic, adapter="null")  # the adapter of that name, as in a matrix
        else:
            scalar = single(item, key_path, problems)
            if scalar is not None:
                topic = _with(topic, key.text, scalar, key_path, folder, contents, problems)
    return topic


def _with(
    topic: TopicSettings,
    key: str,
    scalar: Scalar,
    key_path: str,
    folder: Path,
    contents: dict[str, ContentFile],
    problems: Problems,
) -> TopicSettings:
    if key == "content" and scalar.text.startswith(RECORDED):
        try:
            file = load_content(scalar.text, folder)
        except UnitError as error:
            problems.add(str(error), scalar.line, key_path)
            return topic
        contents[file.name] = file
        return replace(topic, content=RECORDED + file.name)
    if key == "domain":
        domain, across = parsed(scalar, key_path, parse_domains, problems) or (None, None)
        return replace(topic, domain=domain, domain_across=across)
    factor = FACTORS_BY_NAME[DEADLINE if key == "deadline" else key]
    return replace(topic, **{factor.field: parsed(scalar, key_path, factor.parse, problems)})  # type: ignore[arg-type]
