//! The end of a session: the accounts are settled, and the statement made.

use crate::coverage::{Coverage, Gap, Invisible, Threads, account};
use crate::error::Error;
use crate::event::{Event, StopReason, WatchSummary};
use crate::identity::Still;
use crate::merge::Pending;
use crate::roles::Role;
use crate::session::Session;
use hairspring_perf::{Counts, Host};

impl Session {
    /// Stops all watches and drains the rings until what was counted stands still; gives the counts
    /// by slot, `None` where they can't be read.
    ///
    /// A copy of an event that is just being made by a thread with a copy of its own is not reached
    /// by the first stop: so it is done again until nothing more is counted.
    pub(crate) fn stop(&mut self, events: &mut Vec<Event>) -> Result<Vec<Option<Counts>>, Error> {
        const MOST_STOPS: usize = 100;
        let mut last = None;
        for _ in 0..MOST_STOPS {
            self.armament.disable(&self.setting.host)?;
            let counts = self.counts();
            while self.round(events)? {}
            if last.as_ref() == Some(&counts) {
                break;
            }
            last = Some(counts);
        }
        let seen = self.armament.parents.look(self.pid());
        self.take_news(&seen, u64::MAX)?;
        for coalescer in &mut self.coalescers {
            self.merge.extend(coalescer.flush(0, u64::MAX).map(Pending::Access));
        }
        self.emit(u64::MAX, events);
        Ok(last.unwrap_or_default())
    }

    fn counts(&mut self) -> Vec<Option<Counts>> {
        let counts = (0..self.slots.len()).map(|slot| match self.armament.counts(slot) {
            Ok(counts) => Some(counts),
            Err(e) => {
                self.evidence.gap(Gap::Uncounted { why: e.to_string() });
                None
            }
        });
        counts.collect()
    }

    /// Compares what was counted with what arrived.
    pub(crate) fn settle(&mut self, counts: &[Option<Counts>]) -> Vec<WatchSummary> {
        let mut summaries = Vec::new();
        for watch in 0..self.watches.len() {
            let (mut counted, mut delivered, mut lost, mut pointer_writes) = (0, 0, 0, 0);
            let mut exact = true;
            for (slot, state) in self.slots.iter().enumerate() {
                let mine = state.watches.contains(&watch);
                if !mine {
                    continue;
                }
                let counts = counts.get(slot).copied().flatten().unwrap_or_default();
                counted += counts.counted;
                delivered += state.delivered;
                lost += counts.lost.unwrap_or(state.lost);
                exact &= counts.lost.is_some();
                if matches!(state.role, Role::Pointer(_)) {
                    pointer_writes += state.delivered;
                }
            }
            let gap = account(watch, counted, delivered, lost, exact);
            if let Some(gap) = gap {
                self.evidence.gap(gap);
            }
            let watched = &self.watches[watch];
            summaries.push(WatchSummary {
                counted,
                delivered,
                lost: counted.saturating_sub(delivered),
                coalesced: watched.coalesced,
                pointer_writes,
                early: watched.early,
                beyond: watched.beyond,
                hits: watched.hits,
                writers: watched.tally.writers(),
            });
        }
        summaries
    }

    pub(crate) fn coverage(&mut self, target: Still, reason: StopReason) -> Coverage {
        let (mut gaps, blind) = self.evidence.take();
        if self.news.lost > 0 {
            gaps.push(Gap::NewsLost { records: self.news.lost });
        }
        if !self.setting.fixpoint {
            gaps.push(Gap::Unlisted);
        }
        let untested = self.setting.self_tests.iter().filter(|(_, fired)| fired.is_none());
        gaps.extend(untested.map(|(cpu, _)| Gap::Untested { cpu: *cpu }));
        if Host::read().cpus != self.setting.host.cpus {
            gaps.push(Gap::ProcessorsChanged);
        }
        let waiting = self.chains.iter().filter(|chain| chain.route.is_none());
        gaps.extend(waiting.map(|chain| Gap::NeverMapped { watch: chain.watch }));
        let mut invisible = vec![
            Invisible::OtherMappings,
            Invisible::ForeignWrites,
            Invisible::PageReplacement,
            Invisible::Dma,
        ];
        if !self.setting.kernel_visible {
            invisible.push(Invisible::SystemCalls);
        }
        // An exec that was announced is known even if the process has exited since.
        let target = if reason == StopReason::Exec { Still::AnotherProgram } else { target };
        Coverage {
            threads: Threads {
                found: self.setting.found,
                armed: self.armament.direct() as u64,
                born: self.news.born,
                ended: self.news.gone,
                listings: self.armament.listings() as u64,
            },
            self_tests: self.setting.self_tests.clone(),
            blind,
            invisible,
            target,
            gaps,
        }
    }
}
