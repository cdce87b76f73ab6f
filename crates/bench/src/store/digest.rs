//! Digest authentication (RFC 7616): a server asks, and each request carries proof that its sender has the password.
//!
//! Spoken are MD5 and SHA-256, each also with `-sess`, and `qop=auth`. Of several challenges the stronger algorithm is
//! taken. The first request of a worker goes without proof, and again with it once it was asked for; later ones carry
//! proof at once, until the server wants another nonce.
//! Always holds: the password is in no request and no message; a nonce is one worker's, so that its count has no gaps;
//! a request is sent twice at most.

use base64::Engine;
use http_auth::{ChallengeRef, parse_challenges};
use md5::Md5;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use world::World;

/// The user, and the password of which requests prove that they have it.
pub struct DigestLogin {
    user: String,
    password: String,
}

/// How a server wants users to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginScheme {
    /// By Digest.
    Digest,
    /// By Basic, or it did not ask.
    Basic,
    /// By others alone: their names.
    Others(String),
}

/// An algorithm, the stronger ones behind the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DigestAlgorithm {
    Md5,
    Md5Session,
    Sha256,
    Sha256Session,
}

/// A challenge that can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Challenge {
    algorithm: DigestAlgorithm,
    realm: String,
    nonce: String,
    opaque: Option<String>,
}

/// What one worker knows of a server's challenges.
#[derive(Default)]
pub struct DigestState {
    answered: Option<(Challenge, Sess)>,
    count: u32,
}

/// Of a session: the hash of its secret, and the worker's own nonce.
struct Sess {
    secret: String,
    own_nonce: String,
}

impl DigestLogin {
    /// Of a user whose name a header can hold; `:` divides it from the password, and may not be in it.
    pub fn new(user: &str, password: &str) -> Option<Arc<Self>> {
        let is_good = user.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b':');
        is_good.then(|| {
            Arc::new(Self {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        })
    }
}

impl DigestAlgorithm {
    fn of(name: &str) -> Option<Self> {
        let known = [Self::Md5, Self::Md5Session, Self::Sha256, Self::Sha256Session];
        known.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Md5Session => "MD5-sess",
            Self::Sha256 => "SHA-256",
            Self::Sha256Session => "SHA-256-sess",
        }
    }

    /// The hash of a text, in hexadecimal digits.
    fn hash(self, text: &str) -> String {
        match self {
            Self::Md5 | Self::Md5Session => hexadecimal(&Md5::digest(text)),
            Self::Sha256 | Self::Sha256Session => hexadecimal(&Sha256::digest(text)),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Values of the header in which a server asks who is there.
fn challenge_headers(head: &str) -> impl Iterator<Item = &str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields
        .filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"))
        .map(|(_, value)| value.trim())
}

/// What a challenge that can be answered says.
fn read(challenge: &ChallengeRef<'_>) -> Option<Challenge> {
    let value = |name: &str| {
        let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_unescaped())
    };
    let protections = value("qop")?;
    let mut protections = protections.split(',').map(str::trim);
    let algorithm = value("algorithm").unwrap_or_else(|| "MD5".to_owned());
    (challenge.scheme.eq_ignore_ascii_case("digest") && protections.any(|one| one.eq_ignore_ascii_case("auth")))
        .then_some(())?;
    Some(Challenge {
        algorithm: DigestAlgorithm::of(&algorithm)?,
        realm: value("realm")?,
        nonce: value("nonce")?,
        opaque: value("opaque"),
    })
}

/// The strongest challenge in the head of an answer that can be answered.
fn strongest(head: &str) -> Option<Challenge> {
    let all = challenge_headers(head).filter_map(|value| parse_challenges(value).ok());
    let all: Vec<Challenge> = all.flatten().filter_map(|challenge| read(&challenge)).collect();
    all.into_iter().max_by_key(|challenge| challenge.algorithm)
}

impl LoginScheme {
    /// What the head of an answer asks for. Only an answer with status 401 does.
    pub fn asked_in(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head);
        if strongest(&head).is_some() {
            return Self::Digest;
        }
        let others = challenge_headers(&head).filter_map(|value| parse_challenges(value).ok());
        let others: Vec<String> = others.flatten().map(|one| described(&one)).collect();
        match others.is_empty() || others.iter().any(|name| name.eq_ignore_ascii_case("basic")) {
            true => Self::Basic,
            false => Self::Others(others.join(", ")),
        }
    }
}

/// The name of a scheme; of Digest with what is not spoken of it.
fn described(challenge: &ChallengeRef<'_>) -> String {
    if !challenge.scheme.eq_ignore_ascii_case("digest") {
        return challenge.scheme.to_owned();
    }
    let limits = challenge.params.iter().filter(|(name, _)| {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        is("algorithm") || is("qop")
    });
    let limits = limits.map(|(name, value)| format!(" {name}={}", value.to_unescaped()));
    format!("Digest{}", limits.collect::<String>())
}

impl DigestState {
    /// Takes the head of an answer that refused: whether the request may be sent again, with proof.
    pub fn is_asked(&mut self, world: &World, login: &DigestLogin, head: &[u8]) -> bool {
        let Some(asked) = strongest(&String::from_utf8_lossy(head)) else {
            return false;
        };
        if self.answered.as_ref().is_some_and(|(answered, _)| *answered == asked) {
            return false;
        }
        let mut bytes = [0; 18];
        world.random.fill(&mut bytes);
        self.answer(
            login,
            asked,
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes),
        );
        true
    }

    fn answer(&mut self, login: &DigestLogin, asked: Challenge, own_nonce: String) {
        let DigestLogin { user, password } = login;
        let secret = asked.algorithm.hash(&format!("{user}:{}:{password}", asked.realm));
        let secret = match asked.algorithm {
            DigestAlgorithm::Md5 | DigestAlgorithm::Sha256 => secret,
            session => session.hash(&format!("{secret}:{}:{own_nonce}", asked.nonce)),
        };
        self.answered = Some((asked, Sess { secret, own_nonce }));
        self.count = 0;
    }

    /// A request's head with proof, once it was asked for; the head ends with an empty line.
    pub fn proven(&mut self, login: &DigestLogin, head: &[u8]) -> Option<Vec<u8>> {
        let (challenge, session) = self.answered.as_ref()?;
        let line = head.split(|byte| *byte == b'\r').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let (verb, target) = (words.next()?, words.next()?);
        self.count = self.count.checked_add(1)?;
        let count = format!("{:08x}", self.count);
        let hash = |text: &str| challenge.algorithm.hash(text);
        let Challenge { nonce, realm, .. } = challenge;
        let Sess { secret, own_nonce } = session;
        let request = hash(&format!("{verb}:{target}"));
        let response = hash(&format!("{secret}:{nonce}:{count}:{own_nonce}:auth:{request}"));
        let mut field = format!(
            "Authorization: Digest username={}, realm={}, nonce={}, uri={}, algorithm={}, qop=auth, nc={count}, \
             cnonce=\"{own_nonce}\", response=\"{response}\"",
            quoted(&login.user),
            quoted(realm),
            quoted(nonce),
            quoted(target),
            challenge.algorithm.name()
        );
        if let Some(opaque) = &challenge.opaque {
            let _ = write!(field, ", opaque={}", quoted(opaque));
        }
        let mut proven = head.strip_suffix(b"\r\n")?.to_vec();
        proven.extend_from_slice(field.as_bytes());
        proven.extend_from_slice(b"\r\n\r\n");
        Some(proven)
    }
}

/// A text as a quoted string (RFC 9110, 5.6.4).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::{DigestLogin, DigestState, LoginScheme, strongest};
    use world::World;

    const REALM: &str = "http-auth@example.org";
    const NONCE: &str = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
    const OWN: &str = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";

    fn head(algorithm: &str) -> String {
        format!(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"{REALM}\", qop=\"auth, auth-int\", \
             algorithm={algorithm}, nonce=\"{NONCE}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"\r\n\r\n"
        )
    }

    /// The examples of RFC 7616, 3.9.1.
    #[test]
    fn responses_are_those_of_the_standard() {
        let login = DigestLogin::new("Mufasa", "Circle of Life").unwrap();
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let mut state = DigestState::default();
            assert_eq!(
                state.proven(&login, b"GET / HTTP/1.1\r\n\r\n"),
                None,
                "nothing was asked"
            );
            state.answer(&login, strongest(&head(algorithm)).unwrap(), OWN.to_owned());
            let proven = state.proven(&login, b"GET /dir/index.html HTTP/1.1\r\nHost: a\r\n\r\n");
            let proven = String::from_utf8(proven.unwrap()).unwrap();
            let field = format!(
                "GET /dir/index.html HTTP/1.1\r\nHost: a\r\nAuthorization: Digest username=\"Mufasa\", realm=\"{REALM}\", \
                 nonce=\"{NONCE}\", uri=\"/dir/index.html\", algorithm={algorithm}, qop=auth, nc=00000001, \
                 cnonce=\"{OWN}\", response=\"{response}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"\r\n\r\n"
            );
            assert_eq!(proven, field);
            let again = state.proven(&login, b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert!(String::from_utf8(again).unwrap().contains("nc=00000002"));
        }
    }

    #[test]
    fn the_strongest_challenge_is_answered_once() {
        let (login, world) = (DigestLogin::new("a", "b").unwrap(), World::real());
        let both = head("MD5") + &head("SHA-256");
        let mut state = DigestState::default();
        assert!(state.is_asked(&world, &login, both.as_bytes()));
        assert!(!state.is_asked(&world, &login, both.as_bytes()), "the answer was wrong");
        let proven = state.proven(&login, b"HEAD /x HTTP/1.1\r\n\r\n").unwrap();
        assert!(String::from_utf8(proven).unwrap().contains("algorithm=SHA-256"));
        assert!(state.is_asked(&world, &login, both.replace(NONCE, "fresh").as_bytes()));
    }

    #[test]
    fn schemes_are_distinguished() {
        let asked = |fields: &str| LoginScheme::asked_in(format!("HTTP/1.1 401 No\r\n{fields}\r\n").as_bytes());
        assert_eq!(LoginScheme::asked_in(head("md5").as_bytes()), LoginScheme::Digest);
        assert_eq!(asked(""), LoginScheme::Basic);
        assert_eq!(asked("www-authenticate: Basic realm=\"x\"\r\n"), LoginScheme::Basic);
        let others = asked(
            "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: Digest realm=\"x\", nonce=\"1\", qop=\"auth-int\"\r\n",
        );
        assert_eq!(others, LoginScheme::Others("Negotiate, Digest qop=auth-int".to_owned()));
        assert!(
            strongest(&head("SHA-512-256")).is_none() && strongest("WWW-Authenticate: Digest \"\u{fffd}").is_none()
        );
        assert!(DigestLogin::new("a:b", "c").is_none() && DigestLogin::new("ü", "c").is_none());
    }
}
