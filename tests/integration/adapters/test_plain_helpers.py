# SPDX-License-Identifier: Apache-2.0
"""The helpers for authors of adapters, `plain.h`, `plain.rs` and `binding.hpp`, in small programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from needs import need, rust_folder

IN_RUST = """
#[allow(dead_code)]
mod abi { include!(concat!(env!("LAGOMETER"), "/lagometer/adapter.rs")); }
#[allow(dead_code)]
mod plain { include!(concat!(env!("LAGOMETER"), "/lagometer/plain.rs")); }
use abi::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);
static ENTERED: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);

extern "C" fn log(_: *mut c_void, _: u32, _: Text) {}
extern "C" fn now_ns(_: *mut c_void) -> i64 { 7 }
extern "C" fn stamp(_: *mut c_void, _: *mut c_void, _: u32, _: u64, _: i64) {}
extern "C" fn begin(_: *mut c_void, _: u32, _: Text) { BEGUN.fetch_add(1, SeqCst); }
extern "C" fn end(_: *mut c_void) { ENDED.fetch_add(1, SeqCst); }
extern "C" fn on_data(user: *mut c_void) {
    assert_eq!((BEGUN.load(SeqCst), user as usize), (1, 7));
    if ENTERED.fetch_add(1, SeqCst) == 3 {
        for _ in 0..100_000 { std::thread::yield_now(); }
    }
    CALLS.fetch_add(1, SeqCst);
}
extern "C" fn fail(_: *mut c_void, _: Text) {}

fn main() {
    let host = Host {
        size: size_of::<Host>() as u32, abi_version: ABI_VERSION, this: null_mut(), log, now_ns, stamp,
        thread_begin: begin, thread_end: end, fail, stamp_keyed: None,
    };
    assert!(plain::serves(&host));
    assert_eq!((plain::host().now_ns)(plain::host().this), 7);

    let mut qos: Qos = unsafe { std::mem::zeroed() };
    qos.size = size_of::<Qos>() as u32;
    let mut config: EndpointConfig = unsafe { std::mem::zeroed() };
    (config.size, config.qos) = (size_of::<EndpointConfig>() as u32, &qos);
    let has = plain::Abilities::only(DISPATCH_WAITSET, BEST_EFFORT, KEEP_LAST, VOLATILE);
    assert!(plain::check_writer(&config, &has).is_ok());
    assert!(plain::check_endpoint(&config, &has).is_err(), "a reader that polls");
    config.dispatch = DISPATCH_WAITSET;
    assert!(plain::check_endpoint(&config, &has).is_ok());
    assert!(plain::check_writer(&config, &has).is_err(), "a writer has no dispatch");

    assert!(plain::Listener::of(&config).is_none(), "a waitset needs no thread");
    (config.dispatch, config.user) = (DISPATCH_LISTENER, 7 as *mut c_void);
    config.on_data = Some(on_data);
    let listener = plain::Listener::of(&config).expect("a listener");
    for calls in 1..=3 {
        listener.ring();
        while CALLS.load(SeqCst) < calls { std::thread::yield_now(); }
    }
    listener.ring();
    while ENTERED.load(SeqCst) < 4 { std::thread::yield_now(); }
    drop(listener);
    assert_eq!(CALLS.load(SeqCst), 4, "the running call has ended");
    assert_eq!((BEGUN.load(SeqCst), ENDED.load(SeqCst)), (1, 1));

    let mut handle: *mut ContextHandle = null_mut();
    assert_eq!(plain::made(Ok(AtomicU32::new(3)), &mut handle), OK);
    let (one, other): (&AtomicU32, &AtomicU32) = (plain::shared(handle), plain::shared(handle));
    one.store(4, SeqCst);
    assert_eq!(other.load(SeqCst), 4);
    plain::free::<AtomicU32, _>(handle);
}
"""

NOT_SHARED = """
#[allow(dead_code)]
mod abi { include!(concat!(env!("LAGOMETER"), "/lagometer/adapter.rs")); }
#[allow(dead_code)]
mod plain { include!(concat!(env!("LAGOMETER"), "/lagometer/plain.rs")); }

fn main() {
    let handle: *mut abi::ContextHandle = std::ptr::null_mut();
    plain::shared::<std::cell::Cell<u32>, _>(handle);
}
"""

IN_C = """
#include <assert.h>
#include "lagometer/plain.h"

static void refused(void* self, lagometer_string why) { *(int*)self += why.size > 0; }

int main(void) {
  int sentences = 0;
  lagometer_host host = {sizeof host, LAGOMETER_ABI_VERSION, &sentences};
  host.fail = refused;
  assert(lagometer_serves(&host));

  lagometer_qos qos = {sizeof qos, LAGOMETER_ABI_VERSION};
  lagometer_endpoint_config config = {sizeof config, LAGOMETER_ABI_VERSION};
  config.qos = &qos;
  const lagometer_plain_abilities has = {1u << LAGOMETER_DISPATCH_WAITSET, 1, 1, 1};
  assert(lagometer_check_writer(&config, &has) == LAGOMETER_OK);
  assert(lagometer_check_endpoint(&config, &has) == LAGOMETER_UNSUPPORTED);
  config.dispatch = LAGOMETER_DISPATCH_WAITSET;
  assert(lagometer_check_endpoint(&config, &has) == LAGOMETER_OK);
  assert(lagometer_check_writer(&config, &has) == LAGOMETER_UNSUPPORTED);
  assert(sentences == 2);
  return 0;
}
"""


IN_CPP = """
#include "lagometer/binding.hpp"

#include <cassert>
#include <functional>
#include <iostream>

using namespace lagometer;

/// The status and the words of a refusal, none if nothing is refused.
void refused(const char* what, const std::function<void()>& attempt) {
  try {
    attempt();
    std::cout << what << ": accepted\\n";
  } catch (const Error& error) {
    std::cout << what << ": " << error.status() << " " << error.what() << "\\n";
  }
}

int main() {
  const Supported has{1U << LAGOMETER_DISPATCH_WAITSET, 1U << LAGOMETER_BEST_EFFORT,
                      1U << LAGOMETER_KEEP_LAST, 1U << LAGOMETER_VOLATILE, LAGOMETER_QOS_LIFESPAN};
  lagometer_qos qos{};
  lagometer_endpoint_config config{};
  config.qos = &qos;
  const auto reader = [&] { check_endpoint("toy", config, has); };
  const auto writer = [&] { check_writer("toy", config, has); };
  refused("a writer", writer);
  refused("a reader that polls", reader);
  config.dispatch = LAGOMETER_DISPATCH_WAITSET;
  refused("a reader that waits", reader);
  qos.reliability = LAGOMETER_RELIABLE;
  refused("a policy that is not present", reader);
  qos.present = LAGOMETER_QOS_RELIABILITY;
  refused("reliable", reader);
  qos.reliability = 9;
  refused("reliability 9", reader);
  qos.present = LAGOMETER_QOS_HISTORY;
  qos.history = LAGOMETER_KEEP_ALL;
  refused("keep_all", reader);
  qos.present = LAGOMETER_QOS_DURABILITY;
  qos.durability = LAGOMETER_TRANSIENT_LOCAL;
  refused("transient_local", reader);
  qos.present = LAGOMETER_QOS_LIFESPAN;
  refused("lifespan", reader);
  qos.present = LAGOMETER_QOS_LIFESPAN | LAGOMETER_QOS_PARTITION;
  refused("partition", reader);
  lagometer_context_config context{};
  const auto settings = [&] { refuse_settings("toy", context); };
  refused("a context", settings);
  context.security = to_c("{}");
  refused("security", settings);
  return 0;
}
"""
REFUSED_IN_CPP = """
a writer: accepted
a reader that polls: -1 toy does not support dispatch poll; its adapter.json lists waitset
a reader that waits: accepted
a policy that is not present: accepted
reliable: -1 toy does not support reliability reliable; its adapter.json lists best_effort
reliability 9: -1 toy does not support reliability 9; its adapter.json lists best_effort
keep_all: -1 toy does not support history keep_all; its adapter.json lists keep_last
transient_local: -1 toy does not support durability transient_local; its adapter.json lists volatile
lifespan: accepted
partition: -1 toy does not support the policy partition: leave it out
a context: accepted
security: -1 toy has no security: leave it out
"""


def carried_out(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command, with the compiler of Rust in its path."""
    path = f"{rust_folder() or ''}{os.pathsep}{os.environ.get('PATH', os.defpath)}".lstrip(os.pathsep)
    return subprocess.run(
        command, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False
    )


def run(*command: str, **environment: str) -> str:
    """Runs a command that must succeed without an error message; returns what it says."""
    result = carried_out(*command, **environment)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def test_in_rust_the_host_is_at_hand_and_a_writer_needs_no_dispatch(build: Path, tmp_path: Path) -> None:
    need("rust")
    (tmp_path / "main.rs").write_text(IN_RUST)
    program = str(tmp_path / "main")
    run(
        *("rustc", "--edition", "2021", str(tmp_path / "main.rs"), "-o", program),
        LAGOMETER=str(build / "include"),
    )
    run(program)


def test_in_rust_what_threads_share_needs_a_lock(build: Path, tmp_path: Path) -> None:
    need("rust")
    (tmp_path / "main.rs").write_text(NOT_SHARED)
    command = ("rustc", "--edition", "2021", str(tmp_path / "main.rs"), "-o", str(tmp_path / "main"))
    result = carried_out(*command, LAGOMETER=str(build / "include"))
    assert result.returncode != 0 and "cannot be shared between threads safely" in result.stderr, (
        result.stderr
    )


def test_in_c_a_writer_needs_no_dispatch(build: Path, tmp_path: Path) -> None:
    need("cc")
    (tmp_path / "main.c").write_text(IN_C)
    program = str(tmp_path / "main")
    run("cc", "-std=c11", f"-I{build / 'include'}", str(tmp_path / "main.c"), "-o", program)
    run(program)


def test_in_cpp_what_the_sidecar_does_not_list_is_refused_with_what_it_lists(
    build: Path, tmp_path: Path
) -> None:
    need("c++")
    (tmp_path / "main.cpp").write_text(IN_CPP)
    program = str(tmp_path / "main")
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
    run("c++", "-std=c++20", *warnings, f"-I{build / 'include'}", str(tmp_path / "main.cpp"), "-o", program)
    assert run(program).split("\n") == [*REFUSED_IN_CPP.strip().split("\n"), ""]
