//! Messages over a connection between a controller and a driver.
//!
//! A frame is its length (4 bytes, of what follows), its kind (1 byte) and its content: JSON of one message, or a piece
//! of a record of operations. An end that has nothing to say sends an empty frame now and then.
//! Always holds: a frame longer than the receiver allows ends the connection before anything is held for it; memory for
//! a frame grows with what came and not with what was announced; an end that says nothing for [`SILENCE`], or takes
//! nothing for as long, is gone.

use super::greeting::DriverStream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use world::World;

/// Between two signs of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// After which the other end is given up.
pub const SILENCE: Duration = Duration::from_secs(15);
/// Frames that wait to be sent, or to be looked at.
const WAITING: usize = 16;

/// What a frame holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// JSON.
    Message(Vec<u8>),
    /// Of a record: bytes of gzip.
    Record(Vec<u8>),
}

/// Sends. Clones send over the same connection.
#[derive(Clone)]
pub(super) struct FrameSender(mpsc::Sender<Frame>);

impl FrameSender {
    /// Sends a message; false when the connection has ended.
    pub(super) async fn send(&self, message: &impl Serialize) -> bool {
        let Ok(text) = serde_json::to_vec(message) else {
            return false;
        };
        self.0.send(Frame::Message(text)).await.is_ok()
    }

    /// Sends a piece of a record, from a thread that may wait; false when the connection has ended.
    pub(super) fn send_record(&self, piece: Vec<u8>) -> bool {
        self.0.blocking_send(Frame::Record(piece)).is_ok()
    }

    /// Sends a message, unless too many wait; whether it will be sent.
    pub(super) fn send_if_idle(&self, message: &impl Serialize) -> bool {
        serde_json::to_vec(message).is_ok_and(|text| self.0.try_send(Frame::Message(text)).is_ok())
    }
}

/// Both directions of a connection.
pub(super) struct DriverChannel {
    pub(super) sender: FrameSender,
    receiver: mpsc::Receiver<io::Result<Frame>>,
}

impl DriverChannel {
    /// Over a connection whose ends know each other. Frames that come may be so long.
    pub(super) fn new(world: &World, stream: DriverStream, longest: u32) -> Self {
        let (read, write) = tokio::io::split(stream);
        let (outgoing, to_send) = mpsc::channel(WAITING);
        let (incoming, receiver) = mpsc::channel(WAITING);
        let reading = world.clone();
        world.spawn_unrelated(async move { read_frames(&reading, read, longest, &incoming).await });
        let writing = world.clone();
        world.spawn_unrelated(async move { write_frames(&writing, write, to_send).await });
        Self {
            sender: FrameSender(outgoing),
            receiver,
        }
    }

    /// The next frame; nothing once the other end has ended the connection.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        self.receiver.recv().await.transpose()
    }

    /// The next message; nothing once the other end has ended the connection.
    pub(super) async fn next_message<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        match self.next().await? {
            None => Ok(None),
            Some(Frame::Message(text)) => parse(&text).map(Some),
            Some(Frame::Record(_)) => Err(io::Error::other("a record was not asked for")),
        }
    }
}

impl DriverChannel {
    /// Ends the connection, and waits until the other end has noticed.
    pub(super) async fn close(self, world: &World) {
        let Self { sender, mut receiver } = self;
        drop(sender);
        let ended = async { while let Some(Ok(_)) = receiver.recv().await {} };
        // An end that takes so long finds out on its own.
        let _ = world.timeout(SIGN_OF_LIFE, ended).await;
    }
}

/// The message in a frame.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    serde_json::from_slice(text).map_err(|error| io::Error::other(format!("a message cannot be understood: {error}")))
}

async fn read_frames(
    world: &World,
    mut stream: impl AsyncRead + Unpin,
    longest: u32,
    to: &mpsc::Sender<io::Result<Frame>>,
) {
    loop {
        let read = world.timeout(SILENCE, read_frame(&mut stream, longest));
        let read = tokio::select! {
            read = read => read,
            () = to.closed() => return,
        };
        let read = match read {
            Ok(Ok(Some(Frame::Message(text)))) if text.is_empty() => continue,
            Ok(Ok(Some(frame))) => Ok(frame),
            Ok(Ok(None)) => return,
            Ok(Err(error)) => Err(error),
            Err(late) => Err(io::Error::other(format!("it said nothing: {late}"))),
        };
        let is_over = read.is_err();
        if to.send(read).await.is_err() || is_over {
            return;
        }
    }
}

/// One frame; nothing where the stream ends between two.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin), longest: u32) -> io::Result<Option<Frame>> {
    let mut head = [0; 5];
    if stream.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..]).await?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if length > longest {
        return Err(io::Error::other(format!(
            "a message of {length} bytes is longer than {longest}"
        )));
    }
    let mut content = vec![];
    stream.take(length.into()).read_to_end(&mut content).await?;
    match (content.len() == length as usize, head[4]) {
        (false, _) => Err(io::ErrorKind::UnexpectedEof.into()),
        (true, 0) => Ok(Some(Frame::Message(content))),
        (true, 1) => Ok(Some(Frame::Record(content))),
        (true, kind) => Err(io::Error::other(format!("frames of kind {kind} are not known"))),
    }
}

async fn write_frames(world: &World, mut stream: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Frame>) {
    loop {
        let frame = match world.timeout(SIGN_OF_LIFE, frames.recv()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) => Frame::Message(vec![]),
        };
        let (kind, content) = match &frame {
            Frame::Message(text) => (0, text),
            Frame::Record(piece) => (1, piece),
        };
        let Ok(length) = u32::try_from(content.len()) else {
            return;
        };
        let write = async {
            stream.write_all(&length.to_be_bytes()).await?;
            stream.write_all(&[kind]).await?;
            stream.write_all(content).await?;
            stream.flush().await
        };
        // The reader of this connection finds out as well, and says why.
        if !matches!(world.timeout(SILENCE, write).await, Ok(Ok(()))) {
            return;
        }
    }
    // The other end sees the end of the connection in any case.
    let _ = world.timeout(SILENCE, stream.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use super::{Frame, read_frame};

    #[tokio::test]
    async fn frames_are_bounded_before_they_are_held() {
        let read = async |bytes: &[u8]| read_frame(&mut &bytes[..], 10).await;
        assert_eq!(read(b"").await.unwrap(), None);
        assert_eq!(
            read(b"\0\0\0\x02\0hi").await.unwrap(),
            Some(Frame::Message(b"hi".to_vec()))
        );
        assert_eq!(
            read(b"\0\0\0\x01\x01x").await.unwrap(),
            Some(Frame::Record(b"x".to_vec()))
        );
        for (bytes, complaint) in [
            (&b"\xff\xff\xff\xff\0"[..], "longer than 10"),
            (b"\0\0\0\x0b\0hello world", "longer than 10"),
            (b"\0\0\0\x05\0hi", "end of file"),
            (b"\0\0\0", "eof"),
            (b"\0\0\0\x01\x07x", "kind 7"),
        ] {
            let refused = read(bytes).await.unwrap_err().to_string();
            assert!(refused.contains(complaint), "{refused}");
        }
    }
}
