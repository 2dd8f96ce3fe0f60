# SPDX-License-Identifier: Apache-2.0
"""Damaged plans for the worker in Python: it never dies of one, never hangs, always says what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from needs import IN_PYTHON, ROOT, adapter_library, as_offered, need
from plan_parts import MILLISECOND_NS
from test_plan_mutation import AT_ONCE, SEED, damaged, short_plans, wrong_with

MUTATIONS = int(os.environ.get("LAGOMETER_MUTATIONS_PYTHON", "200"))
TIMEOUT_S = 60.0
# In a network of its own, since a plan that is still sound makes middleware look for its peers, and with
# shared memory of its own, where middleware leaves what it has when a worker gives up.
ISOLATED = 'ip link set lo up multicast on 2>/dev/null; mount -t tmpfs tmpfs /dev/shm && exec "$@"'


def command() -> list[str]:
    unshare = ["unshare", "-nm"] if os.geteuid() == 0 else ["unshare", "-Urnm"]
    worker = [sys.executable, "-I", "-m", "lagometer.worker_python"]
    return [*unshare, "sh", "-c", ISOLATED, "worker", *worker]


def sound_plans(adapter: str, folder: Path) -> list[dict[str, Any]]:
    return [as_offered(adapter, each) for each in short_plans(adapter_library(adapter), folder / "run")]


@pytest.mark.parametrize("adapter", IN_PYTHON)
def test_hundreds_of_damaged_plans(tmp_path: Path, adapter: str) -> None:
    need("netns")
    need("ip")
    need(adapter)
    print(f"LAGOMETER_SEED={SEED}")
    schema = jsonschema.Draft202012Validator(json.loads((ROOT / "schema" / "plan.schema.json").read_text()))
    bases = sound_plans(adapter, tmp_path)
    texts = []
    for number in range(MUTATIONS):
        chance = random.Random(f"{SEED} {adapter} {number}")
        texts.append(damaged(chance, chance.choice(bases)))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(pool.map(lambda each: wrong_with(command(), schema, each, tmp_path), texts))
    wrong = [(number, verdict) for number, verdict in enumerate(verdicts) if verdict]
    for number, verdict in wrong[:5]:
        print(f"plan {number}: {verdict}\n{texts[number][:6000].decode(errors='replace')}\n")
    assert not wrong, f"LAGOMETER_SEED={SEED}: {len(wrong)} of {MUTATIONS}: {wrong[:20]}"


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("adapter", IN_PYTHON)
def test_the_plans_that_are_damaged_are_sound(tmp_path: Path, adapter: str, index: int) -> None:
    need("netns")
    need("ip")
    need(adapter)
    base = sound_plans(adapter, tmp_path)[index]
    base["phases"]["discovery_timeout_ns"] = 20_000 * MILLISECOND_NS
    jsonschema.validate(base, json.loads((ROOT / "schema" / "plan.schema.json").read_text()))
    text = json.dumps(base).encode()
    result = subprocess.run(command(), input=text, capture_output=True, timeout=TIMEOUT_S)
    assert result.returncode == 0, (result.stdout[-500:], result.stderr[-500:])
