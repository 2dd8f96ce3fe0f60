# SPDX-License-Identifier: Apache-2.0
"""The sidecar `adapter.json`: facts that hold before the library is loaded (docs/adapters/sidecar.md)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lagometer.study.payload import PayloadType
from lagometer.study.policies import Policy

OptionValue = bool | int | float | str | None
PROFILE = "profile"  # can be queried like an option
OPTION_PLACEHOLDER = re.compile(r"\{option:([a-z0-9_]+)\}")


Dispatch = Literal["listener", "waitset", "poll"]
Stamp = Literal["signalled", "woken"]
NamePattern = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_.-]{3,}[^/]*$")
]  # no pattern that takes in all names


class _Part(BaseModel):
    # strict: "no" is not false, and "8" is not a number
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Layers(_Part):
    """The layers of the middleware that the adapter stamps (stamps.h), and what identifies a message.

    sender, receiver: names of layers, the adapter's own with its names for them; key: `sequence`, or
    `source-time` if the middleware gives readers no sequence; null: it gives both sides nothing in common.
    """

    sender: tuple[str, ...]
    receiver: tuple[str, ...]
    key: Literal["sequence", "source-time"] | None


class Events(_Part):
    """What the middleware reports of an endpoint on threads of its own (`lagometer_event_function`)."""

    writer: tuple[Literal["matched", "deadline_missed", "incompatible_qos"], ...] = ()
    reader: tuple[Literal["matched", "lost", "deadline_missed", "incompatible_qos"], ...] = ()


class Abilities(_Part):
    """What the adapter can do; a cell that needs more is excluded.

    stamps: per dispatch, the receiver's stamps in addition to `taken` and `handled`; origin: who owns the
    memory of a message; depth: False if keep_last is accepted, but its depth has no effect; drops: which
    message a full queue of keep_last loses. `newest` contradicts keep_last, so conformance calls that ability
    absent; layers: which layers are stamped, null: none; events: what is reported about endpoints; services:
    it has its own request and reply; executor: with the dispatch `listener` one executor may serve all nodes
    of a process; security: how its participants can be secured; policies: which other QoS can be set.
    """

    dispatch: tuple[Dispatch, ...]
    reliability: tuple[Literal["best_effort", "reliable"], ...]
    history: tuple[Literal["keep_last", "keep_all"], ...]
    durability: tuple[Literal["volatile", "transient_local"], ...]
    types: tuple[PayloadType, ...]
    profiles: tuple[Literal["default", "matched"], ...]
    domains: bool
    waitset_contexts: bool = False
    executor: bool = False
    policies: tuple[Policy, ...] = ()
    late_readers: bool = True
    stamps: dict[Dispatch, tuple[Stamp, ...]] = Field(default_factory=dict)
    origin: Literal["loaned", "native", "copied"] = "copied"
    depth: bool = True
    drops: Literal["oldest", "newest"] = "oldest"
    layers: Layers | None = None
    events: Events = Events()
    services: bool = False
    security: tuple[Literal["sign", "encrypt"], ...] = ()


class Limits(_Part):
    """Hard limits; null: none known. The reason is printed when it excludes a cell.

    depth_max: of keep_last; transient_local_depth_max: the most that a publisher keeps for late joiners;
    service_depth_max: the most requests or replies that wait, also with keep_all;
    topic_names: a pattern that topic names must match, for a middleware that rejects others;
    topics_max: topics in use at once; endpoints_max: publishers and subscribers of one topic together.
    security_pair_reason: why its secured participants don't match those of another adapter.
    late_server_reason: why clients don't find a server that starts, or starts again, while they call.
    fragment_bytes: not a limit, but the size from which the middleware fragments messages; tests cover sizes
    around it. descriptors_spare: descriptors that the middleware keeps for a while to reuse them, however
    often a context is opened.
    """

    payload_bytes_max: int | None = Field(default=None, ge=1)
    payload_bytes_max_reason: str = ""
    depth_max: int | None = Field(default=None, ge=1)
    depth_max_reason: str = ""
    transient_local_depth_max: int | None = Field(default=None, ge=1)
    transient_local_depth_max_reason: str = ""
    service_depth_max: int | None = Field(default=None, ge=1)
    service_depth_max_reason: str = ""
    topic_names: str | None = None
    topic_names_reason: str = ""
    topics_max: int | None = Field(default=None, ge=2)
    topics_max_reason: str = ""
    endpoints_max: int | None = Field(default=None, ge=2)
    endpoints_max_reason: str = ""
    security_pair_reason: str = ""
    late_server_reason: str = ""
    fragment_bytes: tuple[int, ...] = ()
    descriptors_spare: int = 0


class Reported(_Part):
    """An effective setting (`describe`) that shows whether an option is in force.

    values: what it then reports, by the option's value; null: it is missing; for a value that is not listed,
    this setting shows nothing. times: the factor by which it reports a number; vendors: the vendor's own
    value, which is omitted, if the option has no default.
    """

    setting: str
    values: dict[str, OptionValue] = Field(default_factory=dict)
    times: int = Field(default=1, ge=1)
    vendors: OptionValue = None


class OptionLibrary(_Part):
    """A library that each value of an option but the default needs, such as the plugin of that name.

    file: its path below a prefix, `{value}` for the value; prefixes: a variable with the prefixes, joined by
    colons; without the variable nobody looks.
    """

    file: str
    prefixes: str


class Option(_Part):
    """One setting of the adapter that a study's `options` may set.

    within_process: values with which messages reach nobody outside the process; within_host: nobody outside
    the host; reported: the effective settings that show whether it is in force, by default the one with the
    option's name; none if it is empty; only_with: values of factors without which it has no effect;
    unsecured: values with which messages are neither signed nor encrypted; library: what a value needs here;
    also: other spellings of a value, and what each means.
    """

    type: Literal["integer", "number", "string", "boolean"]
    default: OptionValue = None
    description: str
    reported: tuple[Reported, ...] | None = None
    only_with: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    choices: tuple[OptionValue, ...] = ()
    also: dict[str, OptionValue] = Field(default_factory=dict)
    within_process: tuple[OptionValue, ...] = ()
    within_host: tuple[OptionValue, ...] = ()
    unsecured: tuple[OptionValue, ...] = ()
    library: OptionLibrary | None = None
    minimum: float | None = None
    maximum: float | None = None

    def meant(self, value: OptionValue) -> OptionValue:
        """The value that the adapter knows, for one as a study may spell it."""
        return self.also.get(value, value) if isinstance(value, str) else value

    def accepts(self, value: OptionValue) -> bool:
        """Whether a study may set this value."""
        if self.choices and value not in self.choices:
            return False
        if self.type in ("boolean", "string"):
            return isinstance(value, bool if self.type == "boolean" else str)
        if isinstance(value, bool) or not isinstance(value, int if self.type == "integer" else (int, float)):
            return False
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)

    def wanted(self) -> str:
        """What `accepts` expects, in words."""
        if self.choices:
            return f"one of {', '.join(str(choice) for choice in self.choices)}"
        words = {
            "integer": "a whole number",
            "number": "a number",
            "boolean": "true or false",
            "string": "text",
        }
        bounds = [f"at least {self.minimum:g}"] if self.minimum is not None else []
        bounds += [f"at most {self.maximum:g}"] if self.maximum is not None else []
        return " ".join([words[self.type], *bounds])


class Ready(_Part):
    """How to detect from outside that a daemon is ready; exactly one of the first four is given.

    tcp_port: it listens there; unix_socket: it has a Unix-domain socket at this path; file: this file exists;
    output: a regular expression found in its output. timeout_s: after this time the trial fails.
    """

    tcp_port: int | None = Field(default=None, ge=1, le=65535)
    unix_socket: str | None = None
    file: str | None = None
    output: str | None = None
    timeout_s: float = Field(default=30.0, gt=0.0)

    @model_validator(mode="after")
    def _one_test(self) -> Ready:
        tests = (self.tcp_port, self.unix_socket, self.file, self.output)
        if sum(test is not None for test in tests) != 1:
            raise ValueError("give exactly one of tcp_port, unix_socket, file, output")
        if self.output is not None:
            try:
                re.compile(self.output)
            except re.error as error:
                raise ValueError(f"output is not a regular expression: {error}") from error
        return self


class Daemon(_Part):
    """A program that must run next to the workers, such as a broker (docs/adapters/sidecar.md, "Daemons").

    package: what to install if the command is missing; below: variables that name the folders of a sourced
    installation, and the program's place in one of them; files: written into `{runtime}` before it starts,
    content by name; environment: for it and the workers, own_environment: for it alone, overriding that;
    serves_hosts: if the cell has several hosts, it runs on the first, and the workers of all reach it at
    `{address}`; only_if: one of these sets of option values must be in force, none: always;
    leaves: patterns of paths outside of `{runtime}` that it leaves behind.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    command: tuple[str, ...] = Field(min_length=1)
    package: str
    below: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    ready: Ready
    serves_hosts: bool = False
    environment: dict[str, str] = Field(default_factory=dict)
    own_environment: dict[str, str] = Field(default_factory=dict)
    only_if: tuple[dict[str, tuple[OptionValue, ...]], ...] = ()
    leaves: tuple[Annotated[str, Field(pattern=r"^/(.*/)?[A-Za-z0-9_.-]{3,}[^/]*$")], ...] = ()

    @field_validator("only_if", mode="before")
    @classmethod
    def _one_set_or_several(cls, value: object) -> object:
        condition_sets = [value] if isinstance(value, dict) else value
        if not isinstance(condition_sets, list) or not all(
            isinstance(conditions, dict) for conditions in condition_sets
        ):
            return condition_sets
        return tuple(
            {key: tuple(values) if isinstance(values, list) else values for key, values in conditions.items()}
            for conditions in condition_sets
        )

    @field_validator("files")
    @classmethod
    def _within_the_folder(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
                raise ValueError(f"'{name}' is not a name within the runtime folder")
        return value

    def options_named(self) -> set[str]:
        """The options that conditions and placeholders use."""
        texts = [*self.command, *self.files.values()]
        texts += [*self.environment.values(), *self.own_environment.values()]
        texts += [text for text in (self.ready.unix_socket, self.ready.file, self.ready.output) if text]
        placeholders = {name for text in texts for name in OPTION_PLACEHOLDER.findall(text)}
        return (placeholders | {name for values in self.only_if for name in values}) - {PROFILE}


class Libraries(_Part):
    """Who owns the libraries that a process of this adapter loads, by patterns of their file names.

    middleware: carries the messages; abstraction: the layers above it that an application calls, such as rcl
    and rmw of ROS 2. The adapter's own library is listed if the middleware is linked into it. Nothing guesses
    the owner of the others.
    """

    middleware: tuple[NamePattern, ...] = ()
    abstraction: tuple[NamePattern, ...] = ()


Condition = Annotated[str, Field(pattern=r"^\S+ (=|!=|>=|<=|>|<|has|in) \S+$")]


class Trap(_Part):
    """A known trap of the middleware: a finding that is raised if all conditions hold.

    when: conditions over a cell's factors, settings and evidence (docs/methodology/findings.md); number:
    the figure that shows it, with `{name}` filled in; source: an issue, a manual, a release.
    """

    kind: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    when: tuple[Condition, ...] = Field(min_length=1)
    what: str
    number: str
    fix: str
    source: str


class PythonPackage(_Part):
    """What an adapter in Python imports: the module, and the distribution to install for it.

    install: what a user does to install it, if lagometer's own setup does not.
    """

    module: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")
    distribution: str
    install: str | None = None


class Sidecar(_Part):
    """The whole file.

    worker: which one runs the adapter, `lagometer-worker` (library: a shared one) or `python`
    (library: a Python module, which needs python_package);
    scope: `process` (only within one process), `host` (between the processes of a host), `network`;
    dlopen_flags, environment, preload, daemons: what the library needs before it is loaded;
    shared_memory: patterns of the names in /dev/shm that a process of it leaves behind when it is killed;
    message_queues: the same for POSIX message queues, as /dev/mqueue names them;
    interoperates_with: adapters whose subscribers understand this one's publishers; own_types: payload types
    that none of them understands, since they look different on the wire;
    takes_place_of: symbols of the middleware that its library exports, too, so that these are used instead;
    stacks_on: the option that names the adapter that this one wraps and inherits abilities from;
    libraries: who owns the loaded libraries;
    compiled_in: parts of the middleware in its library, such as templates: allocations there have no known
    owner;
    traps: known traps, checked against each cell's figures afterwards.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    title: str
    abi_version: Literal[1]
    worker: Literal["lagometer-worker", "python"] = "lagometer-worker"
    library: str
    python_package: PythonPackage | None = None
    scope: Literal["process", "host", "network"]
    compiled_in: str = ""
    takes_place_of: tuple[str, ...] = ()
    dlopen_flags: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    preload: tuple[str, ...] = ()
    daemons: tuple[Daemon, ...] = ()
    shared_memory: tuple[NamePattern, ...] = ()
    message_queues: tuple[NamePattern, ...] = ()
    libraries: Libraries = Libraries()
    abilities: Abilities
    limits: Limits = Limits()
    interoperates_with: tuple[str, ...] = ()
    own_types: tuple[PayloadType, ...] = ()
    stacks_on: str | None = None
    options: dict[str, Option] = Field(default_factory=dict)
    packages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    traps: tuple[Trap, ...] = ()

    @model_validator(mode="after")
    def _daemons_know_their_options(self) -> Sidecar:
        for daemon in self.daemons:
            unknown = sorted(daemon.options_named() - set(self.options))
            if unknown:
                raise ValueError(
                    f"daemon {daemon.name} uses the option '{unknown[0]}', which the sidecar does not declare"
                )
        return self

    @model_validator(mode="after")
    def _library_of_the_worker(self) -> Sidecar:
        if (self.worker == "python") != self.library.endswith(".py"):
            raise ValueError(f"the library {self.library} is not for the worker {self.worker}")
        if self.worker == "python" and (self.preload or self.dlopen_flags):
            raise ValueError("preload and dlopen_flags are for shared libraries")
        if self.python_package is not None and self.worker != "python":
            raise ValueError("python_package goes with the worker python")
        return self
