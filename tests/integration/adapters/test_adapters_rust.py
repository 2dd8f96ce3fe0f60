# SPDX-License-Identifier: Apache-2.0
"""Adapters in Rust: their half of the ABI is the header's, a panic stays inside, full queues lose nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from needs import MIDDLEWARE, ROOT, adapter_library, need, rust_folder, rust_profile
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, plan, reader, timer, writer
from worker_support import run_private

from lagometer.store.records import KIND_RECEIVED, KIND_SENT
from lagometer.study.adapters import NOT_FOR_MEASURING

WORKSPACE = ROOT / "adapters"
CRATE = WORKSPACE / "rust"
IN_RUST = [name for name in MIDDLEWARE if (WORKSPACE / name / "Cargo.toml").exists()]
HEADER = ROOT / "engine" / "include" / "lagometer" / "adapter.h"
EXTENSIONS = [HEADER.with_name(name) for name in ("stamps.h", "services.h")]  # the Rust half has what it uses
# Middleware that is not called as its adapter is.
CRATES = {"ros2_rust": "ros2-client"}
CRATES_WITH_TESTS = ("rust", "dust_dds", "hiroz", "ros2_rust", "rustdds_common", "rustdds", "zenoh_common")
# The fields that have a Rust name of their own, since C's is a word of the language.
C_FIELDS = {"type_": "type", "this": "self"}


def layouts() -> dict[str, tuple[int, dict[str, int]]]:
    """Size and offsets of each struct, as the Rust half has them checked when it is compiled."""
    text = (CRATE / "src" / "layout.rs").read_text(encoding="utf-8")
    found = {}
    for name, size, fields in re.findall(
        r"^layout!\(\s*\w+,\s*(\w+),\s*(\d+),\s*\{(.*?)\}\s*\)", text, re.M | re.S
    ):
        offsets = dict(re.findall(r"(\w+): (\d+)", fields))
        found[name] = (int(size), {C_FIELDS.get(field, field): int(at) for field, at in offsets.items()})
    return found


def check_in_c(folder: Path, assertions: list[str]) -> None:
    """Has the C compiler check assertions about the header."""
    source = folder / "check.c"
    includes = ["#include <stddef.h>", *(f'#include "lagometer/{path.name}"' for path in EXTENSIONS)]
    source.write_text("\n".join([*includes, *assertions, ""]))
    command = ["cc", "-std=c11", f"-I{HEADER.parents[1]}", "-fsyntax-only", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_rust_half_of_the_abi_is_laid_out_as_the_header(tmp_path: Path) -> None:
    need("cc")
    structs = layouts()
    header = "".join(path.read_text(encoding="utf-8") for path in (HEADER, *EXTENSIONS))
    assert set(structs) == set(re.findall(r"^} (lagometer_\w+);", header, re.M)), "a struct is not compared"
    lines = []
    for name, (size, fields) in structs.items():
        lines.append(f'_Static_assert(sizeof({name}) == {size}, "{name}");')
        lines += [
            f'_Static_assert(offsetof({name}, {field}) == {offset}, "{name}.{field}");'
            for field, offset in fields.items()
        ]
    check_in_c(tmp_path, lines)


def test_the_rust_half_has_every_constant_of_the_header(tmp_path: Path) -> None:
    need("cc")
    text = (CRATE / "src" / "abi.rs").read_text(encoding="utf-8")
    constants = dict(re.findall(r"^pub const (\w+): \w+ = ([^;]+);", text, re.M))
    named, *further = (
        set(re.findall(r"^#define LAGOMETER_(\w+) ", header.read_text(encoding="utf-8"), re.M))
        for header in (HEADER, *EXTENSIONS)
    )
    assert named - {"NOEXCEPT"} <= set(constants) <= named.union(*further)
    check_in_c(
        tmp_path,
        [
            f'_Static_assert(LAGOMETER_{name} == ({value.replace("_", "")}), "{name}");'
            for name, value in constants.items()
        ],
    )


@pytest.fixture(scope="module")
def own_programs(build: Path) -> dict[str, list[str]]:
    """The crates' own test programs, by folder below adapters/.

    Built at once and with the profile of the adapters: so all that they depend on is there. The crates'
    own code is not optimised, which would take a minute more.
    """
    need("rust")
    built = [name for name in IN_RUST if adapter_library(name, build).exists()]
    chosen = [f"--package=lagometer-{name}" for name in ("adapter", *built)]  # else crates may not be there
    if len(built) == len(IN_RUST):
        chosen = ["--workspace"]
    command = [
        f"{rust_folder()}/cargo",
        "test",
        f"--profile={rust_profile()}",
        "--locked",
        "--offline",
        "--no-run",
    ]
    for name in ("adapter", "rustdds_common", "zenoh_common", *IN_RUST):
        command.append(f"--config=profile.{rust_profile()}.package.lagometer-{name}.opt-level=0")
    result = subprocess.run(
        [*command, "--message-format=json-render-diagnostics", *chosen],
        cwd=WORKSPACE,
        env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "build" / "cargo")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    programs: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        made = json.loads(line)
        if made["reason"] == "compiler-artifact" and made["profile"]["test"]:
            folder = Path(made["manifest_path"]).parent.name
            programs.setdefault(folder, []).append(made["executable"])
    return programs


@pytest.mark.cpu_heavy  # whoever is first builds them
@pytest.mark.parametrize("crate", CRATES_WITH_TESTS)
def test_a_crates_own_tests(own_programs: dict[str, list[str]], crate: str) -> None:
    """Among those of the shared crate: a panic becomes a status, and nothing is called after it."""
    need({"rust": "iceoryx2"}.get(crate, crate.removesuffix("_common")))
    said = ""
    for program in own_programs[crate]:
        result = subprocess.run([program], cwd=WORKSPACE / crate, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
        said += result.stdout
    assert re.search(r"^running [1-9]\d* tests?$", said, re.M)


@pytest.mark.parametrize("adapter", IN_RUST)
def test_the_version_told_is_the_one_that_is_fixed(build: Path, adapter: str) -> None:
    need(adapter)
    manifest = (WORKSPACE / "Cargo.toml").read_text(encoding="utf-8")
    crate = CRATES.get(adapter, adapter)
    fixed = re.search(rf'^{crate} = (?:\{{ version = )?"=([^"]+)"', manifest, re.M)
    assert fixed, "its version is not exact"
    worker = build / "engine" / "lagometer-worker"
    library = adapter_library(adapter, build)
    result = subprocess.run(
        [str(worker), "--probe", str(library)], capture_output=True, check=True, timeout=30
    )
    remark = {"release": "", "ci": f" (opt-level 1{NOT_FOR_MEASURING}"}[rust_profile()]
    assert json.loads(result.stdout)["version"] == fixed[1] + remark


@pytest.mark.parametrize("reliability", ["reliable", "best_effort"])
def test_a_full_queue_of_iceoryx2_holds_up_or_refuses(build: Path, reliability: str) -> None:
    """Nothing accepted is lost: a reliable writer waits for room, a best-effort one is refused at once."""
    need("netns")
    need("iceoryx2")
    endpoint: Mapping = {"qos": {"reliability": reliability, "history": "keep_all"}}
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(2 * MILLISECOND_NS)], "waitset")
    sink_work = any_message(work_ns=20 * MILLISECOND_NS)
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [sink_work], "waitset")
    phases = {"warmup_ns": 0, "measure_ns": 400 * MILLISECOND_NS, "drain_ns": 800 * MILLISECOND_NS}
    library = adapter_library("iceoryx2", build)
    plans = [plan(library, "/dev/shm/lagometer", [each], **phases) for each in (source, sink)]
    plans[1]["worker"]["index"] = 1
    for each in plans:
        each["adapters"][0]["options"] = {"keep_all_messages": 8}
    send, listen = run_private(build, plans)
    sent, received = send.lane(KIND_SENT, 0, 0), listen.lane(KIND_RECEIVED, 1, 0)
    accepted = sent[sent["status"] == 0]["sequence"].tolist()
    assert len(received) > 8
    assert received["sequence"].tolist() == accepted[: len(received)]
    refused = int((sent["status"] == 1).sum())
    assert (refused > 0) == (reliability == "best_effort")
    assert send.event("done")["writers"][0]["counters"]["rejected"] >= refused
