// SPDX-License-Identifier: Apache-2.0
//! The extension `services/1`: both ends of a client and of a server, and which request a reply answers.
//!
//! SAFETY, of every block below: the header's contract, as in `table`.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr;

use crate::abi::{self, ServicesTable, Status as Code};
use crate::table::{
    endpoint_of, hand_out, named, reader_object, requests_of, taken_sample, writer_object, writer_used,
};
use crate::{guard, Adapter, Error};

/// The table of an adapter.
struct Extension<A>(PhantomData<A>);

impl<A: Adapter> Extension<A> {
    const SERVICES: &'static ServicesTable = &ServicesTable {
        size: size_of::<ServicesTable>() as u32,
        abi_version: abi::ABI_VERSION,
        client_create: client_create::<A>,
        server_create: server_create::<A>,
        answer: answer::<A>,
    };
}

pub(crate) const fn services<A: Adapter>() -> &'static ServicesTable {
    Extension::<A>::SERVICES
}

extern "C" fn client_create<A: Adapter>(
    node: *mut abi::NodeHandle,
    request: *const abi::EndpointConfig,
    reply: *const abi::EndpointConfig,
    requests: *mut *mut abi::WriterHandle,
    replies: *mut *mut abi::ReaderHandle,
) -> Code {
    guard::call("client_create", || {
        let (node, asked) = named::<A, _>(endpoint_of::<A>(node, request))?;
        let (_, answered) = named::<A, _>(endpoint_of::<A>(ptr::from_ref(node).cast_mut().cast(), reply))?;
        let (writer, reader) = named::<A, _>(A::client(&node.context, &asked, &answered))?;
        hand_out(writer_object(node, &asked, writer, ptr::null_mut()), requests);
        Ok(hand_out(reader_object(node, reader), replies))
    })
}

extern "C" fn server_create<A: Adapter>(
    node: *mut abi::NodeHandle,
    request: *const abi::EndpointConfig,
    reply: *const abi::EndpointConfig,
    requests: *mut *mut abi::ReaderHandle,
    replies: *mut *mut abi::WriterHandle,
) -> Code {
    guard::call("server_create", || {
        let (node, asked) = named::<A, _>(endpoint_of::<A>(node, request))?;
        let (_, answered) = named::<A, _>(endpoint_of::<A>(ptr::from_ref(node).cast_mut().cast(), reply))?;
        let (writer, reader) = named::<A, _>(A::server(&node.context, &asked, &answered))?;
        hand_out(reader_object(node, reader), requests);
        Ok(hand_out(writer_object(node, &answered, writer, unsafe { *requests }), replies))
    })
}

extern "C" fn answer<A: Adapter>(replies: *mut abi::WriterHandle, request: *const abi::Sample) -> Code {
    guard::call("answer", || {
        let requests = requests_of::<A>(replies);
        if requests.is_null() {
            return Err(Error::invalid("answer() on a writer that is no server's"));
        }
        let sample = taken_sample::<A>(requests, request);
        let sample = sample.ok_or_else(|| Error::invalid("answer() to a request that is not taken"))?;
        named::<A, _>(A::answer(&mut writer_used::<A>(replies).writer, sample)).map(|()| abi::OK)
    })
}
