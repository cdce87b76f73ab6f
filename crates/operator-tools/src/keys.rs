//! `keys`: access keys of S3 that the cluster keeps, by the gateway's own door (`/access-keys/ACCOUNT`).
//!
//! Comes in: how the account is reached (options, or the environment as the swift command reads it), what to do. Goes
//! out: what the gateway says, as text for people or as its JSON.
//! Always holds: a secret is printed by `make` and `rotate` only; tokens and passwords are in no message.

use crate::account_access::{AccountCredentials, trusting};
use crate::console::{Console, ToolStatus, ToolStop};
use clap::{Args, Subcommand};
use features::access::authtoken::connections::{Ask, KeystoneConnections};
use http::Method;
use peer::Url;
use serde_json::{Map, Value, json};
use settings::kinds::Secret;
use std::io;
use std::path::PathBuf;
use vocabulary::Fault;
use vocabulary::names::quote;
use world::World;

/// The command line of `keys`.
#[derive(Debug, Args)]
pub struct KeysArguments {
    /// Where TempAuth gives tokens, such as http://127.0.0.1:8080/auth/v1.0 [env: ST_AUTH].
    #[arg(short = 'A', long = "auth", value_name = "URL", global = true)]
    auth: Option<String>,
    /// The user of TempAuth who owns the account, such as test:tester [env: ST_USER].
    #[arg(short = 'U', long = "user", value_name = "ACCOUNT:USER", global = true)]
    user: Option<String>,
    /// The user's key [env: ST_KEY].
    #[arg(short = 'K', long = "key", value_name = "KEY", global = true)]
    key: Option<String>,
    /// With Keystone: the account's address, as `swift auth` prints it [env: OS_STORAGE_URL].
    #[arg(long, value_name = "URL", global = true)]
    os_storage_url: Option<String>,
    /// With Keystone: a token of the account's owner, as `swift auth` prints it [env: OS_AUTH_TOKEN].
    #[arg(long, value_name = "TOKEN", global = true)]
    os_auth_token: Option<String>,
    /// Another account than the user's own; for reseller administrators.
    #[arg(long, value_name = "ACCOUNT", global = true)]
    account: Option<String>,
    /// Print what the gateway answers: JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Do not verify certificates.
    #[arg(long, global = true)]
    insecure: bool,
    /// Authorities in PEM that vouch for the gateway's certificate.
    #[arg(long, value_name = "FILE", global = true)]
    cacert: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    command: KeysCommand,
}

/// What `keys` can do.
#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// List the account's keys.
    List,
    /// Show one key, without its secret.
    Show(KeyName),
    /// Make a key, and print it with its secret, which is not shown again.
    ///
    /// A client that signs requests of S3 with it acts as the user for whom it is made, within the limits given here.
    /// Examples:
    ///
    ///   martlet keys make --description laptop
    ///   martlet keys make --for test:tester3 --bucket 'logs-*' --action read,list
    ///   martlet keys make --action s3:GetObject --expires-in 3600
    #[command(verbatim_doc_comment)]
    Make(MakeArguments),
    /// Change the limits, the end or the description of a key; what is not named stays.
    ///
    /// Examples:
    ///
    ///   martlet keys limit MRTKXXXXXXXXXXXXXXXX --bucket photos --action read,list
    ///   martlet keys limit MRTKXXXXXXXXXXXXXXXX --all-buckets --no-end
    #[command(verbatim_doc_comment)]
    Limit(LimitArguments),
    /// Give a key a new secret, and print it; the id stays.
    ///
    /// With --grace the secret before stays good for so many seconds, so that clients can be given the new one.
    Rotate(RotateArguments),
    /// Let a key be used again.
    Enable(KeyName),
    /// Stop a key from being used, without deleting it.
    Disable(KeyName),
    /// Delete a key.
    Delete(KeyName),
}

/// A key.
#[derive(Debug, Args)]
struct KeyName {
    /// The key's id.
    #[arg(value_name = "ID")]
    id: String,
}

/// What limits a key.
#[derive(Debug, Args)]
struct Limits {
    /// A bucket that the key is for; * and ? stand for any characters. May be given several times, or with commas.
    #[arg(long, value_name = "BUCKET", value_delimiter = ',')]
    bucket: Vec<String>,
    /// What the key is for: read, write, list, delete, or S3's names, such as s3:GetObject or s3:Put*.
    #[arg(long, value_name = "ACTION", value_delimiter = ',')]
    action: Vec<String>,
    /// Seconds from now for which the key is good.
    #[arg(long, value_name = "SECONDS")]
    expires_in: Option<u64>,
    /// The time from which the key is good no longer, such as 2030-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", conflicts_with = "expires_in")]
    expires: Option<String>,
    /// Some words about the key.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// `make`.
#[derive(Debug, Args)]
struct MakeArguments {
    /// The user of the account for whom requests are done [default: the one who asks].
    #[arg(long = "for", value_name = "ACCOUNT:USER")]
    holder: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

/// `limit`.
#[derive(Debug, Args)]
struct LimitArguments {
    #[command(flatten)]
    key: KeyName,
    #[command(flatten)]
    limits: Limits,
    /// Let it be used for all buckets.
    #[arg(long, conflicts_with = "bucket")]
    all_buckets: bool,
    /// Let it be used for all that its user may do.
    #[arg(long, conflicts_with = "action")]
    all_actions: bool,
    /// Let it be good until it is deleted.
    #[arg(long, conflicts_with_all = ["expires", "expires_in"])]
    no_end: bool,
}

/// `rotate`.
#[derive(Debug, Args)]
struct RotateArguments {
    #[command(flatten)]
    key: KeyName,
    /// Seconds for which the secret before stays good.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    grace: u64,
}

/// Runs `keys`; `environment` is the process's.
pub async fn run(
    line: &KeysArguments,
    environment: impl Fn(&str) -> Option<String>,
    world: &World,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    match act(line, environment, world, console).await {
        Ok(()) => Ok(ToolStatus::SUCCESS),
        Err(stop) => stop.end(console),
    }
}

async fn act(
    line: &KeysArguments,
    environment: impl Fn(&str) -> Option<String>,
    world: &World,
    console: &mut Console<'_>,
) -> Result<(), ToolStop> {
    let connections = trusting(world, line.insecure, line.cacert.as_ref())?;
    let door = Door::open(line, environment, connections).await?;
    let (method, path, body) = request_of(&line.command);
    let answer = door.ask(method, &path, body).await?;
    if line.json {
        if answer != Value::Null {
            console.say(&answer)?;
        }
        return Ok(());
    }
    match &line.command {
        KeysCommand::List => print_all(&answer, console)?,
        KeysCommand::Delete(key) => console.say(format!("{} is deleted", key.id))?,
        _ => print_one(&answer, console)?,
    }
    Ok(())
}

/// What the gateway is asked: the verb, the path below the account's, the body.
fn request_of(command: &KeysCommand) -> (Method, String, Option<Value>) {
    let of = |key: &KeyName| format!("/{}", quote(&key.id).replace('/', "%2F"));
    match command {
        KeysCommand::List => (Method::GET, String::new(), None),
        KeysCommand::Show(key) => (Method::GET, of(key), None),
        KeysCommand::Make(make) => {
            let mut body = body_of(&make.limits);
            if let Some(holder) = &make.holder {
                body.insert("user".into(), holder.as_str().into());
            }
            (Method::POST, String::new(), Some(Value::Object(body)))
        }
        KeysCommand::Limit(limit) => {
            let mut body = body_of(&limit.limits);
            for (is_lifted, name) in [(limit.all_buckets, "buckets"), (limit.all_actions, "actions")] {
                if is_lifted {
                    body.insert(name.into(), json!([]));
                }
            }
            if limit.no_end {
                body.insert("expires".into(), Value::Null);
            }
            (Method::POST, of(&limit.key), Some(Value::Object(body)))
        }
        KeysCommand::Rotate(rotate) => (
            Method::POST,
            format!("{}/rotate", of(&rotate.key)),
            Some(json!({"grace": rotate.grace})),
        ),
        KeysCommand::Enable(key) => (Method::POST, of(key), Some(json!({"enabled": true}))),
        KeysCommand::Disable(key) => (Method::POST, of(key), Some(json!({"enabled": false}))),
        KeysCommand::Delete(key) => (Method::DELETE, of(key), None),
    }
}

fn body_of(limits: &Limits) -> Map<String, Value> {
    let mut body = Map::new();
    if !limits.bucket.is_empty() {
        body.insert("buckets".into(), json!(limits.bucket));
    }
    if !limits.action.is_empty() {
        body.insert("actions".into(), json!(limits.action));
    }
    if let Some(seconds) = limits.expires_in {
        body.insert("expires_in".into(), seconds.into());
    }
    if let Some(time) = &limits.expires {
        body.insert("expires".into(), time.as_str().into());
    }
    if let Some(text) = &limits.description {
        body.insert("description".into(), text.as_str().into());
    }
    body
}

/// The gateway's door to an account's keys, and a token that opens it.
struct Door {
    connections: KeystoneConnections,
    address: String,
    token: String,
}

impl Door {
    async fn open(
        line: &KeysArguments,
        environment: impl Fn(&str) -> Option<String>,
        connections: KeystoneConnections,
    ) -> Result<Self, Fault> {
        let given = |option: &Option<String>, name: &str| option.clone().or_else(|| environment(name));
        let storage = given(&line.os_storage_url, "OS_STORAGE_URL");
        let token = given(&line.os_auth_token, "OS_AUTH_TOKEN");
        let (storage, token) = match (storage, token) {
            // Options that name TempAuth's user win over an environment that names Keystone's.
            (Some(storage), Some(token)) if line.auth.is_none() => (storage, token),
            _ => {
                let need = |value: Option<String>, what: &str| {
                    value.ok_or_else(|| {
                        Fault::caller(format!(
                            "{what} is missing: give -A, -U and -K (or ST_AUTH, ST_USER and ST_KEY), or \
                             --os-storage-url and --os-auth-token (or OS_STORAGE_URL and OS_AUTH_TOKEN)"
                        ))
                    })
                };
                let credentials = AccountCredentials {
                    auth_url: need(given(&line.auth, "ST_AUTH"), "the address that gives tokens")?,
                    auth_version: "1.0".into(),
                    user: need(given(&line.user, "ST_USER"), "the user")?,
                    key: Secret(need(given(&line.key, "ST_KEY"), "the user's key")?),
                    project_name: String::new(),
                    project_domain_name: String::new(),
                    user_domain_name: String::new(),
                    region_name: String::new(),
                    endpoint_type: "publicURL".into(),
                };
                let access = credentials.access(&connections).await?;
                (access.storage, access.token)
            }
        };
        Ok(Self {
            address: address_of(&storage, line.account.as_deref())?,
            connections,
            token,
        })
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Fault> {
        let address = format!("{}{path}", self.address);
        let url = Url::parse(&address).ok_or_else(|| Fault::caller(format!("{address} is no address")))?;
        let ask = Ask {
            method,
            url: &url,
            headers: &[("x-auth-token", &self.token)],
            body: body.map(|body| body.to_string().into_bytes()),
        };
        let answer = self.connections.send(&ask).await;
        let answer = answer.map_err(|error| Fault::peer(format!("{address}: {error}")))?;
        match answer.status() {
            204 => Ok(Value::Null),
            200..=299 => answer
                .json()
                .map_err(|error| Fault::peer(format!("{address}: {error}"))),
            status => {
                let response = answer.json().unwrap_or_default();
                let why = response["error"].as_str().unwrap_or(match status {
                    401 => "the token is not valid.",
                    403 => "only the account's owner may do this.",
                    404 | 412 => "the gateway keeps no keys (access_keys of s3api).",
                    _ => "the gateway has refused.",
                });
                Err(Fault::peer(format!("{address}: {status}: {why}")))
            }
        }
    }
}

/// `http://host:port/access-keys/ACCOUNT` of an account's address.
fn address_of(storage: &str, account: Option<&str>) -> Result<String, Fault> {
    let parts = storage.trim_end_matches('/').rsplit_once("/v1/");
    let (base, own) = parts.ok_or_else(|| Fault::caller(format!("{storage}: expected http://host:port/v1/ACCOUNT")))?;
    let account = account.map_or_else(|| own.to_owned(), quote);
    Ok(format!("{base}/access-keys/{account}"))
}

fn text<'a>(key: &'a Value, name: &str) -> &'a str {
    key[name].as_str().unwrap_or_default()
}

/// Names separated by commas, or what stands for all.
fn listed(key: &Value, name: &str) -> String {
    let names = key[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "all".into()
    } else {
        names.join(",")
    }
}

fn state(key: &Value) -> &'static str {
    if key["enabled"] == true { "enabled" } else { "disabled" }
}

fn end(key: &Value) -> &str {
    key["expires"].as_str().unwrap_or("never")
}

fn print_one(key: &Value, console: &mut Console<'_>) -> io::Result<()> {
    console.say(format!("access key   {}", text(key, "access_key_id")))?;
    if let Some(secret) = key["secret_access_key"].as_str() {
        console.say(format!("secret       {secret}   (not shown again)"))?;
    }
    console.say(format!("user         {}", text(key, "user")))?;
    console.say(format!("state        {}", state(key)))?;
    console.say(format!("buckets      {}", listed(key, "buckets")))?;
    console.say(format!("actions      {}", listed(key, "actions")))?;
    console.say(format!("expires      {}", end(key)))?;
    console.say(format!("made         {}", text(key, "created")))?;
    if text(key, "secret_since") != text(key, "created") {
        console.say(format!("rotated      {}", text(key, "secret_since")))?;
    }
    if let Some(until) = key["former_secret_until"].as_str() {
        console.say(format!("old secret   good until {until}"))?;
    }
    match text(key, "description") {
        "" => Ok(()),
        words => console.say(format!("description  {words}")),
    }
}

fn print_all(answer: &Value, console: &mut Console<'_>) -> io::Result<()> {
    let keys = answer["keys"].as_array().map_or(&[][..], Vec::as_slice);
    let mut rows = vec![
        [
            "ACCESS KEY",
            "USER",
            "STATE",
            "BUCKETS",
            "ACTIONS",
            "EXPIRES",
            "DESCRIPTION",
        ]
        .map(str::to_owned),
    ];
    rows.extend(keys.iter().map(|key| {
        [
            text(key, "access_key_id").to_owned(),
            text(key, "user").to_owned(),
            state(key).to_owned(),
            listed(key, "buckets"),
            listed(key, "actions"),
            end(key).to_owned(),
            text(key, "description").to_owned(),
        ]
    }));
    let unreadable = answer["unreadable"].as_array().map_or(&[][..], Vec::as_slice);
    rows.extend(unreadable.iter().filter_map(Value::as_str).map(|id| {
        let mut row = <[String; 7]>::default();
        (row[0], row[2]) = (id.to_owned(), "cannot be read".to_owned());
        row
    }));
    let widths: Vec<usize> = (0..7)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        console.say(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_is_beside_the_account() {
        assert_eq!(
            address_of("http://h:1/v1/AUTH_a%20b/", None).unwrap(),
            "http://h:1/access-keys/AUTH_a%20b"
        );
        assert_eq!(
            address_of("https://h/swift/v1/AUTH_a", Some("AUTH_b c")).unwrap(),
            "https://h/swift/access-keys/AUTH_b%20c"
        );
        assert!(address_of("http://h", None).is_err());
    }

    #[test]
    fn what_is_not_named_stays() {
        let none = Limits {
            bucket: vec![],
            action: vec![],
            expires_in: None,
            expires: None,
            description: None,
        };
        assert!(body_of(&none).is_empty());
        let limit = KeysCommand::Limit(LimitArguments {
            key: KeyName { id: "a/b".into() },
            limits: Limits {
                bucket: vec!["x".into()],
                ..none
            },
            all_buckets: false,
            all_actions: true,
            no_end: true,
        });
        let body = json!({"buckets": ["x"], "actions": [], "expires": null});
        assert_eq!(request_of(&limit), (Method::POST, "/a%2Fb".into(), Some(body)));
    }
}
