//! The server itself: figures, connections, roster, options, and on a node alone the routes that
//! lead back to it.

use pawl_machine::catalog::rights::Action;
use pawl_machine::query::MachineTotals;
use pawl_wire::command::CommandCode;
use pawl_wire::commands::messages::{PollMessages, RouteReply};
use pawl_wire::commands::offsets::GetOffsetRoute;
use pawl_wire::commands::session::AttachConsumerSession;
use pawl_wire::commands::system::{
    ClientDetails, ClientGroup, ClientInfo, ClusterMetadataReply, DescribeOptions,
    DescribeOptionsReply, GetClient, Node, NodeRole, NodeStatus, OptionDescription, OptionScope,
    StatsReply, Transport, USER_ID_NONE,
};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::RequestHeader;
use pawl_wire::ids::ClientId;
use pawl_wire::primitives::{Bytes32, List, Name, Text32, ToEnd, Wire};
use pawl_wire::topic_options::TopicOption;

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use super::groups::Standing;
use super::target::permit;
use crate::clients::{Binding, ClientView};
use crate::host::{Host, Process};
use crate::limits::{NODE_NAME, ROSTER_NAME};
use crate::shard::{InDoubt, now};

impl Connection {
    /// Answers what is about the server.
    pub(super) async fn system(
        &self,
        request: &Request,
        command: CommandCode,
        binding: &Binding,
    ) -> Answered {
        let header = &request.header;
        let answered = match command {
            CommandCode::GetStats => self.stats(header, binding).await,
            CommandCode::GetMe => self.me(header).await,
            CommandCode::GetClient => self.client(request, binding).await,
            CommandCode::GetClients => self.clients(header, binding).await,
            CommandCode::GetClusterMetadata => Ok(self.roster(header)),
            CommandCode::DescribeOptions => self.describe_options(request),
            CommandCode::AttachConsumerSession => self.attach(request, binding).await,
            CommandCode::GetPollRoute | CommandCode::GetOffsetRoute => {
                self.route(request, command, binding)
            }
            _ => Ok(self.empty(header)),
        };
        answered.unwrap_or_else(|code| self.denied(header, code))
    }

    /// Whether the user may read about the server.
    fn permit_servers(&self, binding: &Binding) -> Result<(), ErrorCode> {
        let catalog = self.shard.node.catalog.load();
        permit(&catalog, binding.user, Action::ReadServers)
    }

    async fn stats(&self, header: &RequestHeader, who: &Binding) -> Result<Answered, ErrorCode> {
        self.permit_servers(who)?;
        let totals = self.shard.ask(|machine| machine.totals()).await;
        let totals = totals.map_err(InDoubt::of_a_read)?;
        let node = &self.shard.node;
        let host = Host::read(&node.data_dir);
        let process = Process::read(node.started_at);
        let clients = node.clients.count() as u32;
        let reply = stats_reply(&totals, &host, &process, node.started_at, clients);
        Ok(Answered::Frame(self.reply_to(header).success(&reply)))
    }

    async fn me(&self, header: &RequestHeader) -> Result<Answered, ErrorCode> {
        let number = self.registration.number();
        let view = self.shard.node.clients.get(number);
        let view = view.ok_or(ErrorCode::ClientNotFound)?;
        self.client_details(header, &view).await
    }

    async fn client(&self, request: &Request, binding: &Binding) -> Result<Answered, ErrorCode> {
        self.permit_servers(binding)?;
        let get = GetClient::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        Ok(match self.shard.node.clients.get(get.client_id) {
            Some(view) => self.client_details(&request.header, &view).await?,
            None => self.empty(&request.header),
        })
    }

    async fn clients(
        &self,
        header: &RequestHeader,
        binding: &Binding,
    ) -> Result<Answered, ErrorCode> {
        self.permit_servers(binding)?;
        let views = self.shard.node.clients.list();
        let addresses: Vec<String> = views.iter().map(|view| view.address.to_string()).collect();
        let clients: Vec<Option<ClientId>> = views.iter().map(|view| view.client).collect();
        let groups = self
            .shard
            .ask(move |machine| {
                let groups = |client| machine.memberships().of(client).count() as u32;
                let counts = clients.into_iter().map(|client| client.map_or(0, groups));
                counts.collect::<Vec<u32>>()
            })
            .await
            .map_err(InDoubt::of_a_read)?;
        let infos = views.iter().zip(&addresses).zip(groups);
        let infos = infos.map(|((view, address), groups)| client_info(view, address, groups));
        let infos = ToEnd(infos.collect());
        Ok(Answered::Frame(self.reply_to(header).success(&infos)))
    }

    async fn client_details(
        &self,
        header: &RequestHeader,
        view: &ClientView,
    ) -> Result<Answered, ErrorCode> {
        let address = view.address.to_string();
        let client = view.client;
        let consumer_groups = self.shard.ask(move |machine| {
            let keys = client.map(|client| machine.memberships().of(client));
            let groups = keys.into_iter().flatten();
            let groups = groups.map(|(stream, topic, group)| ClientGroup {
                stream: stream.0,
                topic: topic.0,
                group,
            });
            groups.collect::<Vec<ClientGroup>>()
        });
        let consumer_groups = consumer_groups.await.map_err(InDoubt::of_a_read)?;
        let info = client_info(view, &address, consumer_groups.len() as u32);
        let details = ClientDetails {
            client_id: info.client_id,
            user_id: info.user_id,
            transport: info.transport,
            address: info.address,
            consumer_groups,
        };
        Ok(Answered::Frame(self.reply_to(header).success(&details)))
    }

    fn roster(&self, header: &RequestHeader) -> Answered {
        let ip = self.shard.node.addresses.tcp.ip().to_string();
        let reply = ClusterMetadataReply {
            name: Text32(ROSTER_NAME),
            nodes: List(vec![self.own_node(&ip)]),
        };
        Answered::Frame(self.reply_to(header).success(&reply))
    }

    /// This node in a roster. A transport that is not served has port 0.
    fn own_node<'a>(&self, ip: &'a str) -> Node<'a> {
        let addresses = &self.shard.node.addresses;
        Node {
            name: Text32(NODE_NAME),
            ip: Text32(ip),
            tcp: addresses.tcp.port(),
            quic: 0,
            http: addresses.http.map_or(0, |http| http.port()),
            websocket: 0,
            role: NodeRole::Leader,
            status: NodeStatus::Healthy,
        }
    }

    fn describe_options(&self, request: &Request) -> Result<Answered, ErrorCode> {
        let describe =
            DescribeOptions::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let defaults: Vec<_> = match describe.scope {
            OptionScope::Topic => TopicOption::ALL
                .iter()
                .map(|option| (*option, option.default_value()))
                .collect(),
            OptionScope::Stream | OptionScope::User => Vec::new(),
        };
        let options = defaults.iter().map(|(option, default)| OptionDescription {
            key: Name::new(option.key()).expect("keys of the catalog are names"),
            kind: option.canonical_kind(),
            default: Bytes32(default.as_tlv().bytes),
            description: Text32(option.description()),
        });
        let reply = DescribeOptionsReply {
            options: List(options.collect()),
        };
        Ok(Answered::Frame(
            self.reply_to(&request.header).success(&reply),
        ))
    }

    /// Attaches to another session of the same user. On a node alone nothing follows from it.
    async fn attach(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let attach =
            AttachConsumerSession::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        if attach.metadata_watermark > self.shard.node.index.applied_op().0 {
            return Err(ErrorCode::TransientNotAccepted);
        }
        let parent = ClientId(attach.client_id);
        let view = self.shard.ask(move |machine| machine.client(parent)).await;
        match view.map_err(InDoubt::of_a_read)? {
            Some(view) if view.epoch.0 != attach.session || view.released_at.is_some() => {
                Err(ErrorCode::Unauthenticated)
            }
            Some(view) if view.owner.user != who.user => Err(ErrorCode::Unauthorized),
            Some(_) => Ok(self.empty(&request.header)),
            None => Err(ErrorCode::Unauthenticated),
        }
    }

    /// The way to a partition's primary: this node.
    fn route(
        &self,
        request: &Request,
        command: CommandCode,
        who: &Binding,
    ) -> Result<Answered, ErrorCode> {
        let malformed = |_| ErrorCode::InvalidCommand;
        let (consumer, stream, topic, partition) = if command == CommandCode::GetPollRoute {
            let get = PollMessages::decode(&request.body).map_err(malformed)?;
            (get.consumer, get.stream, get.topic, get.partition)
        } else {
            let get = GetOffsetRoute::decode(&request.body).map_err(malformed)?;
            (get.consumer, get.stream, get.topic, get.partition)
        };
        let partition = partition.0.unwrap_or(0);
        let target = self.target(who, stream, topic, partition, Action::Poll)?;
        match self.consumer_standing(who, &consumer, &target) {
            None => return Err(ErrorCode::ConsumerGroupIdNotFound),
            Some(Standing::NotOwner(_)) => {
                return Err(ErrorCode::ConsumerGroupPartitionNotOwned);
            }
            Some(Standing::Entitled(_)) => {}
        }
        let node = &self.shard.node;
        let ip = node.addresses.tcp.ip().to_string();
        let reply = RouteReply {
            client_id: who.client.0,
            session: who.epoch.0,
            metadata_watermark: node.index.applied_op().0,
            primary: self.own_node(&ip),
        };
        Ok(Answered::Frame(
            self.reply_to(&request.header).success(&reply),
        ))
    }
}

fn client_info<'a>(view: &ClientView, address: &'a str, groups: u32) -> ClientInfo<'a> {
    ClientInfo {
        client_id: view.number,
        user_id: view.user.map_or(USER_ID_NONE, |user| user.0),
        transport: Transport::Tcp,
        address: Text32(address),
        consumer_groups_count: groups,
    }
}

fn stats_reply<'a>(
    totals: &MachineTotals,
    host: &'a Host,
    process: &Process,
    started_at: u64,
    clients: u32,
) -> StatsReply<'a> {
    StatsReply {
        process_id: std::process::id(),
        cpu: process.cpu,
        total_cpu: host.cpu,
        memory: process.memory,
        total_memory: host.memory_total,
        available_memory: host.memory_available,
        run_time: now().0.saturating_sub(started_at),
        start_time: started_at,
        read_bytes: process.read_bytes,
        written_bytes: process.written_bytes,
        messages_size: totals.data.bytes,
        streams: totals.streams,
        topics: totals.topics,
        partitions: totals.partitions,
        segments: totals.data.segments as u32,
        messages: totals.data.messages,
        clients,
        consumer_groups: totals.consumer_groups,
        hostname: Text32(&host.hostname),
        os_name: Text32(&host.os_name),
        os_version: Text32(&host.os_version),
        kernel_version: Text32(&host.kernel_version),
        server_version: Text32(crate::SERVER_VERSION),
        server_semver: crate::SERVER_SEMVER,
        cache_metrics: List(Vec::new()),
        threads: process.threads,
        free_disk: host.disk_free,
        total_disk: host.disk_total,
    }
}
