//! `martlet bench driver`: waits for a controller, and does its part of one run at a time.
//!
//! Always holds: a peer that has not proved itself costs one greeting, and only [`GREETINGS`] of them at a time, for
//! which addresses take turns, so that a silent one keeps no controller out; a driver does nothing but the load of
//! workloads, reads no file but below `--files`, and starts no program; its load ends when its controller is gone.

use super::channel::DriverChannel;
use super::greeting::{acceptor, receive};
use super::message::{FromDriver, LONGEST_TO_DRIVER, ToDriver};
use super::secret::DriverSecret;
use super::session::DriverSession;
use super::shared::{DriverShared, ServingPlace};
use crate::arguments::DriverArguments;
use crate::store::auth::Trust;
use operator_tools::{Console, ToolStatus};
use parking_lot::Mutex;
use peer::{FairPlace, FairPlaces, client_network};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use vocabulary::Fault;
use world::{Listener, Stream, World};

/// Peers at a time that have not proved themselves yet: further ones wait.
const GREETINGS: usize = 16;
/// So many of them; beyond, those of the address that has most are hung up on.
const WAITING: usize = 256;
/// For one of them, once it is its turn: half of what a controller has for both.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that the system takes before this program does.
const BACKLOG: u32 = 64;
/// Lines that wait to be said; further ones are left out.
const LINES: usize = 64;
/// After which another connection is tried where one could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is interrupted.
pub async fn run(
    arguments: &DriverArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let (lines, mut waiting) = mpsc::channel(LINES);
    let (shared, listener) = match open(arguments, world, lines) {
        Ok(opened) => opened,
        Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
    };
    console.say(format_args!("ready {}", listener.address()?))?;
    console.out.flush()?;
    let mut interrupted = std::pin::pin!(interrupted);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => welcome(&shared, stream, from),
                Err(_) => world.clock.sleep(PAUSE).await,
            },
            Some(line) = waiting.recv() => {
                console.say(line)?;
                console.out.flush()?;
            }
            () = &mut interrupted => break,
        }
    }
    let serves = *shared.serves.lock();
    match serves {
        None => Ok(ToolStatus::SUCCESS),
        Some(controller) => {
            console.complain(format_args!(
                "interrupted: the run of {controller} goes on without this driver"
            ))?;
            Ok(ToolStatus::FAILURE)
        }
    }
}

fn open(
    arguments: &DriverArguments,
    world: &World,
    lines: mpsc::Sender<String>,
) -> Result<(Arc<DriverShared>, Box<dyn Listener>), Fault> {
    let (host, port) = &arguments.listen;
    let files = arguments.files.as_ref().map(|folder| {
        let resolved = world.files.resolve(folder);
        resolved.map_err(|error| Fault::caller(format!("--files {}: {error}", folder.display())))
    });
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shared = DriverShared {
        world: world.clone(),
        secret: DriverSecret::read(world, &arguments.secret_file)?,
        acceptor: acceptor()?,
        serves: None.into(),
        files: files.transpose()?,
        threads: arguments.threads.unwrap_or(cores).max(1),
        trust: Trust {
            insecure: false,
            cafile: arguments.cafile.clone(),
        },
        greetings: FairPlaces::new(GREETINGS, WAITING),
        refusals: Mutex::default(),
        lines,
    };
    let listener = world.network.listen(host, *port, BACKLOG);
    let listener = listener.map_err(|error| Fault::caller(format!("--listen {host}:{port}: {error}")))?;
    Ok((Arc::new(shared), listener))
}

/// Takes a connection in its turn, unless too many wait.
fn welcome(shared: &Arc<DriverShared>, stream: Box<dyn Stream>, from: SocketAddr) {
    let shared = shared.clone();
    let world = shared.world.clone();
    world.spawn_unrelated(async move {
        if let Some(turn) = shared.greetings.wait(client_network(from.ip())).await {
            serve(&shared, turn, stream, from).await;
        }
    });
}

async fn serve(shared: &Arc<DriverShared>, turn: FairPlace<IpAddr>, stream: Box<dyn Stream>, from: SocketAddr) {
    let greeting = receive(&shared.acceptor, &shared.secret, stream);
    let stream = match shared.world.timeout(PATIENCE, greeting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return shared.refuse(from, &error),
        Err(late) => return shared.refuse(from, &late),
    };
    let channel = DriverChannel::new(&shared.world, stream, LONGEST_TO_DRIVER);
    let Some(_place) = ServingPlace::take(shared, from) else {
        drop(turn);
        return turn_away(shared, channel, from).await;
    };
    drop(turn);
    shared.say(format!("{from}: a run begins"));
    let ended = DriverSession::new(shared.clone(), channel).run().await;
    match ended {
        Ok(()) => shared.say(format!("{from}: the run has ended")),
        Err(error) => shared.say(format!("{from}: the run was given up: {error}")),
    }
}

/// Tells a controller that another one is served.
async fn turn_away(shared: &Arc<DriverShared>, mut channel: DriverChannel, from: SocketAddr) {
    let serves = shared.serves.lock().map_or_else(String::new, |other| other.to_string());
    shared.say(format!("{from} was turned away: {serves} is served"));
    // What it asks is read first: a connection that is closed with bytes unread may lose the answer.
    let asked = channel.next_message::<ToDriver>().await;
    if asked.is_ok() && channel.sender.send(&FromDriver::Busy { serves }).await {
        // Nothing but the end of the connection is expected.
        let _ = channel.next().await;
    }
}
