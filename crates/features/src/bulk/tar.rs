//! The entries of an archive, one after the other, as it comes.
//!
//! Always holds: never more in memory than one piece of data and one extended header, which is at most
//! [`MAX_EXTENDED`] bytes long, and [`MAX_GLOBAL`] bytes that hold for all entries; data of entries that are not
//! read is skipped, but no more of it than is worth while.
//! As Swift reads archives: what is no header ends an archive, but is an error where it should begin.

use super::decode::{Decoded, Undecoded};
use super::header::{self, BLOCK, Extended, Header, NoHeader, TarKind};
use bytes::{Buf, Bytes, BytesMut};

/// Bytes of an extended header or long name.
const MAX_EXTENDED: u64 = 1 << 20;
/// Bytes of what global headers say, which stay to the end of the archive and are copied for each entry.
const MAX_GLOBAL: usize = 64 << 10;
/// Extended headers before one entry.
const MAX_HEADERS: usize = 16;

/// A file, or something else that is no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarEntry {
    /// Its name, in no particular encoding.
    pub name: Vec<u8>,
    /// Bytes of its data.
    pub size: u64,
    /// Whether it is a regular file without holes.
    pub is_file: bool,
    /// Its extended attributes of the namespace `user`, without it.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Why an archive is not read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// So many bytes would be unpacked, one after the other, for nothing.
    ForNothing(u64),
    /// In the words of OpenStack's answers.
    Archive(&'static str),
    /// The client went away.
    Left,
}

impl From<Undecoded> for Unreadable {
    fn from(problem: Undecoded) -> Self {
        match problem {
            Undecoded::NotGzip => Self::Archive("not a gzip file"),
            Undecoded::Corrupt => Self::Archive("invalid compressed data"),
            Undecoded::Client(_) => Self::Left,
        }
    }
}

const CUT: Unreadable = Unreadable::Archive("unexpected end of data");
const SUBSEQUENT: Unreadable = Unreadable::Archive("missing or bad subsequent header");

/// An archive on its way.
pub struct Archive {
    input: Decoded,
    buffer: BytesMut,
    global: Extended,
    has_begun: bool,
    /// Data of the current entry still to come, and the padding behind it.
    data: u64,
    padding: u64,
    /// Bytes that may be unpacked in a row of which no file is stored, and those that were.
    most_unused: u64,
    unused: u64,
}

enum Block {
    Header(Header),
    None(&'static str),
    End,
}

impl Archive {
    /// The archive in `input`.
    pub fn new(input: Decoded) -> Self {
        Self {
            input,
            buffer: BytesMut::new(),
            global: Extended::default(),
            has_begun: false,
            data: 0,
            padding: 0,
            most_unused: u64::MAX,
            unused: 0,
        }
    }

    /// Ends where more than `most` bytes would be unpacked of which no file is stored: a few compressed bytes may stand
    /// for any number of them.
    pub fn with_most_unused(self, most: u64) -> Self {
        Self {
            most_unused: most,
            ..self
        }
    }

    /// The entry at hand has been stored.
    pub fn is_stored(&mut self) {
        self.unused = 0;
    }

    fn pass_unused(&mut self, bytes: u64) -> Result<(), Unreadable> {
        self.unused = self.unused.saturating_add(bytes);
        match self.unused > self.most_unused {
            true => Err(Unreadable::ForNothing(self.most_unused)),
            false => Ok(()),
        }
    }

    /// The next entry; `None` at the end.
    pub async fn entry(&mut self) -> Result<Option<TarEntry>, Unreadable> {
        self.skip().await?;
        let mut extended = Extended::default();
        let (mut long_name, mut has_extended) = (None, false);
        for _ in 0..MAX_HEADERS {
            let header = match self.block().await? {
                Block::Header(header) => header,
                _ if has_extended => return Err(SUBSEQUENT),
                Block::None(problem) if !self.has_begun => return Err(Unreadable::Archive(problem)),
                Block::None(_) | Block::End => return Ok(None),
            };
            let was_first = !std::mem::replace(&mut self.has_begun, true);
            let well_formed = match header.kind {
                TarKind::LongName => {
                    let name = self.small(header.size).await?;
                    long_name = Some(name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec());
                    Some(())
                }
                TarKind::LongLink => self.small(header.size).await.map(|_| Some(()))?,
                TarKind::Extended => extended.add(&self.small(header.size).await?),
                TarKind::Global => {
                    let records = self.small(header.size).await?;
                    let added = self.global.add(&records);
                    if self.global.length() > MAX_GLOBAL {
                        return Err(Unreadable::Archive("header is too long"));
                    }
                    added
                }
                _ => return self.found(header, long_name, extended).await.map(Some),
            };
            match well_formed {
                Some(()) => has_extended = has_extended || header.kind != TarKind::Global,
                None if was_first => return Err(Unreadable::Archive("invalid header")),
                None => return Ok(None),
            }
        }
        Err(SUBSEQUENT)
    }

    async fn found(
        &mut self,
        header: Header,
        long_name: Option<Vec<u8>>,
        extended: Extended,
    ) -> Result<TarEntry, Unreadable> {
        if let TarKind::Sparse(true) = header.kind {
            self.skip_map().await?;
        }
        let extended = extended.over(&self.global);
        let size = match header.kind {
            TarKind::Bare => 0,
            _ => extended.size.unwrap_or(header.size),
        };
        self.expect_data(size);
        let name = extended.path.or(long_name).unwrap_or(header.name);
        Ok(TarEntry {
            is_file: header.kind == TarKind::File && !extended.is_sparse && !name.is_empty(),
            name,
            size,
            attributes: extended.attributes,
        })
    }

    fn expect_data(&mut self, size: u64) {
        self.data = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    /// The next bytes of the entry's data; `None` behind its last.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Unreadable> {
        if self.data == 0 {
            return Ok(None);
        }
        if self.buffer.is_empty() && !self.fill().await? {
            return Err(CUT);
        }
        let count = usize::try_from(self.data).unwrap_or(usize::MAX).min(self.buffer.len());
        self.data -= count as u64;
        Ok(Some(self.buffer.split_to(count).freeze()))
    }

    /// Leaves out what is left of the entry.
    async fn skip(&mut self) -> Result<(), Unreadable> {
        self.pass_unused(self.data.saturating_add(self.padding))?;
        while self.data > 0 || self.padding > 0 {
            if self.buffer.is_empty() && !self.fill().await? {
                return Err(CUT);
            }
            let left = usize::try_from(self.data.saturating_add(self.padding)).unwrap_or(usize::MAX);
            let count = left.min(self.buffer.len());
            self.buffer.advance(count);
            let of_data = self.data.min(count as u64);
            self.data -= of_data;
            self.padding -= count as u64 - of_data;
        }
        Ok(())
    }

    /// The data of an extended header.
    async fn small(&mut self, size: u64) -> Result<Vec<u8>, Unreadable> {
        if size > MAX_EXTENDED {
            return Err(Unreadable::Archive("header is too long"));
        }
        self.expect_data(size);
        self.pass_unused(size)?;
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        self.skip().await?;
        Ok(all)
    }

    /// Leaves out the further blocks of a map of holes.
    async fn skip_map(&mut self) -> Result<(), Unreadable> {
        loop {
            let Some(block) = self.exactly().await?.filter(|block| block.len() == BLOCK) else {
                return Err(CUT);
            };
            if block[504] == 0 {
                return Ok(());
            }
        }
    }

    async fn block(&mut self) -> Result<Block, Unreadable> {
        let Some(block) = self.exactly().await? else {
            return Ok(Block::None("empty file"));
        };
        let Ok(block) = <&[u8; BLOCK]>::try_from(block.as_ref()) else {
            return Ok(Block::None("truncated header"));
        };
        Ok(match header::read(block) {
            Ok(header) => Block::Header(header),
            Err(NoHeader::End) => Block::End,
            Err(NoHeader::Checksum) => Block::None("bad checksum"),
            Err(NoHeader::Invalid) => Block::None("invalid header"),
        })
    }

    /// One block, or what is left of the archive.
    async fn exactly(&mut self) -> Result<Option<Bytes>, Unreadable> {
        while self.buffer.len() < BLOCK && self.fill().await? {}
        let count = self.buffer.len().min(BLOCK);
        self.pass_unused(count as u64)?;
        Ok((count > 0).then(|| self.buffer.split_to(count).freeze()))
    }

    async fn fill(&mut self) -> Result<bool, Unreadable> {
        match self.input.next().await? {
            Some(chunk) if self.buffer.is_empty() => {
                self.buffer = chunk
                    .try_into_mut()
                    .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            }
            Some(chunk) => self.buffer.extend_from_slice(&chunk),
            None => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::Compression;
    use super::*;
    use futures_util::stream;
    use header::header;
    use peer::Body;
    use proptest::prelude::*;

    fn archive(bytes: &[u8], piece: usize) -> Archive {
        let chunks: Vec<_> = bytes
            .chunks(piece.max(1))
            .map(|c| Ok(Bytes::copy_from_slice(c)))
            .collect();
        Archive::new(Decoded::new(
            Body::stream(stream::iter(chunks), None),
            Compression::None,
        ))
    }

    fn padded(data: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        data.resize(data.len().next_multiple_of(BLOCK), 0);
        data
    }

    fn entry(name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
        [header(name, data.len(), kind), padded(data)].concat()
    }

    const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

    async fn list(bytes: &[u8], piece: usize) -> (Vec<String>, Option<Unreadable>) {
        let mut archive = archive(bytes, piece);
        let mut seen = Vec::new();
        loop {
            match archive.entry().await {
                Ok(None) => return (seen, None),
                Err(problem) => return (seen, Some(problem)),
                Ok(Some(entry)) => {
                    let mut data = Vec::new();
                    while let Ok(Some(chunk)) = archive.chunk().await {
                        data.extend_from_slice(&chunk);
                    }
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    seen.push(format!("{name} {} {}", entry.is_file, String::from_utf8_lossy(&data)));
                }
            }
        }
    }

    #[tokio::test]
    async fn entries_as_they_come() {
        let bytes = [
            entry(b"a", b'0', b"1"),
            entry(b"d/", b'5', b""),
            entry(b"././@LongLink", b'L', b"long\0"),
            entry(b"b", b'0', &[b'x'; 600]),
            entry(b"pax", b'x', b"9 path=p\n"),
            entry(b"c", b'0', b"2"),
            entry(b"unknown", b'Z', b"3"),
            entry(b"e", b'7', b""),
            END.to_vec(),
            entry(b"behind", b'0', b""),
        ]
        .concat();
        for piece in [1, 511, 513, 10_000] {
            let (seen, problem) = list(&bytes, piece).await;
            let long = format!("long true {}", "x".repeat(600));
            assert_eq!(
                seen,
                ["a true 1", "d/ false ", &long, "p true 2", "unknown false 3", "e true "]
            );
            assert_eq!(problem, None);
        }
    }

    #[tokio::test]
    async fn what_is_no_archive() {
        let one = entry(b"a", b'0', b"1");
        let archive_error = |problem: &'static str| Some(Unreadable::Archive(problem));
        for (bytes, count, problem) in [
            (vec![], 0, archive_error("empty file")),
            (vec![b'j'; 100], 0, archive_error("truncated header")),
            (vec![b'j'; BLOCK], 0, archive_error("invalid header")),
            (one.clone(), 1, None),
            ([&one[..], b"junk"].concat(), 1, None),
            ([&one[..], &[b'j'; BLOCK]].concat(), 1, None),
            (one[..600].to_vec(), 1, archive_error("unexpected end of data")),
            (one[..512].to_vec(), 1, archive_error("unexpected end of data")),
            (
                entry(b"x", b'L', b"name"),
                0,
                archive_error("missing or bad subsequent header"),
            ),
            (entry(b"x", b'x', b"junk"), 0, archive_error("invalid header")),
            ([one.clone(), entry(b"x", b'x', b"junk")].concat(), 1, None),
            (header(b"x", 1 << 30, b'L'), 0, archive_error("header is too long")),
            (
                entry(b"x", b'L', b"n").repeat(20),
                0,
                archive_error("missing or bad subsequent header"),
            ),
        ] {
            let (seen, found) = list(&bytes, 100).await;
            assert_eq!((seen.len(), found), (count, problem));
        }
    }

    /// Both were found by fuzzing: the sum of length and padding overflowed, and every global header added to memory.
    #[tokio::test]
    async fn an_archive_that_says_much_costs_little() {
        let huge = entry(b"x", b'x', b"29 size=18446744073709551615\n");
        let bytes = [huge, entry(b"a", b'0', b"1"), entry(b"b", b'0', b"2"), END.to_vec()].concat();
        let mut skipped = archive(&bytes, 100);
        assert_eq!(skipped.entry().await.unwrap().unwrap().size, u64::MAX);
        assert_eq!(skipped.entry().await, Err(CUT));

        let record = [&b"1046 SCHILY.xattr.user.a="[..], &[b'v'; 1020], b"\n"].concat();
        let global = entry(b"g", b'g', &record);
        let few = [global.repeat(10), entry(b"a", b'0', b"1"), END.to_vec()].concat();
        assert_eq!(list(&few, 4096).await.1, None);
        let many = [global, entry(b"a", b'0', b"1")].concat().repeat(100);
        let (seen, problem) = list(&many, 4096).await;
        assert_eq!(problem, Some(Unreadable::Archive("header is too long")));
        assert!(seen.len() < 100);
    }

    #[tokio::test]
    async fn what_leads_to_no_file_is_counted() {
        let pax = entry(b"pax", b'x', b"9 path=p\n");
        let other = entry(b"z", b'Z', &[0; 1024]);
        let file = entry(b"f", b'0', &[b'x'; 1024]);
        let bytes = [&pax, &other, &file, &other, &file, &other, &other, &END[..]].concat();
        let ends = |most| Err(Unreadable::ForNothing(most));
        for (most, stores, read, ending) in [
            (3584, true, 6, Ok(None)),
            (3583, true, 6, ends(3583)),
            (3071, true, 1, ends(3071)),
            (3584, false, 2, ends(3584)),
            (11_000, false, 6, Ok(None)),
        ] {
            let mut archive = archive(&bytes, 100).with_most_unused(most);
            let mut seen = 0;
            let end = loop {
                match archive.entry().await {
                    Ok(Some(entry)) if entry.is_file && stores => {
                        while archive.chunk().await.unwrap().is_some() {}
                        archive.is_stored();
                    }
                    Ok(Some(_)) => {}
                    end => break end,
                }
                seen += 1;
            };
            assert_eq!((seen, end), (read, ending), "{most} {stores}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_archive_or_not(
            parts in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..600)), 0..4),
            tail in prop::collection::vec(any::<u8>(), 0..600),
            piece in 1_usize..700,
        ) {
            let entries = parts.iter().map(|(kind, data)| entry(b"n", *kind, data)).collect::<Vec<_>>().concat();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let bytes = [entries, tail].concat();
            let (one, other) = runtime.block_on(async { (list(&bytes, piece).await, list(&bytes, 100_000).await) });
            prop_assert_eq!(one, other);
        }
    }
}
