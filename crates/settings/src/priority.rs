//! How favoured a process is when processors and disks are scarce: `nice_priority`, `ionice_class`, `ionice_priority`.
//!
//! Only values; who puts them in force knows what they mean to its threads. Stricter than OpenStack in one point: what
//! is out of range is refused at the start, where OpenStack says so in the log and keeps what it has.

use crate::kinds::OptionValue;

/// `nice_priority`: from -20, the most favoured, to 19, the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Niceness(pub i32);

impl OptionValue for Niceness {
    const EXPECTS: &'static str = "a whole number from -20 (most favoured) to 19 (least favoured)";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| (-20..=19).contains(number)).map(Self)
    }
}

/// `ionice_class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    /// Before all others; for root only.
    Realtime,
    /// By priority among the others.
    BestEffort,
    /// Only while no other process uses the disk.
    Idle,
}

impl OptionValue for IoClass {
    const EXPECTS: &'static str = "IOPRIO_CLASS_RT, IOPRIO_CLASS_BE or IOPRIO_CLASS_IDLE";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "IOPRIO_CLASS_RT" => Some(Self::Realtime),
            "IOPRIO_CLASS_BE" => Some(Self::BestEffort),
            "IOPRIO_CLASS_IDLE" => Some(Self::Idle),
            _ => None,
        }
    }
}

impl IoClass {
    /// Its number in the kernel, which `ionice` takes too.
    pub fn number(self) -> u8 {
        match self {
            Self::Realtime => 1,
            Self::BestEffort => 2,
            Self::Idle => 3,
        }
    }
}

/// `ionice_priority`: from 0, the most favoured, to 7, the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority(pub u8);

impl OptionValue for IoPriority {
    const EXPECTS: &'static str = "a whole number from 0 (most favoured) to 7 (least favoured)";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= 7).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use crate::ini::Document;
    use crate::upkeep::{ObjectUpdaterSettings, UpkeepConf};
    use crate::{IoClass, IoPriority, Niceness, SettingsError};
    use proptest::prelude::*;
    use std::path::Path;

    fn read(text: &str) -> Result<UpkeepConf<ObjectUpdaterSettings>, SettingsError> {
        let document = Document::parse(Path::new("object-server.conf"), text).unwrap();
        UpkeepConf::from_document(&document, "object-updater")
    }

    #[test]
    fn a_section_has_a_priority_of_its_own() {
        let text =
            "[DEFAULT]\nnice_priority = 3\nionice_class = IOPRIO_CLASS_IDLE\n[object-updater]\nnice_priority = -7\n";
        let common = read(text).unwrap().common;
        assert_eq!(common.nice_priority, Some(Niceness(-7)));
        assert_eq!(
            (common.ionice_class, common.ionice_priority),
            (Some(IoClass::Idle), None)
        );
        let common = read("[DEFAULT]\nionice_class = IOPRIO_CLASS_BE\nionice_priority = 7\n")
            .unwrap()
            .common;
        assert_eq!(
            (common.nice_priority, common.ionice_priority),
            (None, Some(IoPriority(7)))
        );
    }

    #[test]
    fn a_wrong_value_is_refused_by_name_with_what_to_write() {
        for (option, value, expected) in [
            (
                "nice_priority",
                "20",
                "a whole number from -20 (most favoured) to 19 (least favoured)",
            ),
            (
                "nice_priority",
                "low",
                "a whole number from -20 (most favoured) to 19 (least favoured)",
            ),
            (
                "ionice_class",
                "idle",
                "IOPRIO_CLASS_RT, IOPRIO_CLASS_BE or IOPRIO_CLASS_IDLE",
            ),
            (
                "ionice_priority",
                "8",
                "a whole number from 0 (most favoured) to 7 (least favoured)",
            ),
        ] {
            let error = read(&format!("[object-updater]\n{option} = {value}\n")).unwrap_err();
            let place = format!("object-server.conf [object-updater] {option} = \"{value}\"");
            assert_eq!(error.to_string(), format!("{place}: expected {expected}"));
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            use crate::kinds::OptionValue;
            let _ = (Niceness::parse(&text), IoClass::parse(&text), IoPriority::parse(&text));
        }
    }
}
