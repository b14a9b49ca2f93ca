//! Locks, waits and threads that a scheduler runs one at a time, and a clock that moves when no thread can run.
//!
//! What is created while [`explore`] runs belongs to the scheduler, anything else to the system. The scheduler chooses
//! who runs next wherever a lock is taken or released, and wherever a thread waits or is woken. [`Time`] wakes waits
//! with a timeout.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::{Duration, Instant};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

thread_local! {
    /// The clock of the schedule that runs on this thread: all its threads do.
    static TIME: RefCell<Option<Arc<Time>>> = const { RefCell::new(None) };
}

/// The clock of the schedule that runs, if one does.
fn time() -> Option<Arc<Time>> {
    TIME.with_borrow(Clone::clone)
}

/// A clock that does not move while any thread can run.
#[derive(Debug)]
struct Time {
    start: Instant,
    /// Microseconds since the start.
    now: AtomicU64,
    /// Which threads wait until when.
    sleepers: std::sync::Mutex<BTreeMap<(u64, u64), Arc<Sleeper>>>,
    slept: AtomicU64,
    is_over: AtomicBool,
}

/// What one thread waits for. (A parked thread of shuttle's may continue at any time, so time would never pass.)
#[derive(Debug, Default)]
pub(crate) struct Token {
    given: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

impl Token {
    fn take(&self) {
        let mut given = self.given.lock().unwrap();
        while !*given {
            given = self.changed.wait(given).unwrap();
        }
        *given = false;
    }

    fn give(&self) {
        *self.given.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

shuttle::thread_local! {
    /// What a parking thread of a schedule waits for.
    static PARKED: Arc<Token> = Arc::default();
}

/// A thread that waits.
#[derive(Debug, Default)]
struct Sleeper {
    token: Token,
    timed_out: AtomicBool,
}

impl Time {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            now: AtomicU64::new(0),
            sleepers: std::sync::Mutex::default(),
            slept: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Wakes a sleeper once this much time has passed. Returns what cancels it.
    fn wake_after(&self, time: Duration, sleeper: &Arc<Sleeper>) -> (u64, u64) {
        let until = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_add(self.now());
        let key = (until, self.slept.fetch_add(1, Ordering::Relaxed));
        self.sleepers.lock().unwrap().insert(key, Arc::clone(sleeper));
        key
    }

    /// Moves the clock whenever it is scheduled, which is when no other thread can run: wakes the threads that wait for
    /// the next moment.
    fn pass(&self) {
        loop {
            shuttle::thread::yield_now();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let next = self.sleepers.lock().unwrap().pop_first();
            let Some(((until, _), sleeper)) = next else {
                panic!("a deadlock: everybody waits, and nobody for a time")
            };
            self.now.fetch_max(until, Ordering::Relaxed);
            sleeper.timed_out.store(true, Ordering::Relaxed);
            sleeper.token.give();
        }
    }
}

/// Lets time pass for the calling thread.
pub(crate) fn sleep(length: Duration) {
    let time = time().expect("only in a schedule");
    let sleeper: Arc<Sleeper> = Arc::default();
    time.wake_after(length, &sleeper);
    sleeper.token.take();
}

/// Lets the scheduler choose who runs next.
pub(crate) fn choose() {
    shuttle::hint::spin_loop();
}

/// A scheduler for which time runs last.
#[derive(Debug)]
struct Patient<S>(S);

/// The first thread that a schedule spawns: it moves the clock.
const TIME_TASK: usize = 1;

impl<S: Scheduler> Scheduler for Patient<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.0.new_execution()
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let time = TaskId::from(TIME_TASK);
        let others: Vec<&Task> = runnable.iter().copied().filter(|task| task.id() != time).collect();
        if others.is_empty() { Some(time) } else { self.0.next_task(&others, current, is_yielding) }
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Runs a test under each schedule that a scheduler finds. Panics if the test does, or if no thread can continue.
pub(crate) fn explore(scheduler: impl Scheduler + 'static, run: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 512 * 1024;
    config.silence_warnings = true;
    config.failure_persistence = shuttle::FailurePersistence::None;
    shuttle::Runner::new(Patient(scheduler), config).run(move || {
        let time = Time::new();
        TIME.set(Some(Arc::clone(&time)));
        let passing = shuttle::thread::spawn({
            let time = Arc::clone(&time);
            move || time.pass()
        });
        run();
        time.is_over.store(true, Ordering::Relaxed);
        passing.join().unwrap();
        TIME.set(None);
    });
}

/// The time now.
pub(crate) fn now() -> Instant {
    time().map_or_else(Instant::now, |time| time.start + Duration::from_micros(time.now()))
}

pub(crate) enum Mutex<T> {
    System(std::sync::Mutex<T>),
    Scheduled(shuttle::sync::Mutex<T>),
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        match time() {
            None => Self::System(std::sync::Mutex::new(value)),
            Some(_) => Self::Scheduled(shuttle::sync::Mutex::new(value)),
        }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self {
            Self::System(mutex) => mutex
                .lock()
                .map(MutexGuard::System)
                .map_err(|poisoned| PoisonError::new(MutexGuard::System(poisoned.into_inner()))),
            Self::Scheduled(mutex) => {
                let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(MutexGuard::Scheduled(guard, mutex))
            }
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

pub(crate) enum MutexGuard<'a, T> {
    System(std::sync::MutexGuard<'a, T>),
    Scheduled(shuttle::sync::MutexGuard<'a, T>, &'a shuttle::sync::Mutex<T>),
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::System(guard) => guard,
            Self::Scheduled(guard, _) => guard,
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::System(guard) => guard,
            Self::Scheduled(guard, _) => guard,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar {
    system: std::sync::Condvar,
    sleepers: std::sync::Mutex<VecDeque<Arc<Sleeper>>>,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        match guard {
            MutexGuard::System(guard) => {
                let guard = self.system.wait(guard).unwrap_or_else(PoisonError::into_inner);
                Ok(MutexGuard::System(guard))
            }
            MutexGuard::Scheduled(guard, mutex) => Ok(self.sleep(guard, mutex, None).0),
        }
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        match guard {
            MutexGuard::System(guard) => {
                let (guard, result) = self.system.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
                Ok((MutexGuard::System(guard), result.timed_out()))
            }
            MutexGuard::Scheduled(guard, mutex) => Ok(self.sleep(guard, mutex, Some(timeout))),
        }
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let start = now();
        while condition(&mut guard) {
            let Some(left) = timeout.checked_sub(now() - start).filter(|left| !left.is_zero()) else {
                return Ok((guard, true));
            };
            guard = self.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok((guard, false))
    }

    fn sleep<'a, T>(
        &self,
        guard: shuttle::sync::MutexGuard<'a, T>,
        mutex: &'a shuttle::sync::Mutex<T>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, T>, bool) {
        let time = time().expect("only in a schedule");
        let sleeper: Arc<Sleeper> = Arc::default();
        self.sleepers.lock().unwrap().push_back(Arc::clone(&sleeper));
        let alarm = timeout.map(|timeout| time.wake_after(timeout, &sleeper));
        drop(guard);
        sleeper.token.take();
        self.sleepers.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &sleeper));
        if let Some(alarm) = alarm {
            time.sleepers.lock().unwrap().remove(&alarm);
        }
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        (MutexGuard::Scheduled(guard, mutex), sleeper.timed_out.load(Ordering::Relaxed))
    }

    pub(crate) fn notify_one(&self) {
        self.system.notify_one();
        let sleeper = self.sleepers.lock().unwrap().pop_front();
        if let Some(sleeper) = sleeper {
            sleeper.token.give();
        }
    }

    pub(crate) fn notify_all(&self) {
        self.system.notify_all();
        let sleepers = std::mem::take(&mut *self.sleepers.lock().unwrap());
        sleepers.iter().for_each(|sleeper| sleeper.token.give());
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Thread {
    System(std::thread::Thread),
    Scheduled(Arc<Token>),
}

impl Thread {
    pub(crate) fn unpark(&self) {
        match self {
            Self::System(thread) => thread.unpark(),
            Self::Scheduled(token) => token.give(),
        }
    }
}

pub(crate) fn current() -> Thread {
    match time() {
        None => Thread::System(std::thread::current()),
        Some(_) => Thread::Scheduled(PARKED.with(Clone::clone)),
    }
}

pub(crate) fn park() {
    match time() {
        None => std::thread::park(),
        Some(_) => PARKED.with(Clone::clone).take(),
    }
}

#[derive(Debug)]
pub(crate) enum JoinHandle<T> {
    System(std::thread::JoinHandle<T>),
    Scheduled(shuttle::thread::JoinHandle<T>),
}

impl<T> JoinHandle<T> {
    pub(crate) fn join(self) -> std::thread::Result<T> {
        match self {
            Self::System(thread) => thread.join(),
            Self::Scheduled(thread) => thread.join(),
        }
    }
}

pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    match time() {
        None => std::thread::Builder::new().name(name.to_owned()).spawn(run).map(JoinHandle::System),
        Some(_) => Ok(JoinHandle::Scheduled(shuttle::thread::spawn(run))),
    }
}
