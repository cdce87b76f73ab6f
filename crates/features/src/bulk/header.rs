//! Headers of a tar archive, 512 bytes each, and the extended headers before them.
//!
//! ```text
//! offset  0 name (100) · 124 size (12) · 148 checksum (8) · 156 type (1) · 257 magic (8) · 345 prefix (155)
//! ```
//! Numbers are octal text, or base 256 behind a byte 0x80 (GNU). Names longer than 100 bytes stand in the data of
//! an entry of type `L` (GNU) or `x` (pax) in front.
//! Always holds: what is no header is refused, never guessed; reading has no side effects.

/// Bytes of a header, and what data is padded to.
pub const BLOCK: usize = 512;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// As it stands there: bytes, in no particular encoding.
    pub name: Vec<u8>,
    /// Bytes of data.
    pub size: u64,
    /// What it is.
    pub kind: TarKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarKind {
    /// A regular file.
    File,
    /// Something without data: a directory, a link, a device.
    Bare,
    /// Something unknown, with data.
    Unknown,
    /// A file with holes, in GNU's old format; whether further blocks of its map follow.
    Sparse(bool),
    /// The data is the name of the next entry.
    LongName,
    /// The data is the link of the next entry.
    LongLink,
    /// The data is the extended header of the next entry.
    Extended,
    /// The data is the extended header of all that follow.
    Global,
}

/// Why a block is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHeader {
    /// It is all zeros: the end of the archive.
    End,
    /// Its checksum is wrong.
    Checksum,
    /// Its numbers are none.
    Invalid,
}

/// Reads a block.
pub fn read(block: &[u8; BLOCK]) -> Result<Header, NoHeader> {
    if block.iter().all(|byte| *byte == 0) {
        return Err(NoHeader::End);
    }
    let expected = number(&block[148..156]).ok_or(NoHeader::Invalid)?;
    if !sums(block).contains(&i64::try_from(expected).unwrap_or(-1)) {
        return Err(NoHeader::Checksum);
    }
    let size = number(&block[124..136]).ok_or(NoHeader::Invalid)?;
    let mut name = text(&block[..100]).to_vec();
    let prefix = text(&block[345..500]);
    if block[257..263] == *b"ustar\0" && !prefix.is_empty() {
        name = [prefix, &name].join(&b'/');
    }
    let kind = kind(block[156], &name, block[482] != 0);
    Ok(Header { name, size, kind })
}

fn kind(byte: u8, name: &[u8], is_extended: bool) -> TarKind {
    match byte {
        b'\0' if name.ends_with(b"/") => TarKind::Bare,
        b'0' | b'\0' | b'7' => TarKind::File,
        b'1'..=b'6' => TarKind::Bare,
        b'S' => TarKind::Sparse(is_extended),
        b'L' => TarKind::LongName,
        b'K' => TarKind::LongLink,
        b'x' | b'X' => TarKind::Extended,
        b'g' => TarKind::Global,
        _ => TarKind::Unknown,
    }
}

/// The sum of all bytes, the checksum's own taken for spaces: of unsigned and of signed bytes.
fn sums(block: &[u8; BLOCK]) -> [i64; 2] {
    let outside = block[..148].iter().chain(&block[156..]);
    let (mut unsigned, mut signed) = (256, 256);
    for byte in outside {
        unsigned += i64::from(*byte);
        signed += i64::from(byte.cast_signed());
    }
    [unsigned, signed]
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, digits @ ..] = field {
        return digits.iter().try_fold(0_u64, |number, digit| {
            number.checked_mul(256)?.checked_add(u64::from(*digit))
        });
    }
    let digits = std::str::from_utf8(text(field)).ok()?.trim();
    match digits {
        "" => Some(0),
        digits if digits.starts_with('+') => None,
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

/// What an extended header says of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extended {
    /// Its name.
    pub path: Option<Vec<u8>>,
    /// Bytes of its data.
    pub size: Option<u64>,
    /// It has holes, which a map in its data describes.
    pub is_sparse: bool,
    /// Extended attributes of the namespace `user`, without it.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// How GNU tar and BSD tar spell extended attributes.
const ATTRIBUTES: [&[u8]; 2] = [b"SCHILY.xattr.user.", b"LIBARCHIVE.xattr.user."];

impl Extended {
    /// Adds the records of a header: `length key=value\n`, the length counting itself. `None` when they are none.
    pub fn add(&mut self, mut records: &[u8]) -> Option<()> {
        while let Some(first) = records.first() {
            if *first == 0 {
                break;
            }
            let space = records.iter().take(20).position(|byte| *byte == b' ')?;
            let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
            let record = records.get(space + 1..length)?.strip_suffix(b"\n")?;
            records = &records[length..];
            let equals = record.iter().position(|byte| *byte == b'=')?;
            self.set(&record[..equals], &record[equals + 1..])?;
        }
        Some(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"size" => self.size = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
            key => {
                if let Some(name) = ATTRIBUTES.iter().find_map(|prefix| key.strip_prefix(*prefix)) {
                    self.attributes.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Some(())
    }

    /// Bytes that it takes, about.
    pub fn length(&self) -> usize {
        let attributes = self.attributes.iter();
        let each = attributes.map(|(name, value)| name.len() + value.len() + size_of::<(Vec<u8>, Vec<u8>)>());
        each.sum::<usize>() + self.path.as_ref().map_or(0, Vec::len)
    }

    /// This over what holds for all entries.
    pub fn over(mut self, global: &Extended) -> Self {
        let own = std::mem::take(&mut self.attributes);
        self.attributes = global.attributes.iter().cloned().chain(own).collect();
        self.path = self.path.or_else(|| global.path.clone());
        self.size = self.size.or(global.size);
        self.is_sparse |= global.is_sparse;
        self
    }
}

/// A header as archivers write it.
#[cfg(test)]
pub(crate) fn header(name: &[u8], size: usize, kind: u8) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    block[..name.len()].copy_from_slice(name);
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(block: &[u8]) -> Result<Header, NoHeader> {
        read(block.try_into().unwrap())
    }

    #[test]
    fn headers_are_read_or_refused() {
        let header_of = |name: &[u8], kind: u8| parsed(&header(name, 10, kind)).unwrap();
        assert_eq!(header_of(b"a\xff", b'0').name, b"a\xff");
        assert_eq!(header_of(b"a", b'0').size, 10);
        for (byte, kind) in [
            (b'0', TarKind::File),
            (b'7', TarKind::File),
            (b'5', TarKind::Bare),
            (b'2', TarKind::Bare),
            (b'Z', TarKind::Unknown),
            (b'S', TarKind::Sparse(false)),
            (b'x', TarKind::Extended),
        ] {
            assert_eq!(header_of(b"a", byte).kind, kind);
        }
        assert_eq!(header_of(b"a/", 0).kind, TarKind::Bare);
        assert_eq!(parsed(&[0; BLOCK]), Err(NoHeader::End));
        assert_eq!(parsed(&[b'j'; BLOCK]), Err(NoHeader::Invalid));
        let mut wrong = header(b"a", 1, b'0');
        wrong[0] = b'b';
        assert_eq!(parsed(&wrong), Err(NoHeader::Checksum));
        assert_eq!(number(b"\x80\0\0\x01\0"), Some(256));
        assert_eq!(number(b"\xff\xff"), None);
        assert_eq!(number(b" 17 \0"), Some(15));
        assert_eq!(number(&[&[0x80][..], &[0xff; 11]].concat()), None);
    }

    #[test]
    fn extended_headers() {
        let mut extended = Extended::default();
        let records = b"12 path=abc\n9 size=3\n";
        assert_eq!(extended.add(records), Some(()));
        assert_eq!((extended.path.as_deref(), extended.size), (Some(&b"abc"[..]), Some(3)));
        let mut other = Extended::default();
        assert_eq!(other.add(b"30 SCHILY.xattr.user.meta.a=b\n"), Some(()));
        assert_eq!(other.attributes, [(b"meta.a".to_vec(), b"b".to_vec())]);
        let both = other.clone().over(&extended);
        assert_eq!((both.size, both.attributes.len()), (Some(3), 1));
        for bad in [
            &b"99 path=x\n"[..],
            b"0 path=x\n",
            b"junk",
            b"9 size=x\n",
            b"3 \n",
            b" ",
            b"5 a=b",
        ] {
            assert_eq!(Extended::default().add(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_block_is_a_header_or_not(
            mut block in prop::collection::vec(any::<u8>(), BLOCK),
            name in prop::collection::vec(1_u8.., 1..99),
            kind: u8,
        ) {
            let _ = parsed(&block);
            block[..BLOCK].copy_from_slice(&header(&name, 5, kind));
            prop_assert_eq!(parsed(&block).unwrap().name, name);
        }

        #[test]
        fn any_records_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "([0-9]{1,3} (path|size|a)?=?[0-9a-z]{0,5}\n?){0,4}") {
            let _ = Extended::default().add(&bytes);
            let _ = Extended::default().add(text.as_bytes());
        }
    }
}
