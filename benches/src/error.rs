//! What can go wrong while measuring. Every variant says what was being done.

use std::io;
use std::path::PathBuf;

use pawl_wire::reply::AnswerError;

/// Why a measurement ended without a number.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A number in the arguments does not make sense.
    #[error("{0}")]
    Arguments(&'static str),
    /// The server refused a request that a measurement cannot go on without.
    #[error("{request} was refused with error {code}")]
    Refused {
        /// The request.
        request: &'static str,
        /// The dialect's error code.
        code: u32,
    },
    /// The server ended the session.
    #[error("{request} was answered with eviction {reason}")]
    Evicted {
        /// The request.
        request: &'static str,
        /// The dialect's reason.
        reason: u8,
    },
    /// The server's bytes are not an answer.
    #[error("the answer is malformed: {0}")]
    Answer(#[from] AnswerError),
    /// An answer announces a size that no answer has.
    #[error("an answer announces {0} bytes")]
    AnswerBytes(u32),
    /// The answer's payload is not what the request asks for.
    #[error("{request}: {what}")]
    Payload {
        /// The request.
        request: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The server closed the connection.
    #[error("the server closed a connection under load")]
    Closed,
    /// A request stayed without an answer.
    #[error("no answer came for {0:?}")]
    Silent(std::time::Duration),
    /// The node did not become ready, or ended by itself.
    #[error("the node {binary}: {what}")]
    Node {
        /// The program.
        binary: PathBuf,
        /// What happened.
        what: String,
    },
    /// The plot could not be drawn.
    #[error("the plot cannot be drawn: {0}")]
    Plot(String),
    /// A file of results has another shape.
    #[error("{path}: {what}")]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, BenchError>;

/// Says what was being done when the system refused.
pub trait Doing<T> {
    /// Adds `doing` to the error.
    fn doing(self, doing: &'static str) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|source| BenchError::Io { doing, source })
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|errno| BenchError::Io {
            doing,
            source: errno.into(),
        })
    }
}
