//! Notifications to systemd, when it asks for them: that a server or daemon is ready, reloads, stops.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It works. The line of `systemctl status` is made empty again.
pub const READY: &str = "READY=1\nSTATUS=";
/// Another build is being started in the place of this one.
pub const RELOADING: &str = "RELOADING=1\nSTATUS=starting another worker";
/// It works, but not as it was asked to.
pub const NOT_RELOADED: &str = "READY=1\nSTATUS=the last reload failed, serving as before; the log says why";
/// It ends.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=finishing what runs";

/// Sends `state` to `$NOTIFY_SOCKET`; a missing receiver is no error.
pub fn tell_service_manager(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!("cannot tell {name:?} {state}: {error}");
    }
}
