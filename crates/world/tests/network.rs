//! How much the system takes of an answer before its client has read any of it.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use socket2::{Domain, Socket, Type};
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use world::network::RealNetwork;
use world::{Network, Stream};

/// A new connection may hold so much, and one whose client has read a lot more than that.
const FEW: usize = 160 * 1024;
/// What a client reads before it is known to read.
const MUCH: usize = 1024 * 1024;
const PIECE: usize = 16 * 1024;
/// So long nothing more is taken.
const FULL: Duration = Duration::from_millis(300);

/// A client that has connected, with a small buffer of its own, and the server's end.
async fn connected() -> (TcpStream, Box<dyn Stream>) {
    let listener = RealNetwork.listen("127.0.0.1", 0, 16).unwrap();
    let address: SocketAddr = listener.address().unwrap();
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    client.set_recv_buffer_size(4096).unwrap();
    client.connect(&address.into()).unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client.into(), server)
}

/// Bytes that are taken of at most `most` while the client does not read.
async fn taken(server: &mut Box<dyn Stream>, most: usize, patience: Duration) -> usize {
    let (piece, mut taken) = ([0; PIECE], 0);
    while taken < most {
        match tokio::time::timeout(patience, server.write(&piece)).await {
            Ok(written) => taken += written.unwrap(),
            Err(_) => break,
        }
    }
    taken
}

#[tokio::test]
async fn little_is_taken_for_a_client_of_whom_nothing_is_known() {
    let (_client, mut server) = connected().await;
    let taken = taken(&mut server, MUCH, FULL).await;
    assert!(taken > 0 && taken < FEW, "{taken} bytes");
}

#[tokio::test]
async fn more_is_taken_for_a_client_that_reads() {
    let (mut client, mut server) = connected().await;
    let reading = tokio::task::spawn_blocking(move || {
        let mut left = vec![0; MUCH];
        client.read_exact(&mut left).unwrap();
        client
    });
    server.write_all(&[0; MUCH]).await.unwrap();
    let _client = reading.await.unwrap();
    // Until it is taken, or the test's own patience ends.
    assert_eq!(taken(&mut server, FEW, Duration::from_secs(20)).await, FEW);
}
