//! Who is connected, and which connection speaks for which client.
//!
//! Invariants:
//! 1. A number names at most one connection at a time.
//! 2. Of two bindings of one client, the one with the newer epoch stands and the other has ended,
//!    whatever order the shards learn of them in.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use pawl_wire::headers::EvictionReason;
use pawl_wire::ids::{ClientId, Epoch, UserId};

/// A session bound to a connection.
#[derive(Debug)]
pub struct Binding {
    /// The client.
    pub client: ClientId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Who signed in.
    pub user: UserId,
    /// 0 while it stands, else the reason of the eviction that its connection is owed.
    ended: AtomicU8,
}

impl Binding {
    /// A binding that stands.
    pub fn new(client: ClientId, epoch: Epoch, user: UserId) -> Arc<Binding> {
        Arc::new(Binding {
            client,
            epoch,
            user,
            ended: AtomicU8::new(0),
        })
    }

    /// Why the session ended, if it did.
    pub fn ended(&self) -> Option<EvictionReason> {
        match self.ended.load(Ordering::Acquire) {
            0 => None,
            reason => EvictionReason::from_u8(reason),
        }
    }

    fn end(&self, reason: EvictionReason) {
        self.ended.store(reason as u8, Ordering::Release);
    }
}

/// A connection as others see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientView {
    /// Its number.
    pub number: u32,
    /// Who signed in on it.
    pub user: Option<UserId>,
    /// The session's client.
    pub client: Option<ClientId>,
    /// Where it comes from.
    pub address: SocketAddr,
}

/// All connections of the node.
#[derive(Debug, Default)]
pub struct Clients {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_number: u32,
    connections: BTreeMap<u32, Connected>,
    bindings: HashMap<ClientId, Arc<Binding>>,
}

#[derive(Debug)]
struct Connected {
    address: SocketAddr,
    binding: Option<Arc<Binding>>,
}

/// A connection's place among the clients; it is given up on drop.
#[derive(Debug)]
pub struct Registration {
    clients: Arc<Clients>,
    number: u32,
}

impl Clients {
    /// Gives a new connection a number.
    pub fn connect(self: &Arc<Clients>, address: SocketAddr) -> Registration {
        let mut state = self.state.lock();
        let mut number = state.last_number;
        loop {
            number = number.wrapping_add(1).max(1);
            if !state.connections.contains_key(&number) {
                break;
            }
        }
        state.last_number = number;
        let connected = Connected {
            address,
            binding: None,
        };
        state.connections.insert(number, connected);
        Registration {
            clients: self.clone(),
            number,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.state.lock().connections.len()
    }

    /// All, by number.
    pub fn list(&self) -> Vec<ClientView> {
        let state = self.state.lock();
        state
            .connections
            .iter()
            .map(|(number, connected)| connected.view(*number))
            .collect()
    }

    /// The one with this number.
    pub fn get(&self, number: u32) -> Option<ClientView> {
        let state = self.state.lock();
        Some(state.connections.get(&number)?.view(number))
    }

    /// The session of this client and epoch stands no more: it signed in again.
    pub fn on_fenced(&self, client: ClientId, epoch: Epoch) {
        self.end(client, EvictionReason::SessionTooLow, |binding| {
            binding.epoch <= epoch
        });
    }

    /// The client was evicted.
    pub fn on_evicted(&self, client: ClientId) {
        self.end(client, EvictionReason::NoSession, |_| true);
    }

    fn end(&self, client: ClientId, reason: EvictionReason, is_meant: impl Fn(&Binding) -> bool) {
        let mut state = self.state.lock();
        if let Some(binding) = state.bindings.get(&client)
            && is_meant(binding)
        {
            binding.end(reason);
            state.bindings.remove(&client);
        }
    }
}

impl Connected {
    fn view(&self, number: u32) -> ClientView {
        let binding = self.binding.as_ref();
        ClientView {
            number,
            user: binding.map(|binding| binding.user),
            client: binding.map(|binding| binding.client),
            address: self.address,
        }
    }
}

impl Registration {
    /// The connection's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Binds a session to the connection.
    pub fn bind(&self, binding: Arc<Binding>) {
        let mut state = self.clients.state.lock();
        match state.bindings.get(&binding.client) {
            Some(other) if other.epoch > binding.epoch => {
                binding.end(EvictionReason::SessionTooLow);
            }
            other => {
                if let Some(other) = other.filter(|other| other.epoch < binding.epoch) {
                    other.end(EvictionReason::SessionTooLow);
                }
                state.bindings.insert(binding.client, binding.clone());
            }
        }
        if let Some(connected) = state.connections.get_mut(&self.number) {
            connected.binding = Some(binding);
        }
    }

    /// The connection speaks for nobody any more.
    pub fn unbind(&self) {
        let mut state = self.clients.state.lock();
        let binding = state
            .connections
            .get_mut(&self.number)
            .and_then(|connected| connected.binding.take());
        forget(&mut state, binding);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.clients.state.lock();
        let gone = state.connections.remove(&self.number);
        forget(&mut state, gone.and_then(|connected| connected.binding));
    }
}

/// Forgets a binding, unless another one of its client stands by now.
fn forget(state: &mut State, binding: Option<Arc<Binding>>) {
    let Some(binding) = binding else {
        return;
    };
    let stands = state.bindings.get(&binding.client);
    if stands.is_some_and(|stands| Arc::ptr_eq(stands, &binding)) {
        state.bindings.remove(&binding.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(clients: &Arc<Clients>) -> Registration {
        clients.connect(([127, 0, 0, 1], 5000).into())
    }

    fn binding(client: u128, epoch: u64) -> Arc<Binding> {
        Binding::new(ClientId(client), Epoch(epoch), UserId(0))
    }

    #[test]
    fn connections_are_listed_while_they_last() {
        let clients = Arc::new(Clients::default());
        let first = connect(&clients);
        let second = connect(&clients);
        assert_eq!((first.number(), second.number()), (1, 2));
        second.bind(binding(7, 5));
        let list = clients.list();
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].user, None);
        assert_eq!(list[1].user, Some(UserId(0)));
        drop(first);
        assert_eq!(clients.get(1), None);
        assert_eq!(connect(&clients).number(), 3, "numbers are not reused soon");
        second.unbind();
        assert_eq!(clients.get(2).expect("still connected").user, None);
    }

    /// spec SES-12
    #[test]
    fn the_newer_epoch_stands_in_either_order() {
        for newer_first in [false, true] {
            let clients = Arc::new(Clients::default());
            let (one, two) = (connect(&clients), connect(&clients));
            let (older, newer) = (binding(7, 5), binding(7, 8));
            if newer_first {
                two.bind(newer.clone());
                one.bind(older.clone());
            } else {
                one.bind(older.clone());
                two.bind(newer.clone());
            }
            assert_eq!(older.ended(), Some(EvictionReason::SessionTooLow));
            assert_eq!(newer.ended(), None);
            drop(one);
            clients.on_fenced(ClientId(7), Epoch(5));
            assert_eq!(newer.ended(), None, "an old epoch was meant");
            clients.on_evicted(ClientId(7));
            assert_eq!(newer.ended(), Some(EvictionReason::NoSession));
        }
    }

    #[test]
    fn a_fenced_epoch_ends_its_binding() {
        let clients = Arc::new(Clients::default());
        let one = connect(&clients);
        let bound = binding(7, 5);
        one.bind(bound.clone());
        clients.on_fenced(ClientId(8), Epoch(9));
        assert_eq!(bound.ended(), None);
        clients.on_fenced(ClientId(7), Epoch(5));
        assert_eq!(bound.ended(), Some(EvictionReason::SessionTooLow));
    }
}
