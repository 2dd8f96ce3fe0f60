// SPDX-License-Identifier: Apache-2.0
//! Passes the middleware's version to the adapter, and exports only one symbol.
include!("../rust/build_script.rs");

fn main() {
    prepare("hiroz");
}
