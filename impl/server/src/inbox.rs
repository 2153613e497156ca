//! A bounded queue into a plain thread that takes everything at once.
//!
//! Cost: one short lock per item, and one wake-up per batch, since a thread that is awake finds
//! what came meanwhile when it comes back for more.

use std::sync::OnceLock;
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;

/// The queue. Its consumer calls [`Inbox::attach`] once, then [`Inbox::take`] again and again.
#[derive(Debug)]
pub struct Inbox<T> {
    state: Mutex<State<T>>,
    consumer: OnceLock<Thread>,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: Vec<T>,
    parked: bool,
}

impl<T> Inbox<T> {
    /// A queue of at most `capacity` items.
    pub fn new(capacity: usize) -> Inbox<T> {
        Inbox {
            state: Mutex::new(State {
                items: Vec::new(),
                parked: false,
            }),
            consumer: OnceLock::new(),
            capacity,
        }
    }

    /// Names the calling thread as the consumer.
    pub fn attach(&self) {
        self.consumer
            .set(std::thread::current())
            .expect("an inbox has one consumer");
    }

    /// Adds an item, or gives it back when the queue is full.
    pub fn push(&self, item: T) -> Result<(), T> {
        let wake = {
            let mut state = self.state.lock();
            if state.items.len() >= self.capacity {
                return Err(item);
            }
            state.items.push(item);
            std::mem::take(&mut state.parked)
        };
        if wake && let Some(thread) = self.consumer.get() {
            thread.unpark();
        }
        Ok(())
    }

    /// Adds an item of which there is only ever a fixed number, such as a completion: no limit.
    pub fn push_reserved(&self, item: T) {
        let wake = {
            let mut state = self.state.lock();
            state.items.push(item);
            std::mem::take(&mut state.parked)
        };
        if wake && let Some(thread) = self.consumer.get() {
            thread.unpark();
        }
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Swaps everything that waits into `taken`, which must be empty. Waits at most `timeout` for
    /// something to come (`None`: without an end; zero: not at all).
    pub fn take(&self, taken: &mut Vec<T>, timeout: Option<Duration>) {
        debug_assert!(taken.is_empty(), "the last batch is done");
        {
            let mut state = self.state.lock();
            if !state.items.is_empty() || timeout == Some(Duration::ZERO) {
                std::mem::swap(&mut state.items, taken);
                return;
            }
            state.parked = true;
        }
        match timeout {
            Some(timeout) => std::thread::park_timeout(timeout),
            None => std::thread::park(),
        }
        let mut state = self.state.lock();
        state.parked = false;
        std::mem::swap(&mut state.items, taken);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_full_queue_gives_the_item_back() {
        let inbox = Inbox::new(2);
        assert_eq!(inbox.push(1), Ok(()));
        assert_eq!(inbox.push(2), Ok(()));
        assert_eq!(inbox.push(3), Err(3));
        inbox.push_reserved(4);
        let mut taken = Vec::new();
        inbox.take(&mut taken, Some(Duration::ZERO));
        assert_eq!(taken, [1, 2, 4]);
        assert!(inbox.is_empty());
    }

    #[test]
    fn everything_arrives_in_order_across_threads() {
        let inbox = Arc::new(Inbox::new(usize::MAX));
        let consumer = {
            let inbox = inbox.clone();
            std::thread::spawn(move || {
                inbox.attach();
                let (mut all, mut taken) = (Vec::new(), Vec::new());
                while all.len() < 10_000 {
                    inbox.take(&mut taken, None);
                    all.append(&mut taken);
                }
                all
            })
        };
        for number in 0..10_000 {
            inbox.push(number).expect("no limit");
        }
        let all = consumer.join().expect("the consumer ends");
        assert!(all.into_iter().eq(0..10_000));
    }
}
