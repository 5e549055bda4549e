//! Who made the hits of one watch, in figures.

use crate::event::{Accessed, Hit, NewValue, Writer};
use crate::site::Site;
use hairspring_model::Tid;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The writers of one watch so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    by_site: HashMap<(*const Site, Accessed), Entry>,
}

#[derive(Debug)]
struct Entry {
    site: Arc<Site>,
    hits: u64,
    threads: HashSet<Tid>,
    thread: Arc<str>,
    first_ns: u64,
    last_ns: u64,
    last_value: Option<NewValue>,
}

impl Tally {
    /// Counts a hit. Sites are told apart by identity: the same place has one `Arc`, which the
    /// entry keeps alive.
    pub(crate) fn add(&mut self, hit: &Hit) {
        let entry =
            self.by_site.entry((Arc::as_ptr(&hit.site), hit.access)).or_insert_with(|| Entry {
                site: Arc::clone(&hit.site),
                hits: 0,
                threads: HashSet::new(),
                thread: Arc::clone(&hit.thread),
                first_ns: hit.time_ns,
                last_ns: hit.time_ns,
                last_value: None,
            });
        entry.hits += 1;
        entry.threads.insert(hit.tid);
        entry.last_ns = entry.last_ns.max(hit.time_ns);
        entry.last_value = hit.new;
    }

    /// The writers, most hits first; of the same number, the first to come first.
    pub(crate) fn writers(&self) -> Vec<Writer> {
        let writer = |((_, access), entry): (&(*const Site, Accessed), &Entry)| Writer {
            site: Arc::clone(&entry.site),
            access: *access,
            hits: entry.hits,
            threads: entry.threads.len(),
            thread: Arc::clone(&entry.thread),
            first_ns: entry.first_ns,
            last_ns: entry.last_ns,
            last_value: entry.last_value,
        };
        let mut writers: Vec<Writer> = self.by_site.iter().map(writer).collect();
        writers.sort_by_key(|writer| (std::cmp::Reverse(writer.hits), writer.first_ns));
        writers
    }
}
