//! The list of a bulk delete: names, percent-encoded, one per line.
//!
//! Always holds: at most as many names as allowed, each at most [`MAX_LINE`] bytes, are ever in memory, and those of
//! all lists together take no more than the room that there is for bodies.

use super::delete::DeleteTarget;
use super::list_room::ListSeat;
use bytes::BytesMut;
use peer::{Body, BodyError};
use percent_encoding::percent_decode;
use request_pipeline::NoRoom;

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
    /// There is no memory for it now.
    NoRoom(NoRoom),
}

/// Reads a list of at most `most` names, which take their room by `seat`. Empty lines count, so that a body of them has
/// an end.
pub async fn read(mut body: Body, most: usize, seat: &mut ListSeat) -> Result<Vec<DeleteTarget>, BadList> {
    let mut list = NameList {
        targets: Vec::new(),
        empty: 0,
        most,
        seat,
    };
    let mut buffer = BytesMut::new();
    loop {
        while let Some(end) = memchr::memchr(b'\n', &buffer) {
            let line = buffer.split_to(end + 1);
            list.take(&line).await?;
            list.check_length()?;
        }
        if buffer.len() > MAX_LINE {
            return Err(BadList::TooLong);
        }
        // The rest of a large piece does not keep all of it.
        buffer = BytesMut::from(&buffer[..]);
        match body.next().await {
            Some(Ok(chunk)) => buffer.extend_from_slice(&chunk),
            Some(Err(error)) => return Err(BadList::Left(error)),
            None => break,
        }
    }
    list.take(&buffer).await?;
    match list.targets.len() > most {
        true => Err(BadList::TooMany),
        false => Ok(list.targets),
    }
}

/// What has come of a list.
struct NameList<'a> {
    targets: Vec<DeleteTarget>,
    empty: usize,
    most: usize,
    seat: &'a mut ListSeat,
}

impl NameList<'_> {
    async fn take(&mut self, line: &[u8]) -> Result<(), BadList> {
        let line = line.trim_ascii();
        if line.len() > MAX_LINE {
            return Err(BadList::TooLong);
        }
        let mut name: Vec<u8> = percent_decode(line).collect();
        if name.is_empty() {
            self.empty += 1;
            return Ok(());
        }
        name.shrink_to_fit();
        // The list grows by doubling.
        let bytes = name.len() + 2 * size_of::<DeleteTarget>();
        self.seat.grow(bytes as u64).await.map_err(BadList::NoRoom)?;
        self.targets.push(DeleteTarget::new(name));
        Ok(())
    }

    fn check_length(&self) -> Result<(), BadList> {
        match self.targets.len() > self.most || self.empty > self.most {
            true => Err(BadList::TooMany),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use proptest::prelude::*;
    use request_pipeline::MemoryRoom;

    #[tokio::test]
    async fn lists_take_room_by_what_has_come() {
        let room = MemoryRoom::of(40_000);
        let line = format!("/c/{}\n", "x".repeat(900));
        let list = async |lines: usize| {
            let first = [Ok(bytes::Bytes::from(line.repeat(lines)))];
            let body = Body::stream(
                futures_util::stream::iter(first).chain(futures_util::stream::pending()),
                None,
            );
            read(body, 100, &mut ListSeat::in_room(&room, "a"))
                .await
                .map(|targets| targets.len())
        };
        let mut one = Box::pin(list(15));
        assert!(futures_util::poll!(&mut one).is_pending());
        assert!((15_000..20_000).contains(&room.taken()));
        assert_eq!(list(15).await, Err(BadList::NoRoom(NoRoom)));
        let mut small = Box::pin(list(1));
        assert!(futures_util::poll!(&mut small).is_pending());
        drop((one, small));
        assert_eq!(room.taken(), 0);
    }

    async fn names(text: &[u8], most: usize) -> Result<Vec<Vec<u8>>, BadList> {
        let chunks: Vec<_> = text.chunks(3).map(|c| Ok(bytes::Bytes::copy_from_slice(c))).collect();
        let body = Body::stream(futures_util::stream::iter(chunks), None);
        let mut seat = ListSeat::in_room(&MemoryRoom::default(), "a");
        Ok(read(body, most, &mut seat)
            .await?
            .into_iter()
            .map(|target| target.name)
            .collect())
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
