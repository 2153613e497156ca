//! What is refused before it can take an op: rules that do not depend on the state (spec ANS-13).
//!
//! Apply checks the same rules again, since the log is what counts; a body that got past the door
//! of another release is then a committed refusal.

use pawl_wire::commands::{groups, partitions, streams, topics};
use pawl_wire::entry::EntryKind;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::primitives::Wire;
use pawl_wire::topic_options::{TopicOptionError, TopicOptions};

use crate::limits::PARTITIONS_PER_REQUEST_MAX;

/// Whether request bodies of this kind hold a secret, so that neither they nor their checksum may
/// stand in the log as they came (spec DED-12, SES-30).
pub const fn holds_secret(kind: EntryKind) -> bool {
    use EntryKind::*;
    matches!(kind, Register | CreateUser | ChangePassword)
}

/// Whether this release carries the kind out. The others are refused as unavailable (5), by the
/// door or, if they reach the log, by apply (spec ANS-15).
pub const fn is_carried_out(kind: EntryKind) -> bool {
    use EntryKind::*;
    match kind {
        Register | Logout | CreateStream | UpdateStream | DeleteStream | PurgeStream
        | CreateTopic | UpdateTopic | DeleteTopic | PurgeTopic | CreatePartitions
        | DeletePartitions | DeleteSegments | SendMessages | StoreOffset | DeleteOffset
        | CreateConsumerGroup | DeleteConsumerGroup | JoinConsumerGroup | LeaveConsumerGroup
        | Genesis | Noop | Release => true,
        CreateUser | UpdateUser | DeleteUser | ChangePassword | UpdatePermissions | CreateToken
        | DeleteToken => false,
    }
}

/// Refuses a metadata write that breaks a rule which does not depend on the state; the answer is a
/// status. Partition writes, Register and our own kinds have nothing to check here.
pub fn check_body(kind: EntryKind, body: &[u8]) -> Result<(), ErrorCode> {
    use EntryKind::*;
    match kind {
        CreateStream => {
            let request = decode::<streams::CreateStream<'_>>(body)?;
            no_options(request.options.is_empty())
        }
        UpdateStream => {
            let request = decode::<streams::UpdateStream<'_>>(body)?;
            no_options(request.options.is_empty())
        }
        DeleteStream => decode::<streams::DeleteStream<'_>>(body).map(drop),
        PurgeStream => decode::<streams::PurgeStream<'_>>(body).map(drop),
        CreateTopic => {
            let request = decode::<topics::CreateTopic<'_>>(body)?;
            partitions_count(request.partitions_count, 0)?;
            topic_options(TopicOptions::create(
                &request.options,
                request.partitions_count,
            ))?;
            Ok(())
        }
        UpdateTopic => {
            let request = decode::<topics::UpdateTopic<'_>>(body)?;
            // Against the default: which keys and values there are. The topic's own options decide
            // the rest in apply.
            let updated = TopicOptions::default().updated(&request.options);
            match updated {
                Err(TopicOptionError::TopicSize { .. }) => Ok(()),
                other => topic_options(other).map(drop),
            }
        }
        DeleteTopic => decode::<topics::DeleteTopic<'_>>(body).map(drop),
        PurgeTopic => decode::<topics::PurgeTopic<'_>>(body).map(drop),
        CreatePartitions => {
            let request = decode::<partitions::CreatePartitions<'_>>(body)?;
            partitions_count(request.count, 1)
        }
        DeletePartitions => {
            let request = decode::<partitions::DeletePartitions<'_>>(body)?;
            partitions_count(request.count, 1)
        }
        DeleteSegments => decode::<partitions::DeleteSegments<'_>>(body).map(drop),
        CreateConsumerGroup => decode::<groups::CreateGroup<'_>>(body).map(drop),
        DeleteConsumerGroup => decode::<groups::DeleteGroup<'_>>(body).map(drop),
        JoinConsumerGroup => decode::<groups::JoinGroup<'_>>(body).map(drop),
        LeaveConsumerGroup => decode::<groups::LeaveGroup<'_>>(body).map(drop),
        CreateUser | UpdateUser | DeleteUser | ChangePassword | UpdatePermissions | CreateToken
        | DeleteToken => Err(ErrorCode::FeatureUnavailable),
        Register | Logout | SendMessages | StoreOffset | DeleteOffset | Genesis | Noop
        | Release => Ok(()),
    }
}

/// Reads a request's body; a malformed one is an invalid command.
pub(crate) fn decode<'a, T: Wire<'a>>(body: &'a [u8]) -> Result<T, ErrorCode> {
    T::decode(body).map_err(|_| ErrorCode::InvalidCommand)
}

/// Streams have no options.
pub(crate) fn no_options(empty: bool) -> Result<(), ErrorCode> {
    match empty {
        true => Ok(()),
        false => Err(ErrorCode::UnsupportedOptionKey),
    }
}

/// Bounds of a number of partitions in one request.
pub(crate) fn partitions_count(count: u32, min: u32) -> Result<(), ErrorCode> {
    match (min..=PARTITIONS_PER_REQUEST_MAX).contains(&count) {
        true => Ok(()),
        false => Err(ErrorCode::TooManyPartitions),
    }
}

/// The code of refused options.
pub(crate) fn topic_options(
    options: Result<TopicOptions, TopicOptionError>,
) -> Result<TopicOptions, ErrorCode> {
    options.map_err(|error| error.code())
}
