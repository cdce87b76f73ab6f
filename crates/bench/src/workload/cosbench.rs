//! COSBench's workloads, as they are: `<workload>` with `<auth>`, `<storage>` and a `<workflow>` of `<workstage>`s of
//! `<work>`s of `<operation>`s.
//!
//! Authentication, storage and `config` are inherited from the outside to the inside; the inner one counts.
//! Always holds: an element or attribute that is not known is refused by name and line, and so is a value that is none.
//! Source: COSBench User Guide 0.4.2, chapter 4 (the format) and its sample configurations.

use super::detail::{OperationDetail, complete};
use super::mistake::{WorkloadMistake, one_of};
use super::parameters::Parameters;
use super::selector::Selector;
use super::size::Sizes;
use super::xml::XmlElement;
use super::{
    Arrivals, BodyContent, Division, Endpoint, NumberedNames, OperationKind, Stage, Work, WorkEnd, WorkKind,
    WorkOperation, Workload,
};
use std::time::Duration;

/// Failures of normal works in a million that are accepted unless a work says otherwise.
const ACCEPTED_FAILURES: u32 = 200_000;
/// Parameters of operations.
pub(super) const OPERATION_PARAMETERS: &[&str] = &[
    "containers",
    "cprefix",
    "csuffix",
    "objects",
    "oprefix",
    "osuffix",
    "sizes",
    "chunked",
    "content",
    "createContainer",
    "deleteContainer",
    "hashCheck",
    "files",
    "fileselection",
    "range",
    "range_sizes",
    "part_size",
    "to_objects",
    "if_none_match",
    "if_match",
    "versioned",
    "emptied",
    "query",
];

/// Reads a workload.
pub fn parse(text: &str) -> Result<Workload, WorkloadMistake> {
    let root = XmlElement::parse(text)?;
    if root.name != "workload" {
        return Err(root.mistake(WorkloadMistake::new("expected <workload> as the root element")));
    }
    root.allow(
        &["name", "description", "config", "trigger"],
        &["auth", "storage", "workflow"],
    )?;
    no_trigger(&root)?;
    let above = Inherited::default().within(&root)?;
    let mut flows = root.all("workflow");
    let (Some(flow), None) = (flows.next(), flows.next()) else {
        return Err(root.mistake(WorkloadMistake::new("expected one <workflow> inside it")));
    };
    flow.allow(&["config"], &["auth", "storage", "workstage"])?;
    let above = above.within(flow)?;
    let mut stages: Vec<Stage> = flow
        .all("workstage")
        .map(|stage| read_stage(stage, &above))
        .collect::<Result<_, _>>()?;
    if stages.is_empty() {
        return Err(flow.mistake(WorkloadMistake::new("expected a <workstage> inside it")));
    }
    complete(&mut stages);
    Ok(Workload {
        name: need(&root, "name")?.to_owned(),
        description: root.get("description").unwrap_or_default().to_owned(),
        stages,
        observation: Default::default(),
        replay: None,
        replayed: None,
    })
}

/// What inner elements have of outer ones.
#[derive(Debug, Clone, Default)]
struct Inherited {
    auth: Endpoint,
    storage: Endpoint,
    config: Parameters,
}

impl Inherited {
    /// With what an element says itself.
    fn within(&self, element: &XmlElement) -> Result<Self, WorkloadMistake> {
        let own = |name: &str, outer: &Endpoint| -> Result<Endpoint, WorkloadMistake> {
            let mut found = element.all(name);
            match (found.next(), found.next()) {
                (None, _) => Ok(outer.clone()),
                (Some(one), None) => read_endpoint(one),
                (Some(_), Some(second)) => Err(second.mistake(WorkloadMistake::new("expected once in its element"))),
            }
        };
        Ok(Self {
            auth: own("auth", &self.auth)?,
            storage: own("storage", &self.storage)?,
            config: self.config.clone().with(&config(element)?),
        })
    }
}

fn read_endpoint(element: &XmlElement) -> Result<Endpoint, WorkloadMistake> {
    element.allow(&["type", "config"], &[])?;
    Ok(Endpoint {
        kind: element.get("type").unwrap_or("none").to_owned(),
        parameters: config(element)?,
    })
}

fn config(element: &XmlElement) -> Result<Parameters, WorkloadMistake> {
    Parameters::parse(element.get("config").unwrap_or_default()).map_err(|wrong| element.mistake(wrong))
}

fn no_trigger(element: &XmlElement) -> Result<(), WorkloadMistake> {
    match element.get("trigger") {
        None | Some("") => Ok(()),
        Some(_) => Err(element.mistake(WorkloadMistake::new(
            "trigger: programs on the storage servers are not started",
        ))),
    }
}

fn read_stage(element: &XmlElement, above: &Inherited) -> Result<Stage, WorkloadMistake> {
    element.allow(
        &["name", "closuredelay", "config", "trigger"],
        &["auth", "storage", "work"],
    )?;
    no_trigger(element)?;
    let above = above.within(element)?;
    let works: Vec<Work> = element
        .all("work")
        .map(|work| read_work(work, &above))
        .collect::<Result<_, _>>()?;
    if works.is_empty() {
        return Err(element.mistake(WorkloadMistake::new("expected a <work> inside it")));
    }
    Ok(Stage {
        name: need(element, "name")?.to_owned(),
        closure_delay: seconds(element, "closuredelay")?,
        full: None,
        works,
    })
}

fn read_work(element: &XmlElement, above: &Inherited) -> Result<Work, WorkloadMistake> {
    const ATTRIBUTES: &[&str] = &[
        "name",
        "type",
        "workers",
        "interval",
        "division",
        "runtime",
        "rampup",
        "rampdown",
        "totalOps",
        "totalBytes",
        "driver",
        "afr",
        "config",
    ];
    element.allow(ATTRIBUTES, &["auth", "storage", "operation"])?;
    let above = above.within(element)?;
    let kind = word(element, "type", &WorkKind::ALL, Some(WorkKind::Normal))?;
    let workers = number(element, "workers")?.unwrap_or(u64::from(kind == WorkKind::Delay));
    let workers = u32::try_from(workers)
        .ok()
        .filter(|workers| *workers > 0)
        .ok_or_else(|| {
            element.mistake(WorkloadMistake::value(
                "workers",
                element.get("workers").unwrap_or_default(),
                "a number of workers from 1 on",
            ))
        })?;
    let natural = match kind {
        WorkKind::Init | WorkKind::Dispose => Division::Container,
        WorkKind::Prepare | WorkKind::Cleanup => Division::Object,
        WorkKind::Normal | WorkKind::Delay => Division::None,
    };
    let division = word(element, "division", &Division::ALL, Some(natural))?;
    let operations = match kind {
        WorkKind::Normal => read_operations(element, &above, division)?,
        WorkKind::Delay => vec![],
        special => vec![special_operation(special, &above.config, division).map_err(|wrong| element.mistake(wrong))?],
    };
    let afr = number(element, "afr")?.and_then(|afr| u32::try_from(afr).ok());
    Ok(Work {
        name: element.get("name").unwrap_or(kind.name()).to_owned(),
        kind,
        workers,
        interval: match seconds(element, "interval")? {
            Duration::ZERO => Duration::from_secs(5),
            some => some,
        },
        division,
        end: read_end(element, kind)?,
        ramp_up: seconds(element, "rampup")?,
        ramp_down: seconds(element, "rampdown")?,
        accepted_failures: afr.unwrap_or(if kind == WorkKind::Normal { ACCEPTED_FAILURES } else { 0 }),
        driver: element.get("driver").map(str::to_owned),
        arrivals: Arrivals::AsAnswered,
        operations,
        script: None,
        auth: above.auth,
        storage: above.storage,
    })
}

/// A work without an end of its own goes through its names; only special ones may.
fn read_end(element: &XmlElement, kind: WorkKind) -> Result<WorkEnd, WorkloadMistake> {
    let limits = [
        seconds(element, "runtime")?.as_secs(),
        number(element, "totalOps")?.unwrap_or(0),
        number(element, "totalBytes")?.unwrap_or(0),
    ];
    match (kind, limits) {
        (WorkKind::Normal, [0, 0, 0]) => Err(element.mistake(WorkloadMistake::new(
            "expected one of runtime, totalOps or totalBytes, above 0",
        ))),
        (WorkKind::Normal, [runtime, 0, 0]) => Ok(WorkEnd::After(Duration::from_secs(runtime))),
        (WorkKind::Normal, [0, operations, 0]) => Ok(WorkEnd::Operations(operations)),
        (WorkKind::Normal, [0, 0, bytes]) => Ok(WorkEnd::Bytes(bytes)),
        (WorkKind::Normal, _) => Err(element.mistake(WorkloadMistake::new(
            "expected only one of runtime, totalOps and totalBytes",
        ))),
        _ => Ok(WorkEnd::Enumerated),
    }
}

fn read_operations(
    work: &XmlElement,
    above: &Inherited,
    division: Division,
) -> Result<Vec<WorkOperation>, WorkloadMistake> {
    let mut operations: Vec<WorkOperation> = vec![];
    for element in work.all("operation") {
        element.allow(&["type", "ratio", "division", "config", "id"], &[])?;
        let kind = word(element, "type", &OperationKind::NAMED, None)?;
        // An operation that is alone needs no ratio, as in COSBench's own asus.xml.
        let ratio = number(element, "ratio")?.unwrap_or(if work.all("operation").count() == 1 { 100 } else { 0 });
        let ratio = u32::try_from(ratio).ok().filter(|ratio| *ratio <= 100).ok_or_else(|| {
            element.mistake(WorkloadMistake::value(
                "ratio",
                &ratio.to_string(),
                "a number from 0 to 100",
            ))
        })?;
        let parameters = above.config.clone().with(&config(element)?);
        let division = word(element, "division", &Division::ALL, Some(division))?;
        let id = match element.get("id") {
            Some(id) => id.to_owned(),
            None => format!("op{}", operations.len() + 1),
        };
        let read = operation(id, kind, ratio, division, &parameters);
        operations.push(read.map_err(|wrong| element.mistake(wrong))?);
    }
    match operations.iter().map(|operation| operation.ratio).sum::<u32>() {
        100 => Ok(operations),
        sum => Err(work.mistake(WorkloadMistake::new(format!(
            "the ratios of its operations add up to {sum}: expected 100"
        )))),
    }
}

/// The operation of a work that has none of its own.
pub(super) fn special_operation(
    kind: WorkKind,
    parameters: &Parameters,
    division: Division,
) -> Result<WorkOperation, WorkloadMistake> {
    let kind = match kind {
        WorkKind::Init => OperationKind::MakeContainer,
        WorkKind::Prepare => OperationKind::Write,
        WorkKind::Cleanup => OperationKind::Delete,
        _ => OperationKind::DeleteContainer,
    };
    let made = operation("op1".to_owned(), kind, 100, division, parameters)?;
    let names = [
        ("containers", Some(&made.containers)),
        ("objects", made.objects.as_ref()),
    ];
    for (name, of) in names {
        if of.is_some_and(|of| !of.numbers.enumerates()) {
            let allowed = "r(a,b) or s(a,b), which go through all numbers, in a work of this type";
            return Err(WorkloadMistake::value(
                name,
                parameters.get(name).unwrap_or_default(),
                allowed,
            ));
        }
    }
    Ok(made)
}

/// An operation as its parameters say.
pub(super) fn operation(
    id: String,
    kind: OperationKind,
    ratio: u32,
    division: Division,
    parameters: &Parameters,
) -> Result<WorkOperation, WorkloadMistake> {
    parameters.allow(OPERATION_PARAMETERS)?;
    let on_objects = !matches!(
        kind,
        OperationKind::MakeContainer | OperationKind::DeleteContainer | OperationKind::List
    );
    let text = |name: &str, otherwise: &str| parameters.get(name).unwrap_or(otherwise).to_owned();
    let objects = match kind {
        OperationKind::FileWrite => Some(Selector::Sequential(FILES)),
        _ if on_objects => Some(Selector::of(parameters, "objects")?),
        _ => None,
    };
    let files = match kind {
        OperationKind::FileWrite => {
            match parameters.get("fileselection").unwrap_or("s") {
                "s" | "r" => {}
                other => {
                    return Err(WorkloadMistake::value(
                        "fileselection",
                        other,
                        "s or r: files one after the other",
                    ));
                }
            }
            Some(parameters.need("files")?.into())
        }
        _ => None,
    };
    let sizes = match kind {
        OperationKind::Write => Some(Sizes::parse("sizes", parameters.need("sizes")?)?),
        _ => None,
    };
    let (oprefix, osuffix) = (text("oprefix", "myobjects"), text("osuffix", ""));
    Ok(WorkOperation {
        detail: OperationDetail::read(kind, parameters, sizes.as_ref(), &oprefix, &osuffix)?,
        id,
        kind,
        ratio,
        division,
        containers: NumberedNames {
            prefix: text("cprefix", "mycontainers"),
            numbers: Selector::of(parameters, "containers")?,
            suffix: text("csuffix", ""),
        },
        objects: objects.map(|numbers| NumberedNames {
            prefix: oprefix,
            numbers,
            suffix: osuffix,
        }),
        sizes,
        chunked: parameters.flag("chunked")?,
        content: match parameters.get("content").unwrap_or("random") {
            "random" => BodyContent::Random,
            "zero" => BodyContent::Zero,
            other => return Err(WorkloadMistake::value("content", other, "random or zero")),
        },
        hash_check: parameters.flag("hashCheck")?,
        with_container: parameters.flag("createContainer")? || parameters.flag("deleteContainer")?,
        files,
    })
}

/// Numbers of files: as many as are there.
const FILES: super::selector::Span = super::selector::Span {
    first: 0,
    last: u64::MAX - 1,
};

fn need<'a>(element: &'a XmlElement, name: &str) -> Result<&'a str, WorkloadMistake> {
    match element.get(name) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(element.mistake(WorkloadMistake::new(format!("expected an attribute {name}")))),
    }
}

fn number(element: &XmlElement, name: &str) -> Result<Option<u64>, WorkloadMistake> {
    let parse = |value: &str| {
        let wrong = || element.mistake(WorkloadMistake::value(name, value, "a whole number"));
        value.parse().map_err(|_| wrong())
    };
    element.get(name).map(parse).transpose()
}

fn seconds(element: &XmlElement, name: &str) -> Result<Duration, WorkloadMistake> {
    Ok(Duration::from_secs(number(element, name)?.unwrap_or(0)))
}

/// One of the words that an attribute may be; `otherwise` where it is not there.
fn word<T: Copy>(
    element: &XmlElement,
    name: &str,
    words: &[(&str, T)],
    otherwise: Option<T>,
) -> Result<T, WorkloadMistake> {
    let allowed = || one_of(words.iter().map(|(word, _)| *word));
    match (element.get(name), otherwise) {
        (None | Some(""), Some(otherwise)) => Ok(otherwise),
        (None | Some(""), None) => Err(element.mistake(WorkloadMistake::new(format!(
            "expected an attribute {name}: {}",
            allowed()
        )))),
        (Some(value), _) => {
            let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
            let found = found.ok_or_else(|| element.mistake(WorkloadMistake::value(name, value, allowed())))?;
            Ok(found.1)
        }
    }
}
