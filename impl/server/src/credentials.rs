//! Passwords: who the first user is, and the threads that hash.
//!
//! Argon2id takes milliseconds and megabytes, so that it runs on a bounded pool, never on a shard.

use std::sync::Arc;
use std::thread;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use crossbeam_channel::{Sender, TrySendError, bounded};
use rand::RngExt;
use tokio::sync::oneshot;

use crate::config::Environment;
use crate::limits::{HASHING_THREADS, LOGINS_WAITING_MAX};

/// The name of the first user, where the environment gives none.
pub const ROOT_NAME_DEFAULT: &str = "iggy";

/// Characters of a generated password: none that look alike.
const ALPHABET: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Length of a generated password.
const GENERATED_CHARACTERS: usize = 24;

/// Name and password of the first user.
#[derive(Clone, PartialEq, Eq)]
pub struct RootCredentials {
    /// The name.
    pub username: String,
    /// The password.
    pub password: String,
    /// Whether it was made up here, and must be told once.
    pub generated: bool,
}

impl std::fmt::Debug for RootCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RootCredentials({})", self.username)
    }
}

/// Why the first user cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RootError {
    /// One of the two variables is missing.
    #[error("IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD must be set both, or neither")]
    OneOfTwo,
    /// The name's length is out of range.
    #[error("IGGY_ROOT_USERNAME has {0} bytes; 3 to 50 are allowed")]
    UsernameBytes(usize),
    /// The password's length is out of range.
    #[error("IGGY_ROOT_PASSWORD has {0} bytes; 3 to 100 are allowed")]
    PasswordBytes(usize),
}

/// Who the first user is.
pub fn root_credentials(
    environment: &Environment,
    default_credentials: bool,
) -> Result<RootCredentials, RootError> {
    let default = default_credentials.then_some(ROOT_NAME_DEFAULT);
    let username = environment.get("ROOT_USERNAME").or(default);
    let password = environment.get("ROOT_PASSWORD").or(default);
    match (username, password) {
        (Some(username), Some(password)) => {
            if !(3..=50).contains(&username.len()) {
                return Err(RootError::UsernameBytes(username.len()));
            }
            if !(3..=100).contains(&password.len()) {
                return Err(RootError::PasswordBytes(password.len()));
            }
            Ok(RootCredentials {
                username: username.to_owned(),
                password: password.to_owned(),
                generated: false,
            })
        }
        (None, None) => Ok(RootCredentials {
            username: ROOT_NAME_DEFAULT.to_owned(),
            password: generated_password(),
            generated: true,
        }),
        _ => Err(RootError::OneOfTwo),
    }
}

fn generated_password() -> String {
    let mut rng = rand::rng();
    (0..GENERATED_CHARACTERS)
        .map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]))
        .collect()
}

/// The Argon2id hash of a password, as PHC text with a fresh salt.
pub fn hash(password: &str) -> String {
    let hashed: PasswordHash = Argon2::default()
        .hash_password(password.as_bytes())
        .expect("the parameters are constant and the salt is generated");
    hashed.to_string()
}

/// Whether `hash` is of this password.
pub fn verify(password: &str, hash: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    Argon2::default()
        .verify_password(password.as_bytes(), &hash)
        .is_ok()
}

/// Too many password checks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{LOGINS_WAITING_MAX} password checks wait already")]
pub struct HashersBusy;

/// A check that waits for a hashing thread.
struct Check {
    password: String,
    /// `None`: there is no such user; the same work is done, so that time does not tell.
    hash: Option<Arc<str>>,
    verdict: oneshot::Sender<bool>,
}

/// The hashing threads. They end when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Hashers {
    checks: Sender<Check>,
}

impl Hashers {
    /// Starts the threads.
    pub fn start() -> std::io::Result<Hashers> {
        let (checks, queue) = bounded::<Check>(LOGINS_WAITING_MAX);
        for number in 0..HASHING_THREADS {
            let queue = queue.clone();
            thread::Builder::new()
                .name(format!("hash-{number}"))
                .spawn(move || {
                    for check in queue {
                        let matches = match &check.hash {
                            Some(hash) => verify(&check.password, hash),
                            None => {
                                hash(&check.password);
                                false
                            }
                        };
                        // The connection may be gone; then nobody asks.
                        let _ = check.verdict.send(matches);
                    }
                })?;
        }
        Ok(Hashers { checks })
    }

    /// Whether `hash` is of this password.
    pub async fn verify(
        &self,
        password: &str,
        hash: Option<Arc<str>>,
    ) -> Result<bool, HashersBusy> {
        let (verdict, answer) = oneshot::channel();
        let check = Check {
            password: password.to_owned(),
            hash,
            verdict,
        };
        match self.checks.try_send(check) {
            Ok(()) => Ok(answer.await.unwrap_or(false)),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(HashersBusy),
        }
    }

    /// How many checks wait.
    pub fn waiting(&self) -> usize {
        self.checks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_first_user() {
        let both = Environment::from_pairs([
            ("IGGY_ROOT_USERNAME", "root"),
            ("IGGY_ROOT_PASSWORD", "secret"),
        ]);
        let root = root_credentials(&both, false).expect("both are set");
        assert_eq!(
            (root.username.as_str(), root.password.as_str()),
            ("root", "secret")
        );
        let own = Environment::from_pairs([
            ("PAWL_ROOT_USERNAME", "mine"),
            ("IGGY_ROOT_USERNAME", "root"),
            ("IGGY_ROOT_PASSWORD", "secret"),
        ]);
        let root = root_credentials(&own, false).expect("both are set");
        assert_eq!(root.username, "mine");
        assert!(!root.generated);
    }

    #[test]
    fn without_it_a_password_is_made_up_or_the_default_taken() {
        let nothing = Environment::default();
        let first = root_credentials(&nothing, false).expect("generated");
        let second = root_credentials(&nothing, false).expect("generated");
        assert!(first.generated && first.username == "iggy");
        assert!((20..=39).contains(&first.password.len()));
        assert_ne!(first.password, second.password);
        assert!(!format!("{first:?}").contains(&first.password));

        let default = root_credentials(&nothing, true).expect("default");
        assert_eq!(default.password, "iggy");
    }

    #[test]
    fn half_or_bad_credentials_are_refused() {
        let half = Environment::from_pairs([("IGGY_ROOT_USERNAME", "root")]);
        assert_eq!(root_credentials(&half, false), Err(RootError::OneOfTwo));
        let short = Environment::from_pairs([
            ("IGGY_ROOT_USERNAME", "ro"),
            ("IGGY_ROOT_PASSWORD", "secret"),
        ]);
        assert_eq!(
            root_credentials(&short, false),
            Err(RootError::UsernameBytes(2))
        );
    }

    #[test]
    fn hashes_verify_and_differ() {
        let first = hash("secret");
        assert!(first.starts_with("$argon2id$"));
        assert_ne!(first, hash("secret"), "the salt is fresh");
        assert!(verify("secret", &first));
        assert!(!verify("Secret", &first));
        assert!(!verify("secret", "no hash"));
    }

    #[test]
    fn checks_run_on_the_pool() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let hashers = Hashers::start().expect("threads");
        let hash: Arc<str> = hash("secret").into();
        runtime.block_on(async {
            assert_eq!(hashers.verify("secret", Some(hash.clone())).await, Ok(true));
            assert_eq!(hashers.verify("wrong", Some(hash)).await, Ok(false));
            assert_eq!(hashers.verify("secret", None).await, Ok(false));
        });
    }
}
