//! What a user may do: global rights, rights on streams, rights on topics.

use std::collections::BTreeMap;

use crate::layout::record;
use crate::primitives::{Reader, Wire, WireError, write_block32};

record! {
    /// Rights that hold everywhere.
    #[derive(Copy, Eq, Hash, Default)]
    pub struct GlobalPermissions {
        manage_servers: bool,
        read_servers: bool,
        manage_users: bool,
        read_users: bool,
        manage_streams: bool,
        read_streams: bool,
        manage_topics: bool,
        read_topics: bool,
        poll_messages: bool,
        send_messages: bool,
    }

    /// Rights on one topic.
    #[derive(Copy, Eq, Hash, Default)]
    pub struct TopicPermissions {
        manage_topic: bool,
        read_topic: bool,
        poll_messages: bool,
        send_messages: bool,
    }

    /// Rights on one stream, those on its topics apart.
    #[derive(Copy, Eq, Hash, Default)]
    pub struct StreamRights {
        manage_stream: bool,
        read_stream: bool,
        manage_topics: bool,
        read_topics: bool,
        poll_messages: bool,
        send_messages: bool,
    }
}

/// Rights on one stream and on topics in it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct StreamPermissions {
    /// What holds for the whole stream.
    pub rights: StreamRights,
    /// By topic id.
    pub topics: BTreeMap<u32, TopicPermissions>,
}

/// All rights of a user.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Permissions {
    /// What holds everywhere.
    pub global: GlobalPermissions,
    /// By stream id.
    pub streams: BTreeMap<u32, StreamPermissions>,
}

impl GlobalPermissions {
    /// Every right, as root has it.
    pub const ALL: GlobalPermissions = GlobalPermissions {
        manage_servers: true,
        read_servers: true,
        manage_users: true,
        read_users: true,
        manage_streams: true,
        read_streams: true,
        manage_topics: true,
        read_topics: true,
        poll_messages: true,
        send_messages: true,
    };
}

/// A "has" or "has next" flag: set only when exactly 1.
fn flag(reader: &mut Reader<'_>) -> Result<bool, WireError> {
    Ok(u8::read(reader)? == 1)
}

fn read_topics(reader: &mut Reader<'_>) -> Result<BTreeMap<u32, TopicPermissions>, WireError> {
    let mut topics = BTreeMap::new();
    let mut more = flag(reader)?;
    while more {
        let id = u32::read(reader)?;
        if topics.insert(id, reader.read()?).is_some() {
            return Err(WireError::Duplicate("a topic's permissions"));
        }
        more = flag(reader)?;
    }
    Ok(topics)
}

impl<'a> Wire<'a> for Permissions {
    const BYTES_MIN: usize = GlobalPermissions::BYTES_MIN + 1;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let global = reader.read()?;
        let mut streams = BTreeMap::new();
        let mut more = flag(reader)?;
        while more {
            let id = u32::read(reader)?;
            let stream = StreamPermissions {
                rights: reader.read()?,
                topics: read_topics(reader)?,
            };
            if streams.insert(id, stream).is_some() {
                return Err(WireError::Duplicate("a stream's permissions"));
            }
            more = flag(reader)?;
        }
        Ok(Permissions { global, streams })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.global.write(out);
        out.push(!self.streams.is_empty() as u8);
        let mut streams_left = self.streams.len();
        for (id, stream) in &self.streams {
            id.write(out);
            stream.rights.write(out);
            out.push(!stream.topics.is_empty() as u8);
            let mut topics_left = stream.topics.len();
            for (id, topic) in &stream.topics {
                topics_left -= 1;
                id.write(out);
                topic.write(out);
                out.push((topics_left > 0) as u8);
            }
            streams_left -= 1;
            out.push((streams_left > 0) as u8);
        }
    }
}

/// Permissions with a four-byte length in front.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PermissionsBlock(pub Permissions);

impl<'a> Wire<'a> for PermissionsBlock {
    const BYTES_MIN: usize = 4 + Permissions::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let bytes = u32::read(reader)? as usize;
        Ok(PermissionsBlock(Permissions::decode(reader.take(bytes)?)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_block32(out, |out| self.0.write(out));
    }
}

/// The end of a user's details: `01` and permissions with their length, or four zero bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PermissionsTail(pub Option<Permissions>);

impl<'a> Wire<'a> for PermissionsTail {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        if flag(reader)? {
            let PermissionsBlock(permissions) = reader.read()?;
            return Ok(PermissionsTail(Some(permissions)));
        }
        reader.take(3)?;
        Ok(PermissionsTail(None))
    }

    fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Some(permissions) => {
                out.push(1);
                write_block32(out, |out| permissions.write(out));
            }
            None => out.extend_from_slice(&[0; 4]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions() -> Permissions {
        let topic = TopicPermissions {
            read_topic: true,
            ..TopicPermissions::default()
        };
        let stream = StreamPermissions {
            rights: StreamRights::default(),
            topics: [(1, topic), (2, topic)].into(),
        };
        Permissions {
            global: GlobalPermissions::ALL,
            streams: [(1, stream.clone()), (9, stream)].into(),
        }
    }

    #[test]
    fn any_non_zero_byte_is_a_right_but_only_one_is_a_flag() {
        let mut bytes = Permissions::default().encode();
        bytes[0] = 200;
        let read = Permissions::decode(&bytes).expect("well formed");
        assert!(read.global.manage_servers);
        bytes[10] = 2;
        let read = Permissions::decode(&bytes).expect("no streams follow");
        assert!(read.streams.is_empty());
    }

    #[test]
    fn a_stream_or_topic_that_stands_twice_is_refused() {
        let bytes = permissions().encode();
        let stream_bytes = (bytes.len() - 11) / 2;
        let topic_id_second = 11 + 4 + 6 + 1 + 9;
        assert_eq!(bytes[topic_id_second], 2);
        for (at, what) in [
            (topic_id_second, "a topic's permissions"),
            (11 + stream_bytes, "a stream's permissions"),
        ] {
            let mut bytes = bytes.clone();
            bytes[at] = 1;
            assert_eq!(Permissions::decode(&bytes), Err(WireError::Duplicate(what)));
        }
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = permissions().encode();
        for cut in 0..bytes.len() {
            assert!(Permissions::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        assert_eq!(Permissions::decode(&bytes), Ok(permissions()));
    }
}
