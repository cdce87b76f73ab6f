//! The list of a bulk delete: names, percent-encoded, one per line.
//!
//! Always holds: at most as many names as allowed, each at most [`MAX_LINE`] bytes, are ever in memory.

use super::delete::DeleteTarget;
use bytes::BytesMut;
use peer::{Body, BodyError};
use percent_encoding::percent_decode;

/// Bytes of a line: twice what a container's name and an object's may have together.
pub const MAX_LINE: usize = 2 * (256 + 1024 + 2);

/// Why a list is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadList {
    /// Too many names.
    TooMany,
    /// A name is too long.
    TooLong,
    /// The client went away.
    Left(BodyError),
}

/// Reads a list of at most `most` names. Empty lines count, so that a body of them has an end.
pub async fn read(mut body: Body, most: usize) -> Result<Vec<DeleteTarget>, BadList> {
    let mut targets = Vec::new();
    let mut buffer = BytesMut::new();
    let mut empty = 0_usize;
    loop {
        while let Some(end) = memchr::memchr(b'\n', &buffer) {
            let line = buffer.split_to(end + 1);
            take(&line, &mut targets, &mut empty)?;
            if targets.len() > most || empty > most {
                return Err(BadList::TooMany);
            }
        }
        if buffer.len() > MAX_LINE {
            return Err(BadList::TooLong);
        }
        match body.next().await {
            Some(Ok(chunk)) => buffer.extend_from_slice(&chunk),
            Some(Err(error)) => return Err(BadList::Left(error)),
            None => break,
        }
    }
    take(&buffer, &mut targets, &mut empty)?;
    match targets.len() > most {
        true => Err(BadList::TooMany),
        false => Ok(targets),
    }
}

fn take(line: &[u8], targets: &mut Vec<DeleteTarget>, empty: &mut usize) -> Result<(), BadList> {
    let line = line.trim_ascii();
    if line.len() > MAX_LINE {
        return Err(BadList::TooLong);
    }
    let name: Vec<u8> = percent_decode(line).collect();
    match name.is_empty() {
        true => *empty += 1,
        false => targets.push(DeleteTarget::new(name)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn names(text: &[u8], most: usize) -> Result<Vec<Vec<u8>>, BadList> {
        let chunks: Vec<_> = text.chunks(3).map(|c| Ok(bytes::Bytes::copy_from_slice(c))).collect();
        let body = Body::stream(futures_util::stream::iter(chunks), None);
        Ok(read(body, most).await?.into_iter().map(|target| target.name).collect())
    }

    #[tokio::test]
    async fn names_as_openstack_reads_them() {
        let read = names(b"1%20\r\n2\r\n\n /c/%2525 \n%ff", 4).await.unwrap();
        assert_eq!(read, [&b"1 "[..], b"2", b"/c/%25", b"\xff"]);
        assert_eq!(names(b"1\n2\n3", 2).await, Err(BadList::TooMany));
        assert_eq!(names(b"\n\n\n", 2).await, Err(BadList::TooMany));
        assert_eq!(names(b"", 2).await, Ok(vec![]));
        assert_eq!(names(&[b'x'; MAX_LINE + 9], 2).await, Err(BadList::TooLong));
    }

    proptest! {
        #[test]
        fn any_bytes_are_names(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(names(&bytes, 100)).unwrap();
            prop_assert!(read.iter().all(|name| !name.is_empty()));
        }
    }
}
