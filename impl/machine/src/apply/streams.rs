//! Streams: create, rename, delete, purge.

use pawl_wire::commands::streams::{CreateStream, DeleteStream, PurgeStream, UpdateStream};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{StreamId, TopicId};
use pawl_wire::primitives::Identifier;

use super::request::{Executed, Execution};
use crate::catalog::rights::Action;
use crate::check::{decode, no_options};
use crate::effect::Effect;
use crate::limits::STREAMS_MAX;
use crate::machine::PawlMachine;

impl PawlMachine {
    pub(super) fn create_stream(&mut self, execution: Execution<'_>) -> Executed {
        let Execution {
            header,
            reply,
            effects,
            ..
        } = execution;
        let request = decode::<CreateStream<'_>>(execution.body)?;
        self.authorise(execution.header, Action::CreateStream)?;
        no_options(request.options.is_empty())?;
        if self.catalog.stream(Identifier::Named(request.name)).is_ok() {
            return Err(ErrorCode::StreamNameAlreadyExists);
        }
        if self.catalog.streams().len() >= STREAMS_MAX as usize {
            return Err(ErrorCode::TooManyStreams);
        }
        let name = request.name.as_str();
        let stream = self
            .catalog
            .insert_stream(name, header.op(), header.timestamp());
        effects.push(Effect::CatalogChanged);
        Ok(reply.success_with(|out| self.write_stream(&stream, out)))
    }

    pub(super) fn update_stream(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<UpdateStream<'_>>(execution.body)?;
        let stream = self.catalog.stream(request.stream)?.id;
        self.authorise(execution.header, Action::ManageStream(stream))?;
        no_options(request.options.is_empty())?;
        let namesake = self.catalog.stream(Identifier::Named(request.name));
        if namesake.is_ok_and(|namesake| namesake.id != stream) {
            return Err(ErrorCode::StreamNameAlreadyExists);
        }
        self.catalog.rename_stream(stream, request.name.as_str());
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    pub(super) fn delete_stream(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<DeleteStream<'_>>(execution.body)?;
        let stream = self.catalog.stream(request.stream)?.id;
        self.authorise(execution.header, Action::ManageStream(stream))?;
        for topic in self.topics_of(stream) {
            self.drop_topic_data(stream, topic, execution.effects);
        }
        self.catalog.remove_stream(stream);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    pub(super) fn purge_stream(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<PurgeStream<'_>>(execution.body)?;
        let stream = self.catalog.stream(request.stream)?.id;
        self.authorise(execution.header, Action::ManageStream(stream))?;
        for topic in self.topics_of(stream) {
            self.purge_topic_data(stream, topic, execution.effects);
        }
        Ok(execution.reply.empty())
    }

    fn topics_of(&self, stream: StreamId) -> Vec<TopicId> {
        let stream = self.catalog.stream_by_id(stream);
        let stream = stream.expect("the stream was found before");
        stream.topics().map(|topic| topic.id).collect()
    }
}
