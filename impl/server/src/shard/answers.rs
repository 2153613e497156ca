//! How answers come back to the connections of a shard.
//!
//! A connection that waits owns a slot. The log thread posts whole batches of answers into the
//! shard's [`Outbox`] and wakes the shard once; a task of the shard hands them to the slots. A slot
//! given up early keeps its number from being taken for another request by its generation.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use pawl_vsr::{Outcome, Ticket};
use tokio::sync::Notify;

/// A ticket whose answer nobody waits for.
pub const TICKET_NOBODY: Ticket = Ticket(u64::MAX);

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 28;

/// What the log thread answers.
#[derive(Debug)]
pub enum Answer {
    /// To a proposal.
    Outcome(Outcome),
    /// To a question about the machine.
    Value(Box<dyn Any + Send>),
    /// Nobody has answered for too long.
    InDoubt,
}

/// Answers on their way to a shard. Bounded by the shard's slots: each has one request at a time.
#[derive(Debug, Default)]
pub struct Outbox {
    answers: Mutex<Vec<(Ticket, Answer)>>,
    notify: Notify,
}

impl Outbox {
    /// Posts answers and wakes the shard once.
    pub fn post(&self, answers: &mut Vec<(Ticket, Answer)>) {
        if answers.is_empty() {
            return;
        }
        let was_empty = {
            let mut waiting = self.answers.lock();
            let was_empty = waiting.is_empty();
            waiting.append(answers);
            was_empty
        };
        if was_empty {
            self.notify.notify_one();
        }
    }
}

/// The shard that a ticket belongs to.
pub fn shard_of(ticket: Ticket) -> usize {
    (ticket.0 >> (INDEX_BITS + GENERATION_BITS)) as usize
}

/// The slots of a shard.
#[derive(Debug)]
pub struct Slots {
    shard: u64,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    /// Sweeps so far: a clock as coarse as it needs to be.
    sweeps: Cell<u64>,
}

#[derive(Debug)]
struct Slot {
    generation: u64,
    /// In which sweep it was opened.
    opened: u64,
    state: SlotState,
}

#[derive(Debug)]
enum SlotState {
    Free,
    Waiting(Option<Waker>),
    Done(Answer),
}

/// A place for one answer. Awaiting it gives the answer; dropping it gives the answer up.
#[derive(Debug)]
pub struct Pending {
    slots: Rc<Slots>,
    ticket: Ticket,
}

impl Slots {
    /// The slots of shard number `shard`.
    pub fn new(shard: usize) -> Rc<Slots> {
        assert!(shard < 1 << (64 - INDEX_BITS - GENERATION_BITS));
        Rc::new(Slots {
            shard: shard as u64,
            slots: RefCell::new(Vec::new()),
            free: RefCell::new(Vec::new()),
            sweeps: Cell::new(0),
        })
    }

    /// A slot for one answer.
    pub fn open(self: &Rc<Slots>) -> Pending {
        let mut slots = self.slots.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(Slot {
                generation: 0,
                opened: 0,
                state: SlotState::Free,
            });
            (slots.len() - 1) as u32
        });
        assert!(index < 1 << INDEX_BITS, "connections are bounded");
        let slot = &mut slots[index as usize];
        slot.state = SlotState::Waiting(None);
        slot.opened = self.sweeps.get();
        let ticket = Ticket(
            self.shard << (INDEX_BITS + GENERATION_BITS)
                | slot.generation << INDEX_BITS
                | u64::from(index),
        );
        Pending {
            slots: self.clone(),
            ticket,
        }
    }

    /// Hands an answer to its slot. One that nobody waits for any more is dropped.
    fn complete(&self, ticket: Ticket, answer: Answer) {
        let index = (ticket.0 & ((1 << INDEX_BITS) - 1)) as usize;
        let generation = ticket.0 >> INDEX_BITS & ((1 << GENERATION_BITS) - 1);
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.get_mut(index).filter(|s| s.generation == generation) else {
            return;
        };
        slot.finish(answer);
    }

    /// Ends the wait of slots that were opened `sweeps_max` sweeps ago (spec ANS-6, ANS-27). What
    /// comes for them later is dropped.
    pub fn sweep(&self, sweeps_max: u64) {
        let sweep = self.sweeps.get() + 1;
        self.sweeps.set(sweep);
        for slot in self.slots.borrow_mut().iter_mut() {
            if slot.opened + sweeps_max < sweep {
                slot.finish(Answer::InDoubt);
            }
        }
    }

    /// Hands out what arrives in `outbox`, for as long as the shard lives.
    pub async fn pump(&self, outbox: &Outbox) {
        let mut batch = Vec::new();
        loop {
            outbox.notify.notified().await;
            std::mem::swap(&mut *outbox.answers.lock(), &mut batch);
            for (ticket, answer) in batch.drain(..) {
                self.complete(ticket, answer);
            }
        }
    }
}

impl Slot {
    /// Hands the answer to whoever waits here.
    fn finish(&mut self, answer: Answer) {
        if let SlotState::Waiting(waker) = &mut self.state {
            let waker = waker.take();
            self.state = SlotState::Done(answer);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Pending {
    /// The name under which the answer comes.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Waits for the answer.
    pub async fn answer(mut self) -> Answer {
        poll_fn(|context| Pin::new(&mut self).poll(context)).await
    }

    fn index(&self) -> usize {
        (self.ticket.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut slots = self.slots.slots.borrow_mut();
        let slot = &mut slots[self.index()];
        match std::mem::replace(&mut slot.state, SlotState::Free) {
            SlotState::Done(answer) => Poll::Ready(answer),
            SlotState::Waiting(_) => {
                slot.state = SlotState::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            SlotState::Free => unreachable!("a slot is polled only until its answer is taken"),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let index = self.index();
        let mut slots = self.slots.slots.borrow_mut();
        let slot = &mut slots[index];
        slot.generation = (slot.generation + 1) & ((1 << GENERATION_BITS) - 1);
        slot.state = SlotState::Free;
        self.slots.free.borrow_mut().push(index as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u32) -> Answer {
        Answer::Value(Box::new(number))
    }

    fn number(answer: Answer) -> u32 {
        match answer {
            Answer::Value(value) => *value.downcast().expect("a number"),
            Answer::Outcome(_) | Answer::InDoubt => panic!("not a value"),
        }
    }

    /// spec ANS-6
    #[test]
    fn a_slot_that_waits_too_long_is_in_doubt() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let slots = Slots::new(0);
            let old = slots.open();
            slots.sweep(2);
            let young = slots.open();
            slots.sweep(2);
            slots.sweep(2);
            let ticket = young.ticket();
            assert!(matches!(old.answer().await, Answer::InDoubt));
            slots.complete(ticket, value(7));
            slots.sweep(0);
            assert_eq!(number(young.answer().await), 7);
        });
    }

    #[test]
    fn answers_find_their_slots_and_late_ones_find_nobody() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let slots = Slots::new(3);
            let outbox = Rc::new(Outbox::default());
            let pump = tokio::task::spawn_local({
                let (slots, outbox) = (slots.clone(), outbox.clone());
                async move { slots.pump(&outbox).await }
            });
            let given_up = slots.open();
            let late = given_up.ticket();
            assert_eq!(shard_of(late), 3);
            drop(given_up);

            let (first, second) = (slots.open(), slots.open());
            assert_ne!(first.ticket(), late, "the generation differs");
            let mut answers = vec![
                (second.ticket(), value(2)),
                (late, value(9)),
                (first.ticket(), value(1)),
            ];
            outbox.post(&mut answers);
            assert_eq!(number(first.answer().await), 1);
            assert_eq!(number(second.answer().await), 2);
            pump.abort();
        });
    }
}
