use super::{ByteSpan, EntityCondition};
use crate::workload::{OperationKind, own_format};

fn workload(operation: &str) -> String {
    format!(
        "[storage]\ntype = 'mock'\n[[stage]]\ntype = 'init'\ncprefix = 'v'\ncontainers = 'r(1,2)'\nversioned = true\n\
         [[stage]]\nname = 'main'\nruntime = '1s'\noperations = [{{ type = {operation}, cprefix = 'p', containers = 'c(1)' }}]\n\
         [[stage]]\ntype = 'cleanup'\ncprefix = 'p'\ncontainers = 'r(1,2)'\nobjects = 'r(1,2)'\n\
         [[stage]]\ntype = 'dispose'\ncprefix = 'v'\ncontainers = 'r(1,2)'\n"
    )
}

#[test]
fn details_are_read() {
    let mut dice = fastrand::Rng::with_seed(1);
    let read = |operation: &str| {
        let workload = own_format::parse(&workload(operation)).unwrap();
        workload.stages[1].works[0].operations[0].clone()
    };
    let fixed = read("'read', objects = 'c(1)', range = '10-19'").detail.range.unwrap();
    assert_eq!(fixed.draw(&mut dice, 0), ByteSpan { first: 10, last: 19 });
    let drawn = read("'read', objects = 'c(1)', range = 'c(3)KB', range_sizes = 'c(64)B'");
    let drawn = drawn.detail.range.unwrap();
    assert_eq!(
        drawn.draw(&mut dice, 0),
        ByteSpan {
            first: 3000,
            last: 3063
        }
    );
    let copy = read("'copy', objects = 'c(1)', oprefix = 'o', to_objects = 'c(7)'");
    assert_eq!(
        (copy.kind, copy.detail.copies.unwrap().name(7)),
        (OperationKind::Copy, "o7".into())
    );
    for (operation, condition) in [
        (
            "'write', objects = 'c(1)', sizes = 'c(1)B', if_none_match = '*'",
            EntityCondition::Absent,
        ),
        (
            "'read', objects = 'c(1)', if_none_match = 'seen'",
            EntityCondition::Changed,
        ),
        (
            "'head', objects = 'c(1)', if_match = 'seen'",
            EntityCondition::Unchanged,
        ),
    ] {
        assert_eq!(read(operation).detail.condition, Some(condition), "{operation}");
    }
}

#[test]
fn cleanup_knows_of_parts_and_disposal_of_versions() {
    let parted = workload("'write', objects = 'c(1)', sizes = 'c(9)MB', part_size = '2MB'");
    let parted = own_format::parse(&parted).unwrap();
    let detail = |stage: usize| &parted.stages[stage].works[0].operations[0].detail;
    assert_eq!((detail(1).part_size, detail(1).removes_parts), (Some(2_000_000), false));
    assert!(detail(2).removes_parts && !detail(2).has_versions);
    assert!(detail(3).has_versions && !detail(3).removes_parts);
}

#[test]
fn mistakes_are_named() {
    for (operation, expected) in [
        (
            "'read', objects = 'c(1)', range = '9-1'",
            "range=\"9-1\": expected FIRST-LAST in bytes",
        ),
        (
            "'read', objects = 'c(1)', range = 'u(0,1)KB'",
            "config has no range_sizes",
        ),
        (
            "'write', objects = 'c(1)', sizes = 'c(1)B', range = '1-2'",
            "range=\"1-2\": expected no such parameter here",
        ),
        (
            "'write', objects = 'c(1)', sizes = 'c(1)GB', part_size = '9KB'",
            "part_size=\"9KB\": expected at most 10000",
        ),
        (
            "'write', objects = 'c(1)', sizes = 'c(1)GB', part_size = '9'",
            "part_size=\"9\": expected bytes with a unit",
        ),
        (
            "'write', objects = 'c(1)', sizes = 'c(1)B', if_none_match = 'seen'",
            "if_none_match=\"seen\": expected *",
        ),
        (
            "'read', objects = 'c(1)', if_match = '*'",
            "if_match=\"*\": expected seen",
        ),
        (
            "'write', objects = 'c(1)', sizes = 'c(1)GB', part_size = '9MB', hashCheck = true",
            "part_size=\"9MB\": expected no",
        ),
        ("'copy', objects = 'c(1)'", "config has no to_objects"),
    ] {
        let refused = own_format::parse(&workload(operation)).unwrap_err().to_string();
        let expected = format!("[[stage]] 2: operation 1: {expected}");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}
