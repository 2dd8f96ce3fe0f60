# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: every adapter passes or declares, and one that is broken in a known way fails it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import arguments_of, journal, lagometer, programs, write_study
from conformance_support import abilities, abilities_to_show, broken_lines, conformance
from needs import FLOORS, IN_PYTHON, MIDDLEWARE, ROOT, STACKED, adapter_library, guard_build_folder, need

from lagometer.conformance.intermittent import intermittent_of
from lagometer.store.reader import open_campaign

pytestmark = pytest.mark.by_turn

Mapping = dict[str, Any]
HANG_S = "5"
# A service of iceoryx2 has room for as many as it is told when it is made. Fast DDS 2.9.1 crashes now and
# then where it delivers within a process (the adapter's README, Known limits). Endpoints of eCAL meet when
# their processes tell of themselves for the second time, by default after a second, and what a subscriber has
# not read before the next message is lost on a busy machine.
SET_UP = {
    "ecal-py": ("--option", "registration_refresh_ms=100", "--option", "acknowledge_timeout_ms=1000"),
    "iceoryx2": ("--option", "max_publishers=64", "--option", "max_subscribers=64"),
    "fastdds": ("--option", "intra_process=off"),
}
# What the middleware does not do although it is declared: the adapter's README, Known limits. What it fails
# in some runs alone is in its intermittent.json.
FAILING = {"dust_dds": {"reopening"}}


@pytest.mark.parametrize("adapter", (*FLOORS, *MIDDLEWARE, *STACKED, *IN_PYTHON))
def test_an_adapter_does_what_it_declares(build: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    code, results, _ = conformance(build, adapter, *abilities_to_show(adapter), *SET_UP.get(adapter, ()))
    found = abilities(results)
    failed = {name: broken_lines(each) for name, each in found.items() if each["verdict"] == "fail"}
    known = intermittent_of(ROOT / "adapters" / adapter)
    excused = {name for name, broken in failed.items() if name in known and known[name].explains(broken)}
    assert set(failed) - excused == FAILING.get(adapter, set()) & set(found), failed
    sidecar = json.loads((adapter_library(adapter, build).parent / "adapter.json").read_text())["abilities"]
    for name, listed in (
        ("listener", "listener" in sidecar["dispatch"]),
        ("waitset", "waitset" in sidecar["dispatch"]),
        ("reliable", "reliable" in sidecar["reliability"]),
        ("keep-all", "keep_all" in sidecar["history"]),
        ("transient-local", "transient_local" in sidecar["durability"]),
    ):
        if name in found and name not in excused:
            assert (found[name]["verdict"] == "pass") == listed, found[name]
    assert code == (3 if failed else 0)
    assert results["conforms"] is not bool(failed)


def broken_adapter(build: Path, folder: Path, what: str, over: str = "shm", **changes: Any) -> None:
    """Puts an adapter outside the tree: another one, with one line of the contract broken."""
    need("netns")
    need(over)
    library = guard_build_folder() / "tests" / "adapters" / "liblagometer_broken.so"
    assert library.exists(), f"{library} is missing: run tools/setup --test"
    sidecar = json.loads((adapter_library(over, build).parent / "adapter.json").read_text())
    sidecar |= {
        "name": "broken",
        "title": f"{over}, broken",
        "library": library.name,
        "environment": {
            "LAGOMETER_BREAK": what,
            "LAGOMETER_BROKEN_OVER": str(adapter_library(over, build)),
        },
    }
    own = folder / "broken"
    own.mkdir()
    (own / library.name).symlink_to(library)
    sidecar["abilities"] |= changes
    (own / "adapter.json").write_text(json.dumps(sidecar))


BREAKS = [
    ("name", "contract", "table: the sidecar's name"),
    ("extension", "contract", "extension: null for a name that nobody has"),
    ("destroy-null", "contract", "destroy: null does nothing"),
    ("probe-twice", "contract", "probe: a version, abilities and limits as in the sidecar, once"),
    ("old-host", "contract", "entry: null for a host of ABI version 0"),
    ("grown-host", "contract", "entry: serves a host that has grown"),
    ("beyond", "contract", "structs to fill: nothing is written beyond their size"),
    ("describe", "contract", "describe: settings with value and default, known transports"),
    (
        "transport",
        "contract",
        'known transports: transport of a context says "shm"; known are: ["process","shared-memory",',
    ),
    ("transport", "settings", "unix-socket, tcp, udp; did you mean 'shared-memory'?"),
    (
        "describe-key",
        "contract",
        'known transports: describe of a context has the key "a", which nobody reads; known are: ["settings"',
    ),
    ("describe-key", "settings", "describe of a context: it has the unknown key 'a'"),
    (
        "policy",
        "contract",
        "refuses: each policy that the sidecar does not list (UNSUPPORTED): a writer with the policy",
    ),
    ("policy-of-readers", "contract", "a reader with the policy deadline, which the sidecar does not list"),
    ("security", "contract", "refuses: security that the sidecar does not list: a context with security"),
    ("silent", "contract", "refuses: an unknown type"),
    ("unknown-flag", "contract", "refuses: an unknown flag of an endpoint (INVALID)"),
    ("early", "contract", "enable: nothing arrives before it"),
    ("borrow", "contract", "borrow: regions that are the payload, in order, writable"),
    ("discard", "contract", "discard: nothing is sent, nothing is used up"),
    ("stride", "contract", "take: nothing between elements that lie `stride` apart"),
    ("counter", "contract", "counters: known ones alone"),
    ("wait", "contract", "wait: TIMEOUT at its time, not before"),
    ("trigger", "contract", "trigger: ends a wait that is under way"),
    ("allocation", "contract", "measuring: the adapter's own code allocates nothing"),
    ("log", "contract", "measuring: nothing is logged"),
    ("signalled", "contract", "take: known flags and clocks, signalled_ns as the sidecar's stamps say"),
    ("thread", "contract", "threads: begin and end are told to the host"),
    (
        "thread-end",
        "contract",
        "threads: begin and end are told to the host: threads called thread_end",
    ),
    (
        "thread-silent",
        "contract",
        "threads: each that the adapter creates calls thread_begin: the thread that calls on_data has not",
    ),
    ("unknown-option", "options", "an unknown option is refused"),
    ("settings", "settings", "keep_all_messages"),
    ("domain", "domains", "does not hear the other"),
    ("damage", "sizes", "B of bytes, byte for byte"),
    ("drop", "reliable", "all came"),
    ("crash", "reliable", "from the beginning"),
    ("hang", "reliable", "from the beginning"),
    ("leak", "reopening", "descriptors"),
    ("leak-thread", "reopening", "threads"),
    ("late", "reopening", "no callback after its reader is destroyed"),
    ("hang-destroy", "reopening", f"made no progress for {HANG_S} s at 'reopen'"),
]


@pytest.mark.parametrize(("what", "ability", "line"), BREAKS, ids=[each[0] for each in BREAKS])
def test_a_broken_adapter_fails_the_line_that_it_breaks(
    build: Path, tmp_path: Path, what: str, ability: str, line: str
) -> None:
    broken_adapter(build, tmp_path, what)
    code, results, messages = conformance(
        build, "broken", "--only", ability, "--hang-after", HANG_S, path=tmp_path
    )
    found = abilities(results)[ability]
    assert found["verdict"] == "fail", (found, messages)
    assert any(each.startswith(line) or line in each for each in broken_lines(found)), broken_lines(found)
    assert code == 3


BY_KEY = "messages came, and the sender's stamps of each are found by its key: "
KEYLESS = "no message has a key, as the sidecar says: "


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("nothing", None),
        ("layer-key", BY_KEY),
        ("layer-missing", "sender: every layer that is declared is stamped: "),
        ("layer-order", "sender: stamps in order, a layer entered before it is left: "),
    ],
)
@pytest.mark.parametrize("over", ["cyclonedds", "fastdds", "rustdds", "ros2_rust", "hiroz", "ros1"])
def test_stamps_of_layers_that_do_not_fit_their_messages_fail(
    build: Path, tmp_path: Path, over: str, what: str, line: str | None
) -> None:
    """Cyclone DDS tells no sequence number, so its key is the time of sending; ROS 1 has no key; the others
    have a number."""
    broken_adapter(build, tmp_path, what, over)
    line = KEYLESS if line == BY_KEY and over == "ros1" else line
    code, results, messages = conformance(build, "broken", "--only", "layers", path=tmp_path)
    broken = broken_lines(abilities(results)["layers"])
    assert any(line in each for each in broken) if line else not broken, (broken, messages)
    assert code == (3 if line else 0)


@pytest.mark.parametrize(("over", "by_number"), [("fastdds", True), ("cyclonedds", False)])
def test_stamps_of_an_adapters_own_thread_find_their_messages(
    build: Path, tmp_path: Path, over: str, by_number: bool
) -> None:
    """By its key (`stamp_keyed`), and by its number (`stamp`) where the middleware gives readers a number."""
    broken_adapter(build, tmp_path, "layer-thread", over)
    matrix = {"adapter": "broken", "workload": "pipeline-2", "rate": "20Hz"}
    study = write_study(tmp_path, layers="on", machine_floor="off", matrix=matrix)
    environment = {**programs(build), "LAGOMETER_ADAPTER_PATH": str(tmp_path)}
    for _ in range(3):  # a busy machine misses the rate
        out = tmp_path / "out"
        code, _, said = lagometer(tmp_path, *arguments_of(study, out), environment=environment)
        assert code in (0, 3), said
        [entry] = journal(out)
        if entry["valid"]:
            break
    assert entry["valid"], entry["reasons"]
    opened = open_campaign(out)
    stamps = pl.read_parquet(opened.stamps_path(entry["cell"], entry["trial"]))
    entered = stamps.filter(pl.col("side").cast(pl.String()) == "sender", ~pl.col("end"))
    numbers = {str(layer): sorted(of["sequence"].to_list()) for (layer,), of in entered.group_by("layer")}
    samples = opened.samples(entry["cell"], entry["trial"])
    of_edge = samples.filter(pl.col("edge").cast(pl.String()) == "source→sink")
    sent = sorted(of_edge["sequence"].to_list())
    assert len(sent) >= 5
    assert numbers["write"] == numbers["vendor-0"] == sent
    assert numbers.get("vendor-1", []) == (sent if by_number else [])


def test_a_server_is_asked_before_it_can_answer(build: Path, tmp_path: Path) -> None:
    """A listener is called from its reader's enable on, while the writer of the replies is still enabled."""
    broken_adapter(build, tmp_path, "enable-late", "ros1")
    matrix = {"adapter": "broken", "workload": "request-reply", "rate": "20Hz", "dispatch": "listener"}
    study = write_study(tmp_path, machine_floor="off", matrix=matrix)
    environment = {**programs(build), "LAGOMETER_ADAPTER_PATH": str(tmp_path)}
    out = tmp_path / "out"
    code, _, said = lagometer(tmp_path, *arguments_of(study, out), environment=environment)
    assert code in (0, 3), said
    [entry] = journal(out)
    assert not [reason for reason in entry["reasons"] if reason.startswith("adapter-failed")]


def test_a_process_that_hangs_names_its_last_call(build: Path, tmp_path: Path) -> None:
    broken_adapter(build, tmp_path, "hang")
    _, results, _ = conformance(build, "broken", "--only", "reliable", "--hang-after", HANG_S, path=tmp_path)
    reason = abilities(results)["reliable"]["reason"]
    assert re.search(
        rf"no progress for {HANG_S} s at 'send': at \d+ of 500; last call: commit, under way for \d",
        reason,
    ), reason


def test_a_process_that_dies_names_the_call_it_died_in(build: Path, tmp_path: Path) -> None:
    broken_adapter(build, tmp_path, "crash")
    _, results, _ = conformance(build, "broken", "--only", "reliable", path=tmp_path)
    assert "died of SIGABRT at 'send', in commit" in abilities(results)["reliable"]["reason"]


def test_what_is_not_broken_is_found_whole(build: Path, tmp_path: Path) -> None:
    """The control of the test above, and an adapter outside the tree."""
    broken_adapter(build, tmp_path, "nothing")
    wanted = sorted({ability for _, ability, _ in BREAKS})
    only = [word for ability in wanted for word in ("--only", ability)]
    code, results, _ = conformance(build, "broken", *only, path=tmp_path)
    found = abilities(results)
    assert {name: broken_lines(each) for name, each in found.items() if broken_lines(each)} == {}
    assert code == 0


def test_a_thread_may_notice_messages_that_are_polled_where_the_sidecar_says_so(
    build: Path, tmp_path: Path
) -> None:
    stamps = {"listener": ["signalled"], "waitset": ["signalled", "woken"], "poll": ["signalled"]}
    broken_adapter(build, tmp_path, "signalled", stamps=stamps)
    only = ("--only", "contract", "--only", "output")
    _, results, _ = conformance(build, "broken", *only, path=tmp_path)
    found = abilities(results)
    assert {name: broken_lines(each) for name, each in found.items()} == {"contract": [], "output": []}


@pytest.mark.parametrize(
    ("what", "stamps", "ability", "line"),
    [
        ("nothing", {"poll": ["signalled"]}, "contract", "signalled_ns is 0 with dispatch poll: "),
        (
            "nothing",
            {"waitset": ["signalled", "woken"]},
            "contract",
            "signalled_ns is 0 with dispatch waitset: ",
        ),
        (
            "signalled",
            {"poll": ["signalled"]},
            "contract",
            "signalled_ns is set with dispatch waitset: leave it 0, or, if a thread of the adapter's own",
        ),
        (
            "nothing",
            {"listener": []},
            "output",
            'which the sidecar does not list: write "listener": ["signalled"] under abilities.stamps',
        ),
        ("nothing", {"waitset": []}, "output", "by waitset: messages have woken, which the sidecar does not"),
        ("nothing", {"poll": ["woken"]}, "output", "by poll: no message has woken, which the sidecar lists"),
    ],
)
def test_stamps_that_messages_do_not_have_and_those_that_are_not_listed_fail(
    build: Path, tmp_path: Path, what: str, stamps: Mapping, ability: str, line: str
) -> None:
    listed = {"listener": ["signalled"], "waitset": ["woken"], "poll": []}
    broken_adapter(build, tmp_path, what, stamps={**listed, **stamps})
    code, results, messages = conformance(build, "broken", "--only", ability, path=tmp_path)
    (broken,) = broken_lines(abilities(results)[ability])
    assert line in broken, messages
    assert code == 3


@pytest.mark.parametrize(
    ("over", "declared", "verdict", "words"),
    [
        ("udp", {}, "absent", "drops says that a full queue loses what comes"),
        ("udp", {"drops": "oldest"}, "fail", "declare `drops: newest`, or return REJECTED from commit"),
        ("shm", {"depth": False}, "pass", ""),
        ("shm", {"drops": "newest"}, "fail", "the queue dropped its oldest: leave `drops` out"),
        ("tcp", {"drops": "newest"}, "absent", "(not judged: a message was rejected after "),
    ],
)
def test_what_a_full_queue_loses_is_what_the_sidecar_declares(
    build: Path, tmp_path: Path, over: str, declared: Mapping, verdict: str, words: str
) -> None:
    """Also if the depth has no effect: somebody's adapter passed, whose buffer was never full."""
    broken_adapter(build, tmp_path, "nothing", over, **declared)
    code, results, messages = conformance(build, "broken", "--only", "keep-last", path=tmp_path)
    found = abilities(results)["keep-last"]
    assert found["verdict"] == verdict, (found, messages)
    assert words in found["reason"]
    assert code == (3 if verdict == "fail" else 0)


@pytest.mark.parametrize(("over", "broken"), [("shm", True), ("udp", False)])
def test_the_scope_network_means_another_host(build: Path, tmp_path: Path, over: str, broken: bool) -> None:
    """Shared memory is another one there, whatever the sidecar says."""
    for name in ("root", "mount", "ip", "ethtool"):
        need(name)
    broken_adapter(build, tmp_path, "nothing", over)
    path = tmp_path / "broken" / "adapter.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "scope": "network"}))
    _, results, _ = conformance(build, "broken", "--only", "output", path=tmp_path)
    (line,) = [
        each for each in abilities(results)["output"]["lines"] if each["name"].startswith("messages go from")
    ]
    assert line["passed"] is not broken, line
    assert ('declare `"scope": "host"`' in line["detail"]) == broken, line


def test_an_adapter_that_prints_on_standard_output_is_heard_all_the_same(build: Path, tmp_path: Path) -> None:
    broken_adapter(build, tmp_path, "print")
    code, results, _ = conformance(build, "broken", "--only", "output", path=tmp_path)
    found = abilities(results)["output"]
    assert (code, found["verdict"]) == (0, "pass"), broken_lines(found)
    assert "bytes were printed there" in found["lines"][0]["detail"]


def test_an_ability_that_is_declared_and_not_there_fails(build: Path, tmp_path: Path) -> None:
    broken_adapter(build, tmp_path, "nothing", durability=["volatile", "transient_local"])
    code, results, _ = conformance(build, "broken", "--only", "transient-local", path=tmp_path)
    assert abilities(results)["transient-local"]["verdict"] == "fail"
    assert code == 3


def test_what_the_manual_has_and_the_adapter_lacks_is_red_and_fails_strictly(
    build: Path, tmp_path: Path
) -> None:
    broken_adapter(build, tmp_path, "nothing")
    entry = {"has": True, "section": "chapter 4, Late joiners"}
    manual = {"middleware": "m", "manual": "the manual of m", "abilities": {"transient-local": entry}}
    (tmp_path / "broken" / "manual.json").write_text(json.dumps(manual))
    for strict, expected in (((), 0), (("--strict",), 3)):
        code, results, _ = conformance(build, "broken", "--only", "transient-local", *strict, path=tmp_path)
        found = abilities(results)["transient-local"]
        assert found["verdict"] == "absent-against-manual"
        assert "the manual of m has it: chapter 4, Late joiners" in found["reason"]
        assert code == expected


def test_what_is_asked_wrongly_has_its_exit_codes(build: Path, tmp_path: Path) -> None:
    for arguments, expected in (
        ((), 2),
        (("no-such-adapter",), 2),
        (("shm", "--only", "no-such-ability"), 2),
        (("shm", "--option", "no_such_option=1"), 2),
        (("shm", "--network", "elsewhere"), 2),
    ):
        code, answer, _ = conformance(build, *arguments)
        assert (code, answer["error"]["exit_code"]) == (expected, expected), arguments
    (tmp_path / "absent").mkdir()
    sidecar = json.loads((build / "adapters" / "shm" / "adapter.json").read_text())
    (tmp_path / "absent" / "adapter.json").write_text(json.dumps({**sidecar, "name": "absent"}))
    (tmp_path / "absent" / "missing.txt").write_text("the middleware is not installed")
    code, answer, _ = conformance(build, "absent", path=tmp_path)
    assert code == 4
    assert "the middleware is not installed" in answer["error"]["message"]


@pytest.mark.parametrize(("what", "state"), [("name", "fails"), ("nothing", "ready")])
def test_a_library_with_another_name_than_its_sidecar_is_not_listed_as_ready(
    build: Path, tmp_path: Path, what: str, state: str
) -> None:
    broken_adapter(build, tmp_path, what)
    programs = {
        f"LAGOMETER_{name.upper()}": str(build / "engine" / f"lagometer-{name}")
        for name in ("worker", "conformance")
    }
    command = [sys.executable, "-m", "lagometer.cli.main", "adapters", "--json"]
    environment = {**os.environ, **programs, "LAGOMETER_ADAPTER_PATH": str(tmp_path)}
    result = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)
    (row,) = [each for each in json.loads(result.stdout)["adapters"] if each["name"] == "broken"]
    both = "says that its name is 'somebody-else', and its adapter.json says 'broken'"
    assert (row["state"], both in (row["reason"] or "")) == (state, state == "fails"), row


@pytest.mark.parametrize(
    ("what", "command"),
    [*(("name", name) for name in ("measure", "run", "profile", "search")), ("nothing", "run")],
)
def test_a_library_with_another_name_than_its_sidecar_is_not_measured(
    build: Path, tmp_path: Path, what: str, command: str
) -> None:
    broken_adapter(build, tmp_path, what)
    refused = what == "name"
    environment = {
        **programs(build),
        "LAGOMETER_CONFORMANCE": str(build / "engine" / "lagometer-conformance"),
        "LAGOMETER_ADAPTER_PATH": str(tmp_path),
    }
    matrix = {"adapter": "broken", "workload": "pipeline-2", "rate": "20Hz"}
    study = write_study(tmp_path, matrix=matrix, machine_floor="off")
    lines = {
        "run": ("run", str(study), "--out", str(tmp_path / "out"), "--no-report", "--json"),
        "search": ("search", str(study), "--out", str(tmp_path / "out"), "--low", "100Hz"),
    }
    one_cell = (command, "broken", "--rate", "20Hz", "--duration", "500ms", "--json")
    code, output, errors = lagometer(tmp_path, *lines.get(command, one_cell), environment=environment)
    wrong = (
        "says that its name is 'somebody-else', and its adapter.json says 'broken': write one name in both"
    )
    assert (code == 2, wrong in output + errors) == (refused, refused), output + errors


def test_a_pair_of_the_contract_that_hears_nothing_says_what_each_side_counts(
    build: Path, tmp_path: Path
) -> None:
    """The first line with a pair, over Unix sockets that drop every message: the wait for it is 20 s."""
    order = {
        "do": "contract",
        "from": 6,
        "sidecar": json.loads((build / "adapters" / "faulty" / "adapter.json").read_text()),
        "options": {"over": "uds", "library": str(adapter_library("uds", build)), "drop": 1, "probes": True},
        "depth": 16,
    }
    load = {"library": str(adapter_library("faulty", build)), "runtime_directory": str(tmp_path)}
    with subprocess.Popen(
        [build / "engine" / "lagometer-conformance"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in ({"do": "load", **load}, order)))
        process.stdin.flush()
        judged = next(line for line in map(json.loads, process.stdout) if "line" in line)
        process.kill()
    assert judged["line"] == "describe: settings with value and default, known transports"
    assert judged["detail"] == (
        "no probe came (the writer counts 1 of 1 readers, the reader counts 1 of 1 writers) within 20 s"
    )
