//! The bytes of an archive, decompressed as they come.
//!
//! Always holds: at most [`PIECE`] bytes come out at a time, whatever a few bytes of input stand for, so a
//! bomb takes no memory; between pieces others get their turn. Only the first member of a compressed file
//! counts, as in Swift.

use bytes::{Bytes, BytesMut};
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use peer::{Body, BodyError};
use std::future::poll_fn;
use std::io::{self, BufRead, Read};
use std::task::Poll;

/// Decompressed bytes at a time.
const PIECE: usize = 64 * 1024;

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// `tar`.
    None,
    /// `tar.gz`.
    Gzip,
    /// `tar.bz2`.
    Bzip2,
}

impl Compression {
    /// Of `?extract-archive=`.
    pub fn of_format(format: &str) -> Option<Self> {
        match format.to_lowercase().trim_matches('.') {
            "tar" => Some(Self::None),
            "tar.gz" => Some(Self::Gzip),
            "tar.bz2" => Some(Self::Bzip2),
            _ => None,
        }
    }
}

/// Why no more bytes come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undecoded {
    /// It does not begin as a gzip file does.
    NotGzip,
    /// What is compressed is not.
    Corrupt,
    /// The client went away.
    Client(BodyError),
}

/// What has come and is not read yet. An empty one that is not over asks for more with `WouldBlock`.
#[derive(Default)]
struct Input {
    bytes: Bytes,
    is_over: bool,
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.bytes.is_empty() && !self.is_over {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(&self.bytes),
        }
    }

    fn consume(&mut self, count: usize) {
        let _ = self.bytes.split_to(count.min(self.bytes.len()));
    }
}

enum Decoder {
    None,
    Gzip(Box<GzDecoder<Input>>),
    Bzip2(Box<BzDecoder<Input>>),
}

impl Decoder {
    fn input(&mut self) -> Option<&mut Input> {
        match self {
            Self::None => None,
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Bzip2(decoder) => Some(decoder.get_mut()),
        }
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::None => Ok(0),
            Self::Gzip(decoder) => decoder.read(out),
            Self::Bzip2(decoder) => decoder.read(out),
        }
    }
}

/// A body, decompressed.
pub struct Decoded {
    body: Body,
    decoder: Decoder,
    /// Compressed bytes that came first, until it is clear what they are.
    beginning: Option<BytesMut>,
    has_come: bool,
}

impl Decoded {
    /// `body`, which is compressed so.
    pub fn new(body: Body, compression: Compression) -> Self {
        let decoder = match compression {
            Compression::None => Decoder::None,
            Compression::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(Input::default()))),
            Compression::Bzip2 => Decoder::Bzip2(Box::new(BzDecoder::new(Input::default()))),
        };
        Self {
            body,
            decoder,
            beginning: (compression == Compression::Gzip).then(BytesMut::new),
            has_come: false,
        }
    }

    /// The next bytes; `None` at the end, and where a compressed file was cut.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Undecoded> {
        if let Decoder::None = self.decoder {
            return self.body.next().await.transpose().map_err(Undecoded::Client);
        }
        self.check_beginning().await?;
        let mut piece = BytesMut::zeroed(PIECE);
        loop {
            match self.decoder.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    piece.truncate(count);
                    self.has_come = true;
                    let_others_go_on().await;
                    return Ok(Some(piece.freeze()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.fill().await?,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(_) => return Err(Undecoded::Corrupt),
            }
        }
    }

    async fn fill(&mut self) -> Result<(), Undecoded> {
        let chunk = self.body.next().await.transpose().map_err(Undecoded::Client)?;
        if let Some(input) = self.decoder.input() {
            match chunk {
                Some(chunk) => input.bytes = chunk,
                None => input.is_over = true,
            }
        }
        Ok(())
    }

    async fn check_beginning(&mut self) -> Result<(), Undecoded> {
        while let Some(beginning) = &mut self.beginning {
            let chunk = self.body.next().await.transpose().map_err(Undecoded::Client)?;
            let is_over = chunk.is_none();
            beginning.extend_from_slice(&chunk.unwrap_or_default());
            if beginning.len() < 2 && !is_over {
                continue;
            }
            if !beginning.starts_with(&[0x1f, 0x8b]) {
                return Err(Undecoded::NotGzip);
            }
            let bytes = self.beginning.take().unwrap_or_default().freeze();
            if let Some(input) = self.decoder.input() {
                *input = Input { bytes, is_over };
            }
        }
        Ok(())
    }
}

/// Decompressing keeps a thread busy: after each piece waiting tasks come first.
async fn let_others_go_on() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use proptest::prelude::*;
    use std::io::Write;

    pub(in crate::bulk) fn pieces(bytes: &[u8], piece: usize) -> Body {
        let chunks: Vec<_> = bytes.chunks(piece).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
        Body::stream(stream::iter(chunks), None)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    async fn all(bytes: &[u8], piece: usize, compression: Compression) -> Result<Vec<u8>, Undecoded> {
        let mut decoded = Decoded::new(pieces(bytes, piece), compression);
        let mut all = Vec::new();
        while let Some(chunk) = decoded.next().await? {
            assert!(chunk.len() <= PIECE);
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn in_any_pieces() {
        let text: Vec<u8> = (0..50_000_u32).map(|n| (n % 251) as u8).collect();
        for piece in [1, 7, 1000, 100_000] {
            assert_eq!(all(&gzip(&text), piece, Compression::Gzip).await.unwrap(), text);
            assert_eq!(all(&bzip2(&text), piece, Compression::Bzip2).await.unwrap(), text);
            assert_eq!(all(&text, piece, Compression::None).await.unwrap(), text);
        }
    }

    #[tokio::test]
    async fn what_is_not_whole_or_not_compressed() {
        let packed = gzip(&[7; 1000]);
        assert!(all(&packed[..packed.len() - 10], 5, Compression::Gzip).await.is_ok());
        assert_eq!(all(b"junk", 1, Compression::Gzip).await, Err(Undecoded::NotGzip));
        assert_eq!(all(b"", 1, Compression::Gzip).await, Err(Undecoded::NotGzip));
        let mut broken = packed.clone();
        broken[10..15].fill(0xff);
        assert_eq!(all(&broken, 5, Compression::Gzip).await, Err(Undecoded::Corrupt));
        assert_eq!(all(&[b'j'; 100], 5, Compression::Bzip2).await, Err(Undecoded::Corrupt));
    }

    #[tokio::test]
    async fn a_bomb_comes_in_small_pieces() {
        let bomb = gzip(&vec![0; 20 << 20]);
        assert!(bomb.len() < 30_000);
        let mut decoded = Decoded::new(Body::whole(bomb), Compression::Gzip);
        for _ in 0..20 {
            assert!(decoded.next().await.unwrap().unwrap().len() <= PIECE);
        }
    }

    #[test]
    fn formats_as_openstack_reads_them() {
        for (format, compression) in [
            ("tar", Some(Compression::None)),
            (".TAR", Some(Compression::None)),
            ("tar.gz", Some(Compression::Gzip)),
            ("tar.bz2", Some(Compression::Bzip2)),
            ("tgz", None),
            ("", None),
        ] {
            assert_eq!(Compression::of_format(format), compression, "{format}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(all(&bytes, piece, Compression::Bzip2));
            let _ = runtime.block_on(all(&[&[0x1f, 0x8b, 8][..], &bytes].concat(), piece, Compression::Gzip));
        }
    }
}
