// SPDX-License-Identifier: Apache-2.0
//! The extension `stamps/1`: its tables, and how stamps are copied to the host's structs.
//!
//! SAFETY, of every block below: the header's contract, as in `table`.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{offset_of, size_of};
use std::ptr::{self, addr_of_mut};

use crate::abi::{self, StampsTable, Status as Code};
use crate::services_table::services;
use crate::table::{reader_used, writer_used};
use crate::{guard, host, Adapter, Error, Layers, Reader, Result, Stamps, Writer};

/// The tables of an adapter, one for each kind of endpoint.
struct Extension<A>(PhantomData<A>);

impl<A: Adapter> Extension<A> {
    const WRITER: &'static StampsTable = &table(A::Writer::STAMPED, ask_writer::<A>);
    const READER: &'static StampsTable = &table(A::Reader::STAMPED, ask_reader::<A>);
}

const fn table(layers: Layers, ask: extern "C" fn(*mut c_void, u64) -> Code) -> StampsTable {
    StampsTable {
        size: size_of::<StampsTable>() as u32,
        abi_version: abi::ABI_VERSION,
        layers: layers.0,
        key: abi::KEY_SEQUENCE,
        reserved: 0,
        ask,
    }
}

pub(crate) extern "C" fn extension<A: Adapter>(
    kind: u32,
    _object: *mut c_void,
    name: abi::Text,
) -> *const c_void {
    let name = unsafe { host::owned(name) };
    if kind == abi::OBJECT_NODE && A::SERVICES && name == "services/1" {
        return ptr::from_ref(services::<A>()).cast();
    }
    let wanted = name == "stamps/1";
    let found = match kind {
        abi::OBJECT_WRITER => Extension::<A>::WRITER,
        abi::OBJECT_READER => Extension::<A>::READER,
        _ => return ptr::null(),
    };
    if wanted && found.layers != 0 {
        ptr::from_ref(found).cast()
    } else {
        ptr::null()
    }
}

fn asked(layers: u64, offered: Layers) -> Result<Layers> {
    if layers & !offered.0 != 0 {
        return Err(Error::invalid(format!("layers {layers:#x} were asked for, there are {:#x}", offered.0)));
    }
    Ok(Layers(layers))
}

extern "C" fn ask_writer<A: Adapter>(writer: *mut c_void, layers: u64) -> Code {
    guard::call("asking for stamps", || {
        let layers = asked(layers, A::Writer::STAMPED)?;
        writer_used::<A>(writer.cast()).writer.ask_for_stamps(layers);
        Ok(abi::OK)
    })
}

extern "C" fn ask_reader<A: Adapter>(reader: *mut c_void, layers: u64) -> Code {
    guard::call("asking for stamps", || {
        let layers = asked(layers, A::Reader::STAMPED)?;
        reader_used::<A>(reader.cast()).reader.ask_for_stamps(layers);
        Ok(abi::OK)
    })
}

/// Copies a message's stamps into the host's struct, if it has room.
#[inline]
pub(crate) fn fill_message(message: *mut abi::Message, stamps: Option<&Stamps>) {
    let Some(stamps) = stamps else { return };
    unsafe {
        if ((*message).size as usize) < offset_of!(abi::Message, stamps) + size_of::<abi::StampList>() {
            return;
        }
        addr_of_mut!((*message).key).write(stamps.key);
        addr_of_mut!((*message).stamps).write(stamps.list);
    }
}

/// Like `fill_message`. The sample already has the sequence.
#[inline]
pub(crate) fn fill_sample(sample: *mut abi::Sample, stamps: Option<&Stamps>) {
    let Some(stamps) = stamps else { return };
    unsafe {
        addr_of_mut!((*sample).writer_id).write(stamps.key.writer_id);
        if ((*sample).size as usize) >= offset_of!(abi::Sample, stamps) + size_of::<abi::StampList>() {
            addr_of_mut!((*sample).stamps).write(stamps.list);
        }
    }
}
