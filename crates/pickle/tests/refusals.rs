//! What is no plain data, no pickle, or too much of it gets a named error and never a panic.

#![allow(clippy::unwrap_used)]

use pickle::{ArrayCode, PickleError, PickleLimits, Value, dumps, dumps_protocol0, loads};
use proptest::prelude::*;

fn refusal(bytes: &[u8]) -> String {
    loads(bytes, &PickleLimits::default()).unwrap_err().to_string()
}

#[test]
fn a_global_that_is_no_data_is_named() {
    let message = refusal(b"cos\nsystem\n(S'echo'\ntR.");
    assert!(message.contains("os.system"), "{message}");
    let message = refusal(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.");
    assert!(message.contains("posix.system"), "{message}");
    for global in ["builtins\neval", "builtins\nset", "builtins\nbytearray", "array\narray"] {
        let bytes = [b"c".as_slice(), global.as_bytes(), b"\n."].concat();
        assert!(refusal(&bytes).contains(&global.replace('\n', ".")));
    }
}

#[test]
fn the_name_in_a_message_is_short_and_printable() {
    let bytes = [b"c".as_slice(), &[0x1b; 5000], b"\nx\n."].concat();
    assert!(refusal(&bytes).len() < 600);
    assert!(!refusal(&bytes).contains('\x1b'));
}

#[test]
fn opcodes_of_code_are_refused() {
    for opcode in [&b"(ios\nsystem\n."[..], b"Pid\n.", b"\x82\x01.", b"(cos\nsystem\no."] {
        assert!(loads(opcode, &PickleLimits::default()).is_err());
    }
    assert!(refusal(b"(ios\nsystem\n.").contains("0x69"));
}

#[test]
fn a_global_alone_is_no_value() {
    assert!(refusal(b"c_codecs\nencode\n.").contains("global"));
}

#[test]
fn truncation_is_reported_at_every_length() {
    let entry = (Value::bytes("name"), Value::bytes("/a/c/o"));
    for whole in [
        dumps(&Value::Dict(vec![entry.clone()])),
        dumps_protocol0(&Value::Dict(vec![entry])),
    ] {
        for len in 0..whole.len() {
            assert!(loads(&whole[..len], &PickleLimits::default()).is_err(), "{len}");
        }
    }
    assert!(refusal(b"\x80\x02X\xff\xff\xff\xffa.").contains("truncated"));
    assert!(refusal(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN.").contains("truncated"));
}

#[test]
fn a_memo_bomb_meets_the_item_limit() {
    // Each list holds the one before it ten times over.
    let mut bomb = b"]q\x00".to_vec();
    for level in 1..20u8 {
        bomb.extend(b"0](");
        for _ in 0..10 {
            bomb.extend([b'h', level - 1]);
        }
        bomb.extend([b'e', b'q', level]);
    }
    bomb.push(b'.');
    assert!(matches!(
        loads(&bomb, &PickleLimits::default()),
        Err(PickleError::TooLarge { what: "items", .. })
    ));
}

#[test]
fn text_named_again_and_again_meets_the_byte_limit() {
    let mut bomb = b"\x80\x02(X\x00\x00\x10\x00".to_vec();
    bomb.extend(vec![b'x'; 1 << 20]);
    bomb.extend(b"q\x00");
    bomb.extend(b"h\x00".repeat(1000));
    bomb.extend(b"l.");
    assert!(matches!(
        loads(&bomb, &PickleLimits::default()),
        Err(PickleError::TooLarge { what: "bytes", .. })
    ));
    let mut bomb = b"\x80\x02(c_codecs\nencode\nq\x01X\x00\x00\x10\x00".to_vec();
    bomb.extend(vec![b'x'; 1 << 20]);
    bomb.extend(b"X\x06\x00\x00\x00latin1\x86q\x00R");
    bomb.extend(b"h\x01h\x00R".repeat(5000));
    bomb.extend(b"l.");
    assert!(matches!(
        loads(&bomb, &PickleLimits::default()),
        Err(PickleError::TooLarge { what: "items", .. })
    ));
}

#[test]
fn nesting_and_lists_inside_themselves_meet_the_depth_limit() {
    let deep = [b"]".repeat(100_000), b"a".repeat(99_999), b".".to_vec()].concat();
    let too_deep = |bytes: &[u8]| {
        matches!(
            loads(bytes, &PickleLimits::default()),
            Err(PickleError::TooLarge {
                what: "levels of nesting",
                ..
            })
        )
    };
    assert!(too_deep(&deep));
    assert!(too_deep(b"]q\x00h\x00a."));
    assert!(too_deep(b"}q\x00K\x01h\x00s."));
}

#[test]
fn python_2_strings_are_bytes_and_read_as_text() {
    let value = loads(b"\x80\x02}q\x01U\x04nameq\x02U\x03/a\xffs.", &PickleLimits::default()).unwrap();
    assert_eq!(value.get("name"), Some(&Value::bytes(b"/a\xff".as_slice())));
    let value = loads(b"(dp0\nS'it\\'s \\x41\\n'\np1\nI01\ns.", &PickleLimits::default()).unwrap();
    assert_eq!(value, Value::Dict(vec![(Value::bytes("it's A\n"), Value::Bool(true))]));
}

#[test]
fn a_key_written_twice_counts_once_with_the_later_value() {
    let value = loads(b"}(K\x01K\x02K\x05K\x06K\x01K\x03u.", &PickleLimits::default()).unwrap();
    let int = |number| Value::Int(number);
    assert_eq!(value, Value::Dict(vec![(int(1), int(3)), (int(5), int(6))]));
    assert!(refusal(b"}]K\x01s.").contains("hashable"));
}

#[test]
fn numbers_and_text_out_of_range_are_named() {
    assert!(refusal(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.").contains("64 bits"));
    assert!(refusal(b"L99999999999999999999L\n.").contains("64 bits"));
    assert!(refusal(b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80.").contains("Unicode"));
    assert!(refusal(b"V\\ud800\n.").contains("Unicode"));
    assert_eq!(
        loads(b"V\\ud83d\\ude00\\\\u0041\n.", &PickleLimits::default()),
        Ok(Value::str("\u{1f600}\\\\u0041"))
    );
    assert!(refusal(b"\x80\x09N.").contains("protocol 9"));
    assert!(refusal(b"\xffN.").contains("0xff"));
    assert!(loads(b"(0N.", &PickleLimits::default()).is_ok());
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-70_000i64..70_000).prop_map(Value::Int),
        (-1e300..1e300).prop_map(Value::Float),
        any::<String>().prop_map(Value::Str),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        "[ -~\\\\u\n]{0,3}".prop_map(Value::Str),
        proptest::collection::vec(any::<u16>().prop_map(u64::from), 0..40)
            .prop_map(|items| Value::Array(ArrayCode::U16, items)),
    ];
    leaf.prop_recursive(4, 60, 6, |inner| {
        let keyed = proptest::collection::btree_map("[a-z]{0,4}", inner.clone(), 0..6);
        let entries = keyed.prop_map(|map| {
            map.into_iter()
                .map(|(key, value)| (Value::Str(key), value))
                .collect::<Vec<_>>()
        });
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            proptest::collection::vec(inner, 0..6).prop_map(Value::Tuple),
            entries.clone().prop_map(Value::Dict),
            entries.prop_map(Value::Headers),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in values()) {
        let limits = PickleLimits { arrays: true, ..PickleLimits::default() };
        prop_assert_eq!(loads(&dumps(&value), &limits), Ok(value.clone()));
        prop_assert_eq!(loads(&dumps_protocol0(&value), &limits), Ok(value.clone()));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = loads(&bytes, &PickleLimits::for_builder());
    }

    #[test]
    fn mutated_pickles_never_panic(
        value in values(),
        text in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = if text { dumps_protocol0(&value) } else { dumps(&value) };
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = loads(&bytes, &PickleLimits::for_builder());
    }

    #[test]
    fn random_opcodes_never_panic(
        opcodes in proptest::collection::vec(
            proptest::sample::select(b".(012NK]}l)tadesuqhRc\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94\x00\x01".to_vec()),
            0..100,
        ),
    ) {
        let _ = loads(&opcodes, &PickleLimits::for_builder());
    }
}
