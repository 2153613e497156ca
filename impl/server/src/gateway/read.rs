//! Reads of the catalog: streams and topics, with the counts that only the machine has.

use pawl_machine::PawlMachine;
use pawl_machine::catalog::rights::Action;
use pawl_wire::command::CommandCode;
use pawl_wire::commands::streams::GetStream;
use pawl_wire::commands::topics::{GetTopic, GetTopics};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::RequestHeader;
use pawl_wire::primitives::Wire;

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use super::target::permit;
use crate::clients::Binding;
use crate::shard::InDoubt;

impl Connection {
    /// Reads streams or topics. What is missing is an empty answer, not an error.
    pub(super) async fn catalog_read(
        &self,
        request: &Request,
        command: CommandCode,
        binding: &Binding,
    ) -> Answered {
        let refused = match command {
            CommandCode::GetStream => self.get_stream(request, binding).await,
            CommandCode::GetStreams => self.get_streams(request, binding).await,
            CommandCode::GetTopics => self.get_topics(request, binding).await,
            _ => self.get_topic(request, binding).await,
        };
        refused.unwrap_or_else(|code| self.denied(&request.header, code))
    }

    async fn get_stream(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let get = GetStream::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let stream = {
            let catalog = self.shard.node.catalog.load();
            let Ok(stream) = catalog.stream(get.stream) else {
                // Whether it exists is not told to those who may not read it.
                permit(&catalog, who.user, Action::ListStreams)?;
                return Ok(self.empty(&request.header));
            };
            permit(&catalog, who.user, Action::ReadStream(stream.id))?;
            stream.id
        };
        self.payload(&request.header, move |machine, out| {
            machine.write_stream_details(stream, out);
        })
        .await
    }

    async fn get_streams(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        permit(
            &self.shard.node.catalog.load(),
            who.user,
            Action::ListStreams,
        )?;
        self.payload(&request.header, PawlMachine::write_streams)
            .await
    }

    async fn get_topics(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let get = GetTopics::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let stream = {
            let catalog = self.shard.node.catalog.load();
            let Ok(stream) = catalog.stream(get.stream) else {
                permit(&catalog, who.user, Action::ListStreams)?;
                let reply = self.reply_to(&request.header);
                return Ok(Answered::Frame(reply.success(&0u32)));
            };
            permit(&catalog, who.user, Action::ListTopics(stream.id))?;
            stream.id
        };
        self.payload(&request.header, move |machine, out| {
            machine.write_topics(stream, out);
        })
        .await
    }

    async fn get_topic(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let get = GetTopic::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let (stream, topic) = {
            let catalog = self.shard.node.catalog.load();
            let Ok((stream, topic)) = catalog.topic(get.stream, get.topic) else {
                permit(&catalog, who.user, Action::ListStreams)?;
                return Ok(self.empty(&request.header));
            };
            let (stream, topic) = (stream.id, topic.id);
            permit(&catalog, who.user, Action::ReadTopic(stream, topic))?;
            (stream, topic)
        };
        self.payload(&request.header, move |machine, out| {
            machine.write_topic_details(stream, topic, out);
        })
        .await
    }

    /// The answer whose payload the machine writes.
    pub(super) async fn payload(
        &self,
        request: &RequestHeader,
        fill: impl FnOnce(&PawlMachine, &mut Vec<u8>) + Send + 'static,
    ) -> Result<Answered, ErrorCode> {
        let payload = self
            .shard
            .ask(move |machine| {
                let mut out = Vec::new();
                fill(machine, &mut out);
                out
            })
            .await
            .map_err(InDoubt::of_a_read)?;
        // spec ANS-25: a list that no frame can hold is refused, never cut.
        if payload.len() + pawl_wire::headers::HEADER_BYTES
            > self.shard.node.frame_bytes_max as usize
        {
            return Err(ErrorCode::InvalidSizeBytes);
        }
        let reply = self.reply_to(request);
        Ok(Answered::Frame(
            reply.success_with(|out| out.extend_from_slice(&payload)),
        ))
    }
}
