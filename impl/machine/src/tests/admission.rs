//! Admission: answers what is certain, proposes the rest, changes nothing.

use pawl_wire::commands::streams::CreateStream;
use pawl_wire::options::Options;
use pawl_wire::primitives::Name;

use super::*;

fn create(name: &str) -> CreateStream<'_> {
    CreateStream {
        name: Name::new(name).expect("a name"),
        options: Options::EMPTY,
    }
}

fn header(session: Session, number: u64) -> EntryHeader {
    session.header(EntryKind::CreateStream, number)
}

fn tight() -> Log {
    Log::with(ClusterConstants {
        clients_max: 1,
        ..ClusterConstants::default()
    })
}

// spec SES-6, DED-4
#[test]
fn certain_answers_are_those_of_apply() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    let session = log.sign_in(5);
    for number in 1..=7 {
        log.request(
            session,
            number,
            EntryKind::CreateStream,
            &create(&format!("s{number}")),
        );
    }
    let applied = log.op().0;
    let mut reused = header(session, 7);
    reused.kind = EntryKind::DeleteStream as u8;
    let cases = [
        header(old, 8),
        header(session, 7),
        header(session, 1),
        reused,
    ];
    for case in cases {
        let judged = log.judge(&case).expect("it is certain");
        let said = log.clone().apply(case, &create("x").encode());
        match (&judged, &said) {
            // Without an op of its own, the answer names the op where the node stands.
            (Said::Refused(judged, code), Said::Refused(said, code_applied)) => {
                assert_eq!(code, code_applied);
                assert_eq!((judged.commit, said.commit), (applied, applied + 1));
                assert_eq!(judged.context, said.context);
                assert_eq!(judged.status, said.status);
            }
            _ => assert_eq!(judged, said),
        }
    }
}

// spec SES-6
#[test]
fn what_the_pipeline_may_change_is_proposed() {
    let mut log = tight();
    let session = log.sign_in(5);
    let ahead = Session {
        epoch: session.epoch + 1,
        ..session
    };
    assert_eq!(log.judge(&header(session, 1)), None, "new");
    assert_eq!(
        log.judge(&session.header(EntryKind::SendMessages, 1)),
        None,
        "a produce"
    );
    assert_eq!(
        log.judge(&header(ahead, 1)),
        None,
        "an epoch that may be in the pipeline"
    );
    assert_eq!(log.judge(&session.header(EntryKind::Logout, 1)), None);
    assert_eq!(log.judge(&session.header(EntryKind::Release, 0)), None);
    log.sign_in(6);
    // The same Register over the tombstone would give the epoch back.
    assert_eq!(log.judge(&header(session, 1)), None);
    let older = Session {
        epoch: session.epoch - 1,
        ..session
    };
    let evicted = Some(Said::Evicted(EvictionReason::NoSession));
    assert_eq!(log.judge(&header(older, 1)), evicted);
    let never = Session {
        client: 9,
        ..session
    };
    assert_eq!(log.judge(&header(never, 1)), evicted);
    let future = Session {
        epoch: 1_000,
        ..never
    };
    assert_eq!(log.judge(&header(future, 1)), None);
}

// spec SES-2, SES-8
#[test]
fn a_register_is_proposed_unless_it_is_not_the_owners() {
    let mut log = Log::new();
    let bob = log.add_user("bob", None);
    let session = log.sign_in(5);
    let same = log.register_header(5, UserId(0), 1);
    assert_eq!(log.judge(&same), None, "the epoch is told by the log only");
    let foreign = log.register_header(5, bob, 1);
    let refused = Some(Said::Evicted(EvictionReason::SessionError));
    assert_eq!(log.judge(&foreign), refused);
    let mut stale = foreign;
    stale.arguments[0] ^= 0xff;
    assert_eq!(log.judge(&stale), None, "apply gives the other refusal");
    log.logout(session);
    assert_eq!(log.judge(&foreign), None, "spec SES-25");
}

// spec SES-24
#[test]
fn a_stale_logout_is_fenced_without_an_op() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    log.sign_in(5);
    let fenced = Some(Said::Evicted(EvictionReason::SessionTooLow));
    assert_eq!(log.judge(&old.header(EntryKind::Logout, 1)), fenced);
}

#[test]
fn our_own_kinds_are_proposed() {
    let log = Log::new();
    for kind in [EntryKind::Noop, EntryKind::Release, EntryKind::Genesis] {
        assert_eq!(log.judge(&EntryHeader::new(kind)), None);
    }
}
