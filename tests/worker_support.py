# SPDX-License-Identifier: Apache-2.0
"""Workers driven by hand: started alone or under the supervisor in a private machine, listened to, ended."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lagometer.agent.daemons import Daemons, Wanted, started_with
from lagometer.installation import PYTHON_WORKER
from lagometer.run.companions.daemons import filled_daemons
from lagometer.store.errors import RecordsError
from lagometer.store.records import Lane, decode
from lagometer.study.adapters import load_adapter

Mapping = dict[str, Any]
TIMEOUT_S = 60.0
AHEAD_NS = 20_000_000  # of the common start when it is told
RUNTIME_DIRECTORY = "/dev/shm/lagometer"


@dataclass
class Said:
    """What a worker said: the events in their order, and its records."""

    events: list[Mapping] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    garbage: list[bytes] = field(default_factory=list)
    errors: str = ""
    code: int | None = None

    @property
    def names(self) -> list[str]:
        return [str(event.get("event")) for event in self.events]

    def event(self, name: str) -> Mapping:
        """The one event of this name."""
        found = [event for event in self.events if event.get("event") == name]
        assert len(found) == 1, (
            f"{len(found)} events {name}: {self.names} {self.events[-1:]} {self.errors[-2000:]}"
        )
        return found[0]

    def lane(self, kind: int, node: int, endpoint: int) -> Any:
        """The records of one endpoint, as a structured array."""
        found = [
            each for each in self.lanes if (each.kind, each.node, each.endpoint) == (kind, node, endpoint)
        ]
        assert len(found) == 1, f"{len(found)} lanes of kind {kind}, node {node}, endpoint {endpoint}"
        return found[0].records

    def hear(self, stream: IO[bytes], heard: threading.Condition | None = None) -> None:
        """Reads standard output to its end: JSON lines, and the block behind `records`."""
        while line := stream.readline():
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if not isinstance(event, dict):
                self.garbage.append(line)
                continue
            if event.get("event") == "records":
                block = stream.read(event["bytes"])
                assert f"{zlib.crc32(block):08x}" == event["crc32"]
                self.lanes = decode(block)
            with heard or contextlib.nullcontext():
                self.events.append(event)
                if heard:
                    heard.notify_all()


def line_of(plan: Mapping) -> bytes:
    return json.dumps(plan).encode() + b"\n"


def worker_command(build: Path, library: Path | str) -> list[str]:
    """How the worker that carries out this adapter is started."""
    if str(library).endswith(".py"):
        return [sys.executable, "-I", "-m", PYTHON_WORKER]
    return [str(build / "engine" / "lagometer-worker")]


def run_worker(
    build: Path,
    plan: Mapping | bytes,
    *,
    library: Path | str = "",
    environment: Mapping | None = None,
    seconds: float = TIMEOUT_S,
) -> Said:
    """Carries out one standalone plan in the host's network, for adapters that stay within the process or in
    their runtime directory. library: of the adapter that the worker is for, if that is not in C++. A plan
    must not name the folder of private machines: here nobody would remove it."""
    said = Said()
    text = plan if isinstance(plan, bytes) else line_of(plan)
    assert RUNTIME_DIRECTORY.encode() not in text
    result = subprocess.run(
        worker_command(build, library),
        input=text,
        capture_output=True,
        env={**os.environ, **(environment or {})},
        timeout=seconds,
    )
    said.code, said.errors = result.returncode, result.stderr.decode(errors="replace")
    said.hear(io.BytesIO(result.stdout))
    return said


class Worker:
    """One worker under the supervisor, with its pipes and what it said so far."""

    def __init__(self) -> None:
        self.input_read, self.input = os.pipe()
        self.output, self.output_write = os.pipe()
        self.error, self.error_write = os.pipe()
        self.records = os.memfd_create("test-records")
        self.heard = threading.Condition()
        self.said = Said()
        self.ended = False
        self._threads = [
            threading.Thread(target=self._hear_output),
            threading.Thread(target=self._hear_errors),
        ]

    def _hear_output(self) -> None:
        try:
            with os.fdopen(self.output, "rb") as stream:
                self.said.hear(stream, self.heard)
        finally:
            with self.heard:
                self.ended = True
                self.heard.notify_all()

    def _hear_errors(self) -> None:
        with os.fdopen(self.error, "rb") as stream:
            self.said.errors = stream.read().decode(errors="replace")

    def started(self) -> None:
        """The supervisor has its ends of the pipes: ours are closed, and read to the end from now on."""
        for descriptor in (self.input_read, self.output_write, self.error_write):
            os.close(descriptor)
        for thread in self._threads:
            thread.start()

    def send(self, message: Mapping) -> None:
        os.write(self.input, line_of(message))

    def wait_for(self, name: str, seconds: float = TIMEOUT_S) -> Mapping:
        """Waits until the worker says this; fails if it ends without."""
        with self.heard:
            self.heard.wait_for(lambda: self.ended or name in self.said.names, seconds)
            found = [event for event in self.said.events if event.get("event") == name]
        assert found, f"no {name}: {self.said.names} {self.said.events[-1:]} {self.said.errors[-2000:]}"
        return found[0]

    def lanes(self) -> list[Lane]:
        """What lies in its memfd now; nothing if the worker did not set it up yet."""
        try:
            return decode(os.pread(self.records, os.fstat(self.records).st_size, 0))
        except RecordsError:
            return []

    def wait_for_records(self, kind: int, count: int, seconds: float = TIMEOUT_S) -> None:
        """Waits until so many records of a kind lie in its memfd."""
        deadline = time.monotonic() + seconds
        while sum(len(lane.records) for lane in self.lanes() if lane.kind == kind) < count:
            assert time.monotonic() < deadline, f"fewer than {count} records: {self.said.names}"
            time.sleep(0.005)

    def end(self) -> Said:
        """Waits until the worker has closed its output, and gives what it said."""
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive(), f"the worker hangs: {self.said.names}"
        return self.said

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.input)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(TIMEOUT_S)
        with contextlib.suppress(OSError):
            os.close(self.records)


class Machine:
    """The supervisor and its workers."""

    def __init__(self, process: subprocess.Popen[bytes], workers: list[Worker]) -> None:
        self.process, self.workers = process, workers
        self.notices: list[Mapping] = []

    def notice(self, event: str, worker: int | None = None) -> Mapping:
        """Reads the supervisor's notices up to this one."""
        for each in self.notices:
            if each["event"] == event and (worker is None or each.get("worker") == worker):
                return each
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            notice = json.loads(line)
            self.notices.append(notice)
            if notice["event"] == event and (worker is None or notice.get("worker") == worker):
                return notice
        raise AssertionError(f"the supervisor never said {event}: {self.notices}")

    def match(self, plans: list[Mapping]) -> None:
        """Hands each worker its plan, and waits until all are matched."""
        for worker, plan in zip(self.workers, plans, strict=True):
            worker.send(plan)
        for worker in self.workers:
            worker.wait_for("matched")

    def go(self, *numbers: int, offsets_ns: Sequence[int] = ()) -> int:
        """Lets these workers (all if none is named) start together; says when, on CLOCK_MONOTONIC.
        offsets_ns: by how much the clock of each worker is ahead of ours."""
        at_ns = time.monotonic_ns() + AHEAD_NS
        for number in numbers or range(len(self.workers)):
            own_ns = at_ns + (offsets_ns[number] if offsets_ns else 0)
            self.workers[number].send({"command": "go", "at_ns": own_ns})
        return at_ns

    def finish(self) -> list[Said]:
        """Waits for all workers, and gives what each said and its exit code (negative: a signal)."""
        said = [worker.end() for worker in self.workers]
        for index, each in enumerate(said):
            notice = self.notice("exited", index)
            each.code = -notice["signal"] if "signal" in notice else notice["code"]
        return said


def daemons_beside(
    *libraries: Path, options: Mapping | None = None, profile: str = "default"
) -> list[Wanted]:
    """The daemons that these adapters need."""
    found: list[Wanted] = []
    for library in dict.fromkeys(libraries):
        if not (library.parent / "adapter.json").exists():
            continue
        adapter = load_adapter(library.parent)
        given = {adapter.name: options or {}}
        found += filled_daemons(adapter, given, profile, RUNTIME_DIRECTORY)
    return found


def daemons_of_plans(plans: Sequence[Mapping]) -> list[Wanted]:
    """The daemons that the adapters of these plans need, each once."""
    found: list[Wanted] = []
    for each in (adapter for plan in plans for adapter in plan["adapters"]):
        options, profile = each.get("options", {}), each.get("profile", "default")
        wanted = daemons_beside(Path(each["library"]), options=options, profile=profile)
        found += [daemon for daemon in wanted if daemon not in found]
    return found


def await_daemons(
    process: subprocess.Popen[bytes], wanted: Sequence[Wanted], outputs: Sequence[int]
) -> Sequence[int]:
    """Waits until the daemons of a supervisor serve, then has it start the workers; gives their processes."""
    assert process.stdin is not None and process.stdout is not None
    numbers: list[int] = []
    while len(numbers) < len(wanted):
        notice = json.loads(process.stdout.readline())
        assert notice["event"] in ("isolated", "companion-started"), notice
        numbers += [notice["pid"]] if "companion" in notice else []
    daemons = Daemons(wanted)
    deadline = time.monotonic() + TIMEOUT_S
    while (
        not daemons.attached
        or daemons.waiting_for(lambda place: os.pread(outputs[place], 65_536, 0)) is not None
    ):
        written = [os.pread(each, 4096, 0) for each in outputs]
        assert time.monotonic() < deadline and process.poll() is None, written
        daemons.attach(process.pid, numbers)
        time.sleep(0.005)
    process.stdin.write(b"start\n")
    process.stdin.flush()
    return daemons.processes


def await_ends(pids: Sequence[int]) -> None:
    """Waits until processes are gone: some daemons hold a lock of the host's, and the next one needs it."""
    deadline = time.monotonic() + TIMEOUT_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"a daemon does not end: {pids}"
        time.sleep(0.005)


@contextlib.contextmanager
def machine(build: Path, count: int, *, beside: Sequence[Wanted] = (), **more: Any) -> Iterator[Machine]:
    """Workers in a private machine, as `_machine` says; what the daemons left outside of it is removed."""
    with started_with(beside), _machine(build, count, beside=beside, **more) as private:
        yield private


def _companions(beside: Sequence[Wanted], outputs: Sequence[int]) -> list[Mapping]:
    """Daemons as the supervisor starts them, each with where it writes to."""
    return [
        {
            "argv": list(each.companion.arguments),
            "environment": dict(each.companion.environment),
            "daemon": True,
            "output": output,
        }
        for each, output in zip(beside, outputs, strict=True)
    ]


@contextlib.contextmanager
def _machine(
    build: Path,
    count: int,
    *,
    environment: Mapping | None = None,
    wrap: tuple[str, ...] = (),
    wraps: Sequence[tuple[str, ...]] = (),
    beside: Sequence[Wanted] = (),
    libraries: Sequence[Path | str] = (),
) -> Iterator[Machine]:
    """Workers in a private machine; each waits for its plan. `wrap`: a command before each worker, `wraps`:
    one for each of them; `beside`: daemons, which serve before the workers start; `libraries`: of the adapter
    that each worker is for."""
    workers = [Worker() for _ in range(count)]
    outputs = [os.memfd_create("test-daemon") for _ in beside]
    inherited = [fd for w in workers for fd in (w.input_read, w.output_write, w.error_write, w.records)]
    inherited += outputs
    found = {name: value for each in beside for name, value in each.companion.environment.items()}
    process = subprocess.Popen(
        [str(build / "engine" / "lagometer-supervisor")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=inherited,
    )
    assert process.stdin is not None
    specification = {
        "network": "private",
        "workers": [
            {
                "argv": [*wrap, *(before or ()), *worker_command(build, library)],
                "environment": {**found, **(environment or {})},
                "stdin": worker.input_read,
                "stdout": worker.output_write,
                "stderr": worker.error_write,
                "records": worker.records,
            }
            for worker, library, before in itertools.zip_longest(workers, libraries, wraps, fillvalue="")
        ],
        "companions": _companions(beside, outputs),
        "prepared": {
            "directory": RUNTIME_DIRECTORY,
            "files": {name: text for each in beside for name, text in each.files.items()},
        },
    }
    daemons: Sequence[int] = ()
    try:
        process.stdin.write(line_of(specification))
        process.stdin.flush()
        if beside:
            daemons = await_daemons(process, beside, outputs)
        for worker in workers:
            worker.started()
        yield Machine(process, workers)
    finally:
        process.kill()
        process.wait()
        await_ends(daemons)
        for worker in workers:
            worker.close()
        for output in outputs:
            os.close(output)
        process.stdin.close()
        assert process.stdout is not None
        process.stdout.close()


def machine_for(
    build: Path, plans: Sequence[Mapping], **more: Any
) -> contextlib.AbstractContextManager[Machine]:
    """A private machine with the workers and the daemons that these plans need."""
    libraries = [plan["adapters"][0]["library"] for plan in plans]
    return machine(build, len(plans), beside=daemons_of_plans(plans), libraries=libraries, **more)


def run_private(build: Path, plans: list[Mapping], **more: Any) -> list[Said]:
    """Carries out standalone plans, one a worker, in one private machine, to their ends."""
    with machine_for(build, plans, **more) as private:
        for worker, plan in zip(private.workers, plans, strict=True):
            worker.send(plan)
        return private.finish()


def run_together(build: Path, plans: list[Mapping], **more: Any) -> list[Said]:
    """Carries out plans, one a worker, in one private machine: a common start once all are matched."""
    with machine_for(build, plans, **more) as private:
        private.match(plans)
        private.go()
        return private.finish()


def grandchild(pid: int, generations: int) -> int:
    """The process so many generations below, each with one child."""
    for _ in range(generations):
        (text,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pid = int(text)
    return pid
