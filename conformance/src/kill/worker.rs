//! A client that keeps its identity over connections and lives of the node.
//!
//! Invariants:
//! 1. At most one request is open. It is dropped only when it is answered, and until then it is
//!    sent again with the same number, body and checksum.
//! 2. A lost connection is expected only once the node was told to die; before, it is a finding.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use pawl_wire::error_code::ErrorCode;

use super::ledger::Batch;
use super::random::Random;
use super::report::Counters;
use super::violation::Violation;
use super::workload::{Action, Effect, Workload};
use crate::client::{AnswerFrame, ClientError, Connection, Credentials, Request, Session};

/// Replies that a server keeps for a client: a cluster constant.
const RING: usize = 5;

/// How long a request may be refused as not accepted or of unknown outcome.
const TRANSIENT_DEADLINE: Duration = Duration::from_secs(30);

/// Pause before a transiently refused request is sent again.
const TRANSIENT_PAUSE: Duration = Duration::from_millis(2);

/// An answered request.
#[derive(Clone, Debug)]
struct Answered {
    action: Action,
    request: Request,
    answer: AnswerFrame,
}

/// What came of an exchange.
enum Exchange {
    Answer(AnswerFrame),
    /// The connection is gone, as expected.
    Lost,
}

/// One client of the run.
#[derive(Debug)]
pub struct Worker {
    index: u16,
    client: u128,
    /// What it knows and asks.
    pub workload: Workload,
    /// The request that is not answered yet.
    pub open: Option<(Action, Request)>,
    recent: VecDeque<Answered>,
    epoch: u64,
    /// Confirmations that were not handed over yet.
    pub confirmed: Vec<(Batch, u64)>,
    /// What it has counted.
    pub counters: Counters,
}

impl Worker {
    /// The client with this place in the run.
    pub fn new(seed: u64, index: u16) -> Worker {
        let mut random = Random::new(seed, 0x9000 + index as u64);
        let client = u128::from(random.next()) << 64 | u128::from(random.next()) | 1;
        Worker {
            index,
            client,
            workload: Workload::new(seed, index),
            open: None,
            recent: VecDeque::new(),
            epoch: 0,
            confirmed: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// The batch of the open request, if it is one.
    pub fn open_batch(&self) -> Option<Batch> {
        match self.open {
            Some((Action::Produce(batch), _)) => Some(batch),
            _ => None,
        }
    }

    /// Signs in and writes until the node dies. `signed_in` is dropped when it is signed in.
    pub fn load(
        &mut self,
        address: SocketAddr,
        killed: &AtomicBool,
        signed_in: Sender<()>,
    ) -> Result<(), Violation> {
        let Some(mut session) = self.sign_in(address, killed)? else {
            return Ok(());
        };
        drop(signed_in);
        if self.open.is_some() {
            self.counters.retried += 1;
        }
        while self.step(&mut session, killed)? {}
        Ok(())
    }

    /// Signs in, has the open request answered, and repeats the last ones.
    pub fn settle(&mut self, address: SocketAddr) -> Result<(), Violation> {
        let killed = AtomicBool::new(false);
        let Some(mut session) = self.sign_in(address, &killed)? else {
            return Err(self.unanswered("the sign-in", "connection lost"));
        };
        if self.open.is_some() {
            self.counters.retried += 1;
            self.step(&mut session, &killed)?;
        }
        self.repeat_recent(&mut session, &killed)
    }

    /// `None`: the node died meanwhile.
    fn sign_in(
        &mut self,
        address: SocketAddr,
        killed: &AtomicBool,
    ) -> Result<Option<Session>, Violation> {
        let deadline = Instant::now() + TRANSIENT_DEADLINE;
        loop {
            let opened = Connection::open(address).and_then(|connection| {
                Session::register(connection, self.client, &Credentials::root())
            });
            match opened {
                Ok(session) => {
                    self.accept_epoch(session.epoch())?;
                    return Ok(Some(session));
                }
                Err(ClientError::Connection(_)) if killed.load(Ordering::SeqCst) => {
                    return Ok(None);
                }
                Err(error) if is_transient(&error) && Instant::now() < deadline => {
                    self.counters.transient += 1;
                    std::thread::sleep(TRANSIENT_PAUSE);
                }
                Err(error) => return Err(self.unanswered("the sign-in", &error.to_string())),
            }
        }
    }

    /// Each bind of a client has a higher epoch than the one before (SES-1).
    fn accept_epoch(&mut self, found: u64) -> Result<(), Violation> {
        self.counters.sign_ins += 1;
        let before = self.epoch;
        if found <= before {
            let client = self.index;
            return Err(Violation::Epoch {
                client,
                before,
                found,
            });
        }
        self.epoch = found;
        Ok(())
    }

    /// Has the open request answered, or a new one. `false`: the node died.
    fn step(&mut self, session: &mut Session, killed: &AtomicBool) -> Result<bool, Violation> {
        let retry = self.open.is_some();
        let (action, request) = match self.open.take() {
            Some(open) => open,
            None => self.workload.next(),
        };
        self.open = Some((action.clone(), request.clone()));
        let answer = match self.exchange(session, &action, &request, killed)? {
            Exchange::Answer(answer) => answer,
            Exchange::Lost => return Ok(false),
        };
        match self.workload.settle(&action, &answer) {
            Ok(Ok(effect)) => self.count(&action, effect),
            Ok(Err(wrong)) => {
                return Err(self.outcome(&action, &request, wrong.expected, wrong.answered));
            }
            Err(error) => {
                let expected = "an answer".to_owned();
                return Err(self.outcome(&action, &request, expected, error.to_string()));
            }
        }
        // The op of an answer that was made in an earlier life is below the op of this sign-in.
        if retry
            && answer
                .success()
                .is_ok_and(|(header, _)| header.op < self.epoch)
        {
            self.counters.replayed += 1;
        }
        self.open = None;
        self.recent.push_back(Answered {
            action,
            request,
            answer,
        });
        while self.recent.len() > RING {
            self.recent.pop_front();
        }
        Ok(true)
    }

    fn count(&mut self, action: &Action, effect: Effect) {
        match (action, effect) {
            (_, Effect::Confirmed(batch, base_offset)) => {
                self.counters.sends += 1;
                self.counters.messages += batch.count;
                self.confirmed.push((batch, base_offset));
            }
            (Action::StoreOffset { .. }, _) => self.counters.offsets += 1,
            _ => self.counters.metadata += 1,
        }
    }

    /// Sends a request until it gets an answer that is not transient.
    fn exchange(
        &mut self,
        session: &mut Session,
        action: &Action,
        request: &Request,
        killed: &AtomicBool,
    ) -> Result<Exchange, Violation> {
        let deadline = Instant::now() + TRANSIENT_DEADLINE;
        loop {
            let answer = match session.exchange(request) {
                Ok(answer) => answer,
                Err(ClientError::Connection(_)) if killed.load(Ordering::SeqCst) => {
                    return Ok(Exchange::Lost);
                }
                Err(error) => {
                    let what = format!("request {} ({action})", request.number);
                    return Err(self.unanswered(&what, &error.to_string()));
                }
            };
            match answer.success() {
                Err(error) if is_transient(&error) && Instant::now() < deadline => {
                    self.counters.transient += 1;
                    std::thread::sleep(TRANSIENT_PAUSE);
                }
                _ => return Ok(Exchange::Answer(answer)),
            }
        }
    }

    /// Every repeat gets the bytes of the first answer (DED-4).
    fn repeat_recent(
        &mut self,
        session: &mut Session,
        killed: &AtomicBool,
    ) -> Result<(), Violation> {
        for answered in self.recent.clone() {
            let Answered {
                action,
                request,
                answer,
            } = &answered;
            let Exchange::Answer(repeat) = self.exchange(session, action, request, killed)? else {
                return Err(self.unanswered("a repeat", "connection lost"));
            };
            self.counters.repeats += 1;
            if repeat != *answer {
                let pairs = answer.0.iter().zip(&repeat.0);
                let same = pairs.take_while(|(left, right)| left == right).count();
                return Err(Violation::Repeat {
                    client: self.index,
                    number: request.number,
                    action: action.to_string(),
                    byte: same,
                });
            }
        }
        Ok(())
    }

    fn unanswered(&self, what: &str, error: &str) -> Violation {
        Violation::Unanswered {
            client: self.index,
            what: what.to_owned(),
            error: error.to_owned(),
        }
    }

    fn outcome(
        &self,
        action: &Action,
        request: &Request,
        expected: String,
        answered: String,
    ) -> Violation {
        Violation::Outcome {
            client: self.index,
            number: request.number,
            action: action.to_string(),
            expected,
            answered,
        }
    }
}

/// Refusals after which the same request is sent again.
fn is_transient(error: &ClientError) -> bool {
    error.refusal().is_some_and(|code| {
        code == ErrorCode::TransientNotCommitted.code()
            || code == ErrorCode::TransientNotAccepted.code()
    })
}
