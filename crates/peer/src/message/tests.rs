//! Every message is decoded to what was encoded; what means nothing is kept for the server to refuse.

use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};

fn target(path: &str) -> Target {
    Target {
        device: "sda".into(),
        partition: Partition(7),
        path: Arc::new(EntityPath::split(path).unwrap()),
    }
}

fn targets() -> impl Strategy<Value = UpdateTargets> {
    let node = ("[a-z0-9:.]{1,12}", any::<u16>(), "[a-z0-9]{1,8}");
    let nodes = prop::collection::vec(node, 0..3);
    (any::<u32>(), nodes).prop_map(|(partition, nodes)| {
        let nodes = nodes.into_iter().map(|(ip, port, device)| UpdateNode {
            ip: ip.into(),
            port,
            device: device.into(),
        });
        UpdateTargets::of(Partition(partition), nodes.collect())
    })
}

fn time() -> impl Strategy<Value = HeaderField<Timestamp>> {
    let malformed = Just(HeaderField::Malformed(Box::new(HeaderValue::from_static("soon"))));
    let some = (0u64..1 << 49, 0u64..99)
        .prop_map(|(ticks, offset)| HeaderField::Value(Timestamp::from_ticks(ticks).unwrap().with_offset(offset)));
    prop_oneof![Just(HeaderField::Absent), malformed, some]
}

fn policy() -> impl Strategy<Value = HeaderField<PolicyIndex>> {
    let malformed = Just(HeaderField::Malformed(Box::new(HeaderValue::from_static("gold"))));
    let some = any::<u32>().prop_map(|index| HeaderField::Value(PolicyIndex(index)));
    prop_oneof![Just(HeaderField::Absent), malformed, some]
}

fn text() -> impl Strategy<Value = Option<HeaderValue>> {
    prop::option::of("[ -~]{0,12}".prop_map(|text| HeaderValue::from_str(&text).unwrap()))
}

fn metadata() -> impl Strategy<Value = Arc<HeaderMap>> {
    let header = ("[a-z]{1,6}", "[ -~]{0,8}").prop_map(|(name, value)| {
        let name: HeaderName = format!("x-object-meta-{name}").parse().unwrap();
        (name, HeaderValue::from_str(&value).unwrap())
    });
    prop::collection::vec(header, 0..4).prop_map(|headers| Arc::new(headers.into_iter().collect()))
}

/// What arrives when `message` goes over a connection.
fn sent(message: impl Into<Message>, kind: ServerKind) -> Message {
    Message::Raw(message.into().into_raw()).decoded(kind)
}

proptest! {
    #[test]
    fn objects_travel(
        (timestamp, policy, headers) in (time(), policy(), metadata()),
        (containers, queue) in (targets(), targets()),
        (etag, container_path, root_db_state) in (text(), text(), text()),
        (is_replication, opens_expired, head_only) in any::<(bool, bool, bool)>(),
        cleans_queue: Option<bool>,
        if_delete_at in time(),
    ) {
        let to = target("a/c/o");
        let rows = RowTargets {
            containers, container_path, root_db_state, cleans_queue, ..RowTargets::default()
        };
        let with_queue = RowTargets { queue, ..rows.clone() };
        let put = PutObject {
            timestamp: timestamp.clone(), policy: policy.clone(), headers: headers.clone(), etag,
            rows: with_queue.clone(), is_replication, opens_expired,
            ..PutObject::new(to.clone())
        };
        prop_assert_eq!(sent(put.clone(), ServerKind::Object), put.into());
        let post = PostObject {
            timestamp: timestamp.clone(), policy: policy.clone(), headers: headers.clone(), rows: with_queue,
            content_type_timestamp: if_delete_at.clone(),
            ..PostObject::new(to.clone())
        };
        prop_assert_eq!(sent(post.clone(), ServerKind::Object), post.into());
        let delete = DeleteObject {
            timestamp: timestamp.clone(), policy: policy.clone(), headers: headers.clone(), rows, if_delete_at,
            ..DeleteObject::new(to.clone())
        };
        prop_assert_eq!(sent(delete.clone(), ServerKind::Object), delete.into());
        let read = ReadObject { timestamp, policy, headers, head_only, opens_expired, ..ReadObject::new(to) };
        prop_assert_eq!(sent(read.clone(), ServerKind::Object), read.into());
    }

    #[test]
    fn containers_travel(
        (timestamp, policy, headers) in (time(), policy(), metadata()),
        (put_timestamp, delete_timestamp) in (time(), time()),
        accounts in targets(),
        (etag, record_type, overrides_deleted) in (text(), text(), text()),
        (creates, head_only) in any::<(bool, bool)>(),
        numbers in any::<(u64, u64)>(),
        query in "[a-z=&]{0,8}",
    ) {
        let to = target("a/c");
        let put = PutContainer {
            timestamp: timestamp.clone(), policy: policy.clone(), headers: headers.clone(), accounts: accounts.clone(),
            record_type: record_type.clone(), overrides_deleted: overrides_deleted.clone(),
            ..PutContainer::new(to.clone())
        };
        prop_assert_eq!(sent(put.clone(), ServerKind::Container), put.into());
        let delete = DeleteContainer { timestamp: timestamp.clone(), accounts, ..DeleteContainer::new(to.clone()) };
        prop_assert_eq!(sent(delete.clone(), ServerKind::Container), delete.into());
        let read = ReadContainer {
            timestamp: timestamp.clone(), record_type, head_only, query,
            ..ReadContainer::new(to.clone())
        };
        prop_assert_eq!(sent(read.clone(), ServerKind::Container), read.into());
        for change in [RowChange::Put, RowChange::Delete, RowChange::Batch] {
            let to = if change == RowChange::Batch { to.clone() } else { target("a/c/o") };
            let row = UpdateContainer {
                change, timestamp: timestamp.clone(), policy: policy.clone(), headers: headers.clone(),
                etag: etag.clone(),
                size: numbers.0.into(), meta_timestamp: put_timestamp.clone(), creates,
                ..UpdateContainer::new(to)
            };
            prop_assert_eq!(sent(row.clone(), ServerKind::Container), row.into());
        }
        let row = UpdateAccount {
            timestamp, put_timestamp, delete_timestamp, policy, headers, overrides_deleted,
            object_count: numbers.0.into(), bytes_used: numbers.1.into(),
            ..UpdateAccount::new(to)
        };
        prop_assert_eq!(sent(row.clone(), ServerKind::Account), row.into());
    }

    #[test]
    fn replication_travels(policy in policy(), (index, database) in (text(), text()), rest in "[0-9a-f-]{0,8}") {
        let to = PartitionTarget { device: "sda".into(), partition: Partition(7), rest };
        let suffixes = ReplicateSuffixes { policy: policy.clone(), ..ReplicateSuffixes::new(to.clone()) };
        prop_assert_eq!(sent(suffixes.clone(), ServerKind::Object), suffixes.into());
        let ssync = Ssync { policy: policy.clone(), node_index: index, ..Ssync::new(to.clone()) };
        prop_assert_eq!(sent(ssync.clone(), ServerKind::Object), ssync.into());
        let deletes = DeleteObjects { policy, ..DeleteObjects::new(to.clone()) };
        prop_assert_eq!(sent(deletes.clone(), ServerKind::Object), deletes.into());
        let database = ReplicateDatabase { database, ..ReplicateDatabase::new(to) };
        prop_assert_eq!(sent(database.clone(), ServerKind::Account), database.into());
    }

    #[test]
    fn any_lists_are_read(hosts in "[\\PC,:]{0,40}", devices in "[\\PC,]{0,40}", partition in "\\PC{0,12}") {
        let _ = UpdateTargets::parse(&hosts, &devices, &partition);
    }
}

#[test]
fn lists_belong_together_or_name_no_server() {
    let UpdateTargets::Nodes {
        partition,
        nodes,
        some_unreadable: false,
    } = UpdateTargets::parse("10.0.0.1:6201, fe80::1:6201", "sda,sdb", "7")
    else {
        panic!("two nodes expected");
    };
    assert_eq!((&*nodes[1].ip, nodes[1].port, partition.0), ("fe80::1", 6201, 7));
    let mismatched = UpdateTargets::Mismatched { hosts: 1, devices: 2 };
    assert_eq!(UpdateTargets::parse("10.0.0.1:6201", "sda,sdb", "7"), mismatched);
    for (host, device, partition) in [
        ("", "sda", "7"),
        ("h:1", "", "7"),
        ("h:1", "sda", "x"),
        ("h", "sda", "7"),
    ] {
        let UpdateTargets::Nodes {
            nodes,
            some_unreadable: true,
            ..
        } = UpdateTargets::parse(host, device, partition)
        else {
            panic!("{host} {device} {partition}");
        };
        assert!(nodes.is_empty());
    }
}

#[test]
fn a_request_makes_its_server_connect_to_few_others() {
    let list = |item: &str| vec![item; 1_500].join(",");
    let parsed = UpdateTargets::parse(&list("10.0.0.1:6201"), &list("sda"), "7");
    let UpdateTargets::Nodes {
        nodes,
        some_unreadable: true,
        ..
    } = parsed
    else {
        panic!("{parsed:?}");
    };
    assert_eq!(nodes.len(), 64);
}

#[test]
fn the_same_line_means_other_things_to_other_servers() {
    let decoded = |method: &str, path: &str, kind| {
        let raw = RawRequest {
            method: method.parse().unwrap(),
            address: target(path).into(),
            query: String::new(),
            headers: HeaderMap::new(),
        };
        Message::Raw(raw).decoded(kind)
    };
    assert!(matches!(
        decoded("PUT", "a/c/o", ServerKind::Object),
        Message::PutObject(_)
    ));
    assert!(matches!(
        decoded("PUT", "a/c/o", ServerKind::Container),
        Message::UpdateContainer(_)
    ));
    assert!(matches!(
        decoded("PUT", "a/c", ServerKind::Container),
        Message::PutContainer(_)
    ));
    assert!(matches!(
        decoded("PUT", "a/c", ServerKind::Account),
        Message::UpdateAccount(_)
    ));
    assert!(matches!(
        decoded("PUT", "a", ServerKind::Account),
        Message::PutAccount(_)
    ));
    for (method, path, kind) in [
        ("PUT", "a/c", ServerKind::Object),
        ("POST", "a/c/o", ServerKind::Container),
        ("GET", "a", ServerKind::Container),
        ("GET", "a/c", ServerKind::Account),
        ("BREW", "a/c/o", ServerKind::Object),
    ] {
        assert!(
            matches!(decoded(method, path, kind), Message::Raw(_)),
            "{method} {path}"
        );
    }
}

#[test]
fn metadata_keep_their_order_when_fields_are_taken_out_from_between() {
    let mut headers = HeaderMap::new();
    for name in [
        "x-timestamp",
        "x-container-meta-b",
        "x-trans-id",
        "x-container-read",
        "host",
        "x-container-meta-a",
        "x-container-sysmeta-s",
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
    }
    let _ = RequestContext::decode(&mut headers);
    let message = PostContainer::decode(target("a/c"), headers);
    let left: Vec<_> = message.headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(
        left,
        [
            "x-container-meta-b",
            "x-container-read",
            "x-container-meta-a",
            "x-container-sysmeta-s"
        ]
    );
}
