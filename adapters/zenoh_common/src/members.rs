// SPDX-License-Identifier: Apache-2.0
//! The peers of a domain, listed by files in the trial's own folder. Zenoh would scout by multicast, which
//! leaves the machine. So within one machine each peer reads the list, adds where it listens, and connects to
//! those that were on it. A lock makes reading and adding one step, so each pair has exactly one connection,
//! whoever comes first and whoever has left meanwhile.
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lagometer_adapter::{Doing, Result};

const PREFIX: &str = "member";

/// A peer's entry in the list; removed when this is dropped.
#[derive(Debug)]
pub struct Membership {
    entry: PathBuf,
}

impl Membership {
    /// Lists a peer that will listen at `endpoint`; also returns where those before it listen.
    /// Blocks while another peer of the domain does the same.
    pub fn take(folder: &Path, endpoint: &str) -> Result<(Self, Vec<String>)> {
        let list = File::open(folder).doing(format!("opening {}", folder.display()))?;
        list.lock().doing(format!("locking {}", folder.display()))?;
        let before = listed(folder)?;
        let entry = folder.join(unique_name(PREFIX));
        fs::write(&entry, endpoint).doing(format!("writing {}", entry.display()))?;
        Ok((Self { entry }, before))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.entry);
    }
}

/// Where the peers of the list listen, in the order of their entries' names.
fn listed(folder: &Path) -> Result<Vec<String>> {
    let doing = || format!("reading {}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).doing(doing())? {
        let entry = entry.doing(doing())?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            entries.push(entry.path());
        }
    }
    entries.sort();
    // An entry that can't be read belongs to a peer that has just left.
    Ok(entries.iter().filter_map(|entry| fs::read_to_string(entry).ok()).collect())
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

    #[test]
    fn peers_that_left_leave_nothing() {
        let folder = std::env::temp_dir().join(unique_name("lagometer-members"));
        fs::create_dir_all(&folder).unwrap();
        for _ in 0..3 {
            drop(Membership::take(&folder, "a").unwrap());
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }
}
