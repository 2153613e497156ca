//! Every sequence of a few acts: invariants after each op, and what must hold of the whole run.

mod util;

use std::collections::{BTreeMap, BTreeSet};

use pawl_spec::{Act, Client, Constants, Entry, Epoch, Op, Response, Stamp, Table, Time};
use util::{ROOT, World, request};

/// One place in the table, one reply kept: everything is reached within a few ops.
const TINY: Constants = Constants {
    clients: 1,
    ring: 1,
    tombstones: 2,
    grace: 2,
    shards: 1,
};

/// How many ops a run has.
const OPS: u64 = 6;

/// How many steps all runs have together; changes only with the definition or the choices.
const STEPS: u64 = 364_712;

/// What may come next. Epochs are those that the log has granted so far, of either client.
fn choices(table: &Table, granted: &[(Client, Epoch)]) -> Vec<Act> {
    let mut acts = vec![Act::Noop];
    let world = World {
        table: table.clone(),
        now: 0,
    };
    for (client, stamp) in [(1, 1), (1, 2), (2, 3)] {
        let login = world.login(client, ROOT, 0);
        acts.push(Act::Register(pawl_spec::Login {
            stamp: Stamp(stamp),
            ..login
        }));
    }
    for (client, epoch) in granted.iter().copied() {
        acts.push(Act::Request(request(client.0, epoch, 1, 10)));
        acts.push(Act::Request(request(client.0, epoch, 2, 20)));
        acts.push(Act::Release { client, epoch });
        acts.push(Act::Logout { client, epoch });
    }
    acts
}

/// A run so far.
#[derive(Clone)]
struct Run {
    table: Table,
    granted: Vec<(Client, Epoch)>,
    executed: BTreeMap<(Client, u64), Op>,
    stamps: BTreeMap<Stamp, Epoch>,
    latest: BTreeMap<Client, Epoch>,
}

impl Run {
    fn step(&mut self, act: &Act) -> Response {
        let op = Op(self.table.applied.0 + 1);
        let entry = Entry {
            time: Time(op.0),
            act: act.clone(),
        };
        let response = self.table.apply(op, &entry);
        self.table.check();
        match (act, response) {
            (Act::Register(login), Response::Bound(epoch)) => {
                self.on_bound(login.client, login.stamp, epoch);
            }
            (Act::Request(request), response) => self.on_answer(op, request, response),
            _ => {}
        }
        response
    }

    /// Epochs rise, and one stamp has one epoch. SES-1, SES-3.
    fn on_bound(&mut self, client: Client, stamp: Stamp, epoch: Epoch) {
        let known = self.stamps.insert(stamp, epoch);
        let newest = self.latest.get(&client).copied();
        match known {
            Some(known) if newest == Some(known) => assert_eq!(known, epoch, "SES-3"),
            _ => assert!(newest < Some(epoch), "SES-1"),
        }
        self.latest.insert(client, epoch);
        if !self.granted.contains(&(client, epoch)) {
            self.granted.push((client, epoch));
        }
    }

    /// At most once, truthful, fenced. DED-1, DED-4, DED-7, SES-13.
    fn on_answer(&mut self, op: Op, request: &pawl_spec::Request, response: Response) {
        let key = (request.client, request.number.0);
        let newest = self.latest[&request.client];
        match response {
            Response::Executed => {
                assert_eq!(request.epoch, newest, "SES-13");
                assert_eq!(self.executed.insert(key, op), None, "executed twice");
            }
            Response::Repeat(first) => assert_eq!(self.executed.get(&key), Some(&first), "DED-4"),
            Response::AppliedEarlier { watermark } => {
                let highest = self
                    .executed
                    .range(..=(request.client, u64::MAX))
                    .next_back();
                assert_eq!(highest.map(|((_, n), _)| *n), Some(watermark.0), "DED-7");
            }
            _ => {}
        }
    }
}

/// SES-1, SES-3, SES-13, DED-1, DED-4, DED-7
#[test]
fn no_run_executes_twice_or_lets_a_fenced_epoch_act() {
    let mut runs = vec![Run {
        table: Table::genesis(TINY, Time(1)),
        granted: Vec::new(),
        executed: BTreeMap::new(),
        stamps: BTreeMap::new(),
        latest: BTreeMap::new(),
    }];
    let mut responses = BTreeSet::new();
    let mut count = 0u64;
    while let Some(run) = runs.pop() {
        if run.table.applied.0 > OPS {
            continue;
        }
        for act in choices(&run.table, &run.granted) {
            let mut next = run.clone();
            let response = next.step(&act);
            responses.insert(
                format!("{response:?}")
                    .split('(')
                    .next()
                    .map(str::to_string),
            );
            count += 1;
            runs.push(next);
        }
    }
    assert_eq!(count, STEPS, "another definition, or other choices");
    assert!(responses.len() >= 5, "{responses:?}");
}
