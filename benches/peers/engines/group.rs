//! Group commit for peers, of the same kind as the store's own: the first thread that finds no leader leads. It takes what
//! is queued, and passes the lead on before it wakes the others.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::rows::{Job, Placed};

/// As the store's own commit.
const COMMIT_JOBS: usize = 256;
const COMMIT_BYTES: usize = 128 * 1024;

/// As the store's own.
const COMPANY: usize = 16;
const PATIENCE: Duration = Duration::from_micros(200);

/// Writes jobs.
pub(super) trait Backend: Send {
    /// Writes all or none of the jobs, durably.
    fn commit(&mut self, jobs: &[Job]) -> Vec<Placed>;
}

pub(super) struct Group<B> {
    gathered: Condvar,
    queue: Mutex<Queue>,
    backend: Mutex<B>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Job, Arc<Waiter>)>,
    /// A thread leads, or was asked to.
    led: bool,
    crowd: usize,
    patience: Duration,
    gathers: bool,
}

struct Waiter {
    signal: Mutex<Option<Signal>>,
    thread: Thread,
}

enum Signal {
    Lead,
    Done(Placed),
}

impl Waiter {
    fn tell(&self, signal: Signal) {
        *self.signal.lock().unwrap() = Some(signal);
        self.thread.unpark();
    }

    fn wait(&self) -> Signal {
        loop {
            let signal = self.signal.lock().unwrap().take();
            match signal {
                Some(signal) => return signal,
                None => thread::park(),
            }
        }
    }
}

impl Queue {
    fn is_gathered(&self) -> bool {
        self.waiting.len() >= self.crowd.min(COMPANY)
            || self.waiting.iter().map(|(job, _)| job.bytes()).sum::<usize>() >= COMMIT_BYTES
    }

    fn take(&mut self) -> (Vec<Job>, Vec<Arc<Waiter>>) {
        let (mut jobs, mut waiters, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some((job, _)) = self.waiting.front() {
            bytes += job.bytes();
            if !jobs.is_empty() && (jobs.len() >= COMMIT_JOBS || bytes > COMMIT_BYTES) {
                break;
            }
            let (job, waiter) = self.waiting.pop_front().unwrap();
            jobs.push(job);
            waiters.push(waiter);
        }
        (jobs, waiters)
    }
}

impl<B: Backend> Group<B> {
    pub(super) fn new(backend: B) -> Self {
        Self { gathered: Condvar::new(), queue: Mutex::default(), backend: Mutex::new(backend) }
    }

    /// Writes a job, with whatever else waits; durable when it returns.
    pub(super) fn write(&self, job: Job) -> Placed {
        let own = Arc::new(Waiter { signal: Mutex::default(), thread: thread::current() });
        let mut queue = self.queue.lock().unwrap();
        queue.waiting.push_back((job, Arc::clone(&own)));
        let was_led = std::mem::replace(&mut queue.led, true);
        if queue.gathers && queue.is_gathered() {
            self.gathered.notify_one();
        }
        drop(queue);
        if was_led && let Signal::Done(placed) = own.wait() {
            return placed;
        }
        // The leader's own job is the first of the queue, so one batch is all that it leads.
        let mut queue = self.queue.lock().unwrap();
        if !queue.is_gathered() {
            queue.gathers = true;
            let patience = queue.patience;
            (queue, _) = self.gathered.wait_timeout_while(queue, patience, |queue| !queue.is_gathered()).unwrap();
            queue.gathers = false;
        }
        let (jobs, waiters) = queue.take();
        drop(queue);
        let start = Instant::now();
        let placed = self.backend.lock().unwrap().commit(&jobs);
        let taken = start.elapsed();
        let mut queue = self.queue.lock().unwrap();
        queue.crowd = waiters.len() + queue.waiting.len();
        queue.patience = (taken / 4).min(PATIENCE);
        let next = queue.waiting.front().map(|(_, waiter)| Arc::clone(waiter));
        queue.led = next.is_some();
        drop(queue);
        if let Some(next) = next {
            next.tell(Signal::Lead);
        }
        let mut owns = None;
        for (waiter, placed) in waiters.iter().zip(placed) {
            if Arc::ptr_eq(waiter, &own) {
                owns = Some(placed);
            } else {
                waiter.tell(Signal::Done(placed));
            }
        }
        owns.unwrap()
    }

    /// Writes many jobs, without anybody to wait with.
    pub(super) fn fill(&self, jobs: &mut dyn Iterator<Item = Job>) {
        fill(&mut *self.backend.lock().unwrap(), jobs);
    }
}

/// Writes many jobs in groups of the usual size.
pub(super) fn fill(backend: &mut dyn Backend, jobs: &mut dyn Iterator<Item = Job>) {
    loop {
        let group: Vec<Job> = jobs.take(COMMIT_JOBS).collect();
        if group.is_empty() {
            return;
        }
        backend.commit(&group);
    }
}
