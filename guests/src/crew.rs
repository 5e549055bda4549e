//! Threads that exist and are parked before anything is watched, and run in rounds.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Enough for a thread that only writes; a thousand of them must be cheap.
const STACK_BYTES: usize = 64 * 1024;

/// Starts a thread with a small stack.
pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name)
        .stack_size(STACK_BYTES)
        .spawn(body)
        .expect("the machine has room for another thread")
}

/// A fixed number of threads that wait, all run the same work once, and wait again.
///
/// The threads are never joined: they end with the process.
#[derive(Debug)]
pub struct Crew {
    shared: Arc<Shared>,
    threads: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Rounds that were started; a thread works once for each.
    rounds: u64,
    /// Threads that are parked, having worked for every round.
    parked: usize,
}

impl Crew {
    /// Starts `threads` threads called `NAME-INDEX` and returns when all are parked.
    pub fn parked(
        name: &str,
        threads: usize,
        work: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let work = Arc::new(work);
        for index in 0..threads {
            let shared = Arc::clone(&shared);
            let work = Arc::clone(&work);
            spawn(format!("{name}-{index}"), move || shared.serve(|| work(index)));
        }
        let crew = Self { shared, threads };
        crew.wait();
        crew
    }

    /// Lets every thread work once and returns when all are parked again.
    pub fn run(&self) {
        self.release();
        self.wait();
    }

    /// Lets every thread work once and returns at once.
    pub fn release(&self) {
        let mut state = self.shared.state.lock().expect("no thread panics");
        assert_eq!(state.parked, self.threads, "a round starts when the last one is over");
        state.rounds += 1;
        state.parked = 0;
        self.shared.changed.notify_all();
    }

    /// Waits until every thread is parked.
    pub fn wait(&self) {
        let state = self.shared.state.lock().expect("no thread panics");
        drop(
            self.shared
                .changed
                .wait_while(state, |state| state.parked < self.threads)
                .expect("no thread panics"),
        );
    }
}

impl Shared {
    fn serve(&self, work: impl Fn()) {
        let mut served = 0;
        loop {
            let mut state = self.state.lock().expect("no thread panics");
            state.parked += 1;
            self.changed.notify_all();
            state = self
                .changed
                .wait_while(state, |state| state.rounds == served)
                .expect("no thread panics");
            served = state.rounds;
            drop(state);
            work();
        }
    }
}
