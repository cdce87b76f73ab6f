//! What an error of the system says, and of what: of this process, of one file or directory, or of the whole drive.
//!
//! | the system says | [`Symptom`] | answered with | the drive |
//! |---|---|---|---|
//! | `ENOENT` | `Absent` | 404 | |
//! | `ENOTDIR` | `NotDirectory` | 500, or 404 where that means the same | |
//! | `EMFILE`, `ENFILE`, `ENOMEM` | `Process` | 503 | |
//! | `EAGAIN`, `EINTR`, a lock that was not free in time | `Busy` | 503 | |
//! | `ENOSPC`, `EDQUOT` | `NoSpace` | 507 | |
//! | `EIO`, `EBADMSG`, `EUCLEAN`, … | `Unreadable` | 500 | is tried out; many files of these end its service |
//! | `EACCES`, `ELOOP`, whatever else | `Item` | 500 | is tried out |
//! | `EROFS` | `ReadOnly` | 507 | is tried out |
//! | `ENXIO`, `ENODEV`, `ENOTCONN`, `ESHUTDOWN`, `ESTALE`, … | `Gone` | 507 | is out of service |
//!
//! Both engines, the health of drives (`health.rs`) and their trials (`trial.rs`) judge by this table alone.
//! Always holds: an error that is not listed is one of its file or directory; it neither says that something is absent
//! nor, by itself, anything of the drive.

use std::io;
use vocabulary::FaultKind;

const EIO: i32 = 5;
const ENXIO: i32 = 6;
const ENODEV: i32 = 19;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EBADMSG: i32 = 74;
const ENOTCONN: i32 = 107;
const ESHUTDOWN: i32 = 108;
const ETIMEDOUT: i32 = 110;
const ESTALE: i32 = 116;
const EUCLEAN: i32 = 117;
const EREMOTEIO: i32 = 121;
const ENOMEDIUM: i32 = 123;

/// What an error of the system says, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symptom {
    /// Nothing has this name.
    Absent,
    /// Something else than a directory is where one should be: nothing is below it.
    NotDirectory,
    /// This process, or the machine, has no more descriptors or memory.
    Process,
    /// Another process or thread is at it just now.
    Busy,
    /// There is no room.
    NoSpace,
    /// The drive could not read or write this file or directory.
    Unreadable,
    /// This file or directory cannot be used, for whatever reason.
    Item,
    /// The file system takes no writes.
    ReadOnly,
    /// The drive is no longer there to be asked.
    Gone,
}

impl Symptom {
    /// What `error` says.
    pub fn of(error: &io::Error) -> Self {
        use io::ErrorKind;
        match error.raw_os_error() {
            Some(EMFILE | ENFILE) => return Self::Process,
            Some(EIO | EBADMSG | EUCLEAN | EREMOTEIO | ETIMEDOUT) => return Self::Unreadable,
            Some(ENXIO | ENODEV | ENOTCONN | ESHUTDOWN | ESTALE | ENOMEDIUM) => return Self::Gone,
            _ => {}
        }
        match error.kind() {
            ErrorKind::NotFound => Self::Absent,
            ErrorKind::NotADirectory => Self::NotDirectory,
            ErrorKind::OutOfMemory => Self::Process,
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Self::Busy,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoSpace,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Item,
        }
    }

    /// Whether nothing can be there.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Absent | Self::NotDirectory)
    }

    /// Whether the same may succeed a moment later, on this drive: nothing is said of what is on it.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::Process | Self::Busy)
    }

    /// Whether it is the whole drive's.
    pub fn is_drive(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Gone)
    }

    /// Whether a trial of the drive can tell more.
    pub fn asks_for_trial(self) -> bool {
        matches!(self, Self::Unreadable | Self::Item) || self.is_drive()
    }

    /// Whose failure it is.
    pub fn fault_kind(self) -> FaultKind {
        match self {
            Self::Absent => FaultKind::Absent,
            Self::Process | Self::Busy => FaultKind::Contention,
            Self::NoSpace => FaultKind::NoSpace,
            Self::NotDirectory | Self::Unreadable | Self::Item => FaultKind::Item,
            Self::ReadOnly | Self::Gone => FaultKind::Device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_whole_drives_is_called_so() {
        let of = |numbers: &[i32]| {
            let all: Vec<Symptom> = numbers
                .iter()
                .map(|number| Symptom::of(&io::Error::from_raw_os_error(*number)))
                .collect();
            assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
            all[0]
        };
        assert_eq!(of(&[2]), Symptom::Absent);
        assert_eq!(of(&[20]), Symptom::NotDirectory);
        // ENOMEM, ENFILE, EMFILE; EINTR, EAGAIN.
        assert_eq!(of(&[12, 23, 24]), Symptom::Process);
        assert_eq!(of(&[4, 11]), Symptom::Busy);
        assert_eq!(Symptom::of(&io::ErrorKind::TimedOut.into()), Symptom::Busy);
        assert_eq!(of(&[28, 122]), Symptom::NoSpace);
        assert_eq!(of(&[5, 74, 110, 117, 121]), Symptom::Unreadable);
        // EPERM, EACCES, EINVAL, ENAMETOOLONG, ELOOP, ENODATA, and a number that nothing has.
        assert_eq!(of(&[1, 13, 22, 36, 40, 61, 999]), Symptom::Item);
        assert_eq!(Symptom::of(&io::Error::other("odd")), Symptom::Item);
        assert_eq!(of(&[30]), Symptom::ReadOnly);
        assert_eq!(of(&[6, 19, 107, 108, 116, 123]), Symptom::Gone);
    }

    #[test]
    fn only_the_drives_and_missing_room_are_answered_with_507() {
        for number in 1..134 {
            let symptom = Symptom::of(&io::Error::from_raw_os_error(number));
            let is_device = symptom.is_drive() || symptom == Symptom::NoSpace;
            assert_eq!(symptom.fault_kind().is_device(), is_device, "{number}");
        }
    }
}
