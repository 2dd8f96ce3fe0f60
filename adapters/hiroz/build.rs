// SPDX-License-Identifier: Apache-2.0
//! Tells the adapter which version of the middleware it is built with, and that it exports one symbol.
include!("../rust/build_script.rs");

fn main() {
    prepare("hiroz");
}
