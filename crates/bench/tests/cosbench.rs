//! COSBench's format: what is inherited, what is implied, and what its own samples say.

use bench::workload::cosbench::parse;
use bench::workload::{Division, OperationKind, WorkEnd, WorkKind};
use std::path::Path;
use std::time::Duration;

const WORKLOAD: &str = r#"<?xml version="1.0"?>
<workload name="w" description="d" config="cprefix=outer-">
  <auth type="swauth" config="username=u;password=p;auth_url=http://h/auth/v1.0"/>
  <storage type="swift"/>
  <workflow>
    <workstage name="init"><work type="init" workers="4" config="containers=r(1,100)"/></workstage>
    <workstage name="pause" closuredelay="60"><work name="d" type="delay"><operation type="delay"/></work></workstage>
    <workstage name="main" config="oprefix=stage-">
      <storage type="mock" config="delay=5"/>
      <work name="m" workers="8" rampup="10" runtime="300" rampdown="5" division="object" driver="d1">
        <operation type="read" ratio="80" config="containers=u(1,32);objects=u(1,50)"/>
        <operation type="filewrite" ratio="20" division="none" id="files" config="cprefix=inner-;containers=c(2);fileselection=s;files=/tmp/f"/>
      </work>
    </workstage>
  </workflow>
</workload>"#;

#[test]
fn inner_elements_inherit_from_outer_ones() {
    let workload = parse(WORKLOAD).unwrap();
    let [init, pause, main] = workload.stages.as_slice() else {
        panic!("{workload:?}")
    };
    let (init, delay, work) = (&init.works[0], &pause.works[0], &main.works[0]);
    assert_eq!(
        (init.kind, init.end, init.division),
        (WorkKind::Init, WorkEnd::Enumerated, Division::Container)
    );
    assert_eq!((init.accepted_failures, work.accepted_failures), (0, 200_000));
    assert_eq!(
        (init.storage.kind.as_str(), work.storage.kind.as_str()),
        ("swift", "mock")
    );
    assert_eq!(
        (init.auth.kind.as_str(), work.auth.parameters.get("username")),
        ("swauth", Some("u"))
    );
    assert_eq!(
        (pause.closure_delay, delay.kind, delay.operations.len()),
        (Duration::from_secs(60), WorkKind::Delay, 0)
    );
    assert_eq!(
        (work.end, work.ramp_up),
        (WorkEnd::After(Duration::from_secs(300)), Duration::from_secs(10))
    );
    assert_eq!(
        (work.ramp_down, work.interval, work.driver.as_deref()),
        (Duration::from_secs(5), Duration::from_secs(5), Some("d1"))
    );
    let [read, files] = work.operations.as_slice() else {
        panic!("{work:?}")
    };
    assert_eq!(
        (read.containers.name(3), read.objects.as_ref().unwrap().name(7)),
        ("outer-3".into(), "stage-7".into())
    );
    assert_eq!(
        (read.division, files.division, files.id.as_str()),
        (Division::Object, Division::None, "files")
    );
    assert_eq!(
        (files.kind, files.containers.name(2)),
        (OperationKind::FileWrite, "inner-2".to_owned())
    );
    assert_eq!((init.operations[0].id.as_str(), read.id.as_str()), ("op1", "op1"));
}

#[test]
fn mistakes_name_their_element_and_what_is_allowed() {
    for (from, to, expected) in [
        (
            "workers=\"4\"",
            "workers=\"0\"",
            "line 6: <work type=\"init\">: workers=\"0\": expected a number of workers from 1 on",
        ),
        (
            "r(1,100)",
            "u(1,100)",
            "line 6: <work type=\"init\">: containers=\"u(1,100)\": expected r(a,b) or s(a,b)",
        ),
        (
            "type=\"init\"",
            "type=\"begin\"",
            "line 6: <work type=\"begin\">: type=\"begin\": expected normal, init, prepare",
        ),
        (
            "ratio=\"80\"",
            "ratio=\"101\"",
            "line 11: <operation type=\"read\">: ratio=\"101\": expected a number from 0 to 100",
        ),
        (
            "objects=u(1,50)",
            "object=u(1,50)",
            "line 11: <operation type=\"read\">: config has object=…: expected containers, cprefix",
        ),
        (
            "<workstage name=\"main\"",
            "<workstage nam=\"main\"",
            "line 8: <workstage>: attribute nam: expected name, closuredelay",
        ),
        (
            "<workflow>",
            "<workflow><flow/>",
            "line 5: <workflow>: <flow> inside it: expected auth, storage or workstage",
        ),
        (
            "<storage type=\"swift\"/>",
            "<storage type=\"swift\"/><storage/>",
            "line 4: <storage>: expected once in its element",
        ),
        (
            "runtime=\"300\"",
            "runtime=\"0\"",
            "line 10: <work name=\"m\">: expected one of runtime, totalOps or totalBytes, above 0",
        ),
        (
            "username=u;",
            "username;",
            "line 3: <auth type=\"swauth\">: config=\"username\": expected name=value",
        ),
    ] {
        assert!(WORKLOAD.contains(from), "{from}");
        let refused = parse(&WORKLOAD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn an_operation_that_is_alone_needs_no_ratio() {
    let alone = WORKLOAD.replace("ratio=\"20\"", "").replace("ratio=\"80\"", "");
    let refused = parse(&alone).unwrap_err().to_string();
    assert!(
        refused.contains("the ratios of its operations add up to 0"),
        "{refused}"
    );
    let read = "<operation type=\"read\"  config=\"containers=u(1,32);objects=u(1,50)\"/>";
    let alone = alone.replace(read, "");
    assert_eq!(parse(&alone).unwrap().stages[2].works[0].operations[0].ratio, 100);
}

/// A sample that is no XML: it closes a `<workflow>` that it never opens.
const ILL_FORMED: &str = "librados-sample-annotated.xml";

/// COSBench's own samples, where a checkout of it is named by COSBENCH_DIR.
#[test]
fn samples_of_cosbench_are_read() {
    let Ok(root) = std::env::var("COSBENCH_DIR") else {
        return;
    };
    let (mut read, mut refused) = (0, vec![]);
    let folders = ["release/conf", "release/workloads"].map(|folder| Path::new(&root).join(folder));
    // Its own place for workloads of others is not in every checkout.
    let folders = folders.iter().filter(|folder| folder.exists());
    for entry in folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        let text = std::fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        if path.extension().is_some_and(|suffix| suffix == "xml") && text.contains("<workload ") {
            match parse(&text) {
                Ok(_) => read += 1,
                Err(_) if path.ends_with(ILL_FORMED) => {}
                Err(mistake) => refused.push(mistake.in_file(path.display()).to_string()),
            }
        }
    }
    assert!(read > 10 && refused.is_empty(), "{read} read, {refused:#?}");
}
