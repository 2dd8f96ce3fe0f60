// SPDX-License-Identifier: Apache-2.0
//! The peers of a domain, listed by files in the trial's own folder. Zenoh would scout by multicast, which
//! leaves the machine. So within one machine each peer takes the next place, writes down where it listens,
//! and connects to those before it. Each pair then has exactly one connection, whoever comes first. A place
//! whose peer has left stays taken, with nothing in it: in a free place before others, a new peer would
//! connect to none of these, and none of them to it.
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lagometer_adapter::{Doing, Error, Result};

const MEMBERS_MAX: u32 = 4096;

/// A taken place; emptied when this is dropped.
#[derive(Debug)]
pub struct Membership {
    place: PathBuf,
}

impl Membership {
    /// Takes a place for a peer that will listen at `endpoint`; also returns where those before it listen.
    pub fn take(folder: &Path, endpoint: &str) -> Result<(Self, Vec<String>)> {
        let draft = folder.join(unique_name(".draft"));
        // A link makes the file appear complete, and fails if the place is taken.
        fs::write(&draft, endpoint).doing(format!("writing {}", draft.display()))?;
        let taken = next_free(folder, &draft);
        fs::remove_file(&draft).doing(format!("removing {}", draft.display()))?;
        let (place, before) = taken?;
        Ok((Self { place }, before))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let _ = fs::write(&self.place, "");
    }
}

fn next_free(folder: &Path, draft: &Path) -> Result<(PathBuf, Vec<String>)> {
    let mut before = Vec::new();
    for number in 0..MEMBERS_MAX {
        let place = folder.join(format!("member-{number}"));
        match fs::hard_link(draft, &place) {
            Ok(()) => return Ok((place, before)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                before.extend(fs::read_to_string(&place).ok().filter(|endpoint| !endpoint.is_empty()));
            }
            Err(error) => return Err(error).doing(format!("taking the place {}", place.display())),
        }
    }
    Err(Error::no_resource(format!("more than {MEMBERS_MAX} peers in {}", folder.display())))
}

/// A name that is unique in the folder.
pub fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// An endpoint to listen at, at an address of this host, that was free a moment ago.
pub fn free_tcp_endpoint(address: Ipv4Addr) -> Result<String> {
    let doing = "looking for a free TCP port";
    let listener = TcpListener::bind((address, 0)).doing(doing)?;
    Ok(format!("tcp/{address}:{}", listener.local_addr().doing(doing)?.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_named_once() {
        let folder = std::env::temp_dir().join(unique_name("lagometer-members"));
        fs::create_dir_all(&folder).unwrap();
        let (first, none) = Membership::take(&folder, "a").unwrap();
        let (_second, one) = Membership::take(&folder, "b").unwrap();
        assert!(none.is_empty());
        assert_eq!(one, ["a"]);
        drop(first);
        let (_third, before) = Membership::take(&folder, "c").unwrap();
        assert_eq!(before, ["b"], "who comes again meets those that stayed");
        fs::remove_dir_all(&folder).unwrap();
    }
}
