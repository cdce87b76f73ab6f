//! Runs with several drivers, all in this process: `tests/bench/test_drivers.py` has them as processes of their own.

use crate::commands::{ALONE, Bench, Output, bench, bench_run};
use futures_util::FutureExt;
use operator_tools::ToolStatus;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vocabulary::Timestamp;
use world::{BoxFuture, Clock, World};

const DIVIDED: &str = r#"<workload name="divided" description="">
  <storage type="mock" config="delay=1;size=1000"/>
  <workflow>
    <workstage name="init"><work type="init" workers="3" config="containers=s(1,10)"/></workstage>
    <workstage name="prepare">
      <work type="prepare" workers="7" config="containers=r(1,10);objects=r(1,30);sizes=c(2)KB"/>
    </workstage>
    <workstage name="main">
      <work name="shared" workers="5" totalOps="1001" division="object">
        <operation type="read" ratio="100" config="containers=u(1,10);objects=u(1,30)"/>
      </work>
      <work name="pinned" workers="2" totalOps="100" driver="driver2">
        <operation type="write" ratio="100" config="containers=u(1,10);objects=u(31,60);sizes=c(1)KB"/>
      </work>
    </workstage>
  </workflow>
</workload>"#;

#[tokio::test]
async fn drivers_do_together_what_the_workload_says() {
    let (bench, world) = (Bench::new(), World::real());
    let workload = bench.workload(DIVIDED);
    let three = [(&world, ALONE); 3];
    let (status, output) = bench.run(&three, &["run", &workload], &["--seed", "7"]).await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let report = bench.report();
    let total = |stage: usize, work: usize| {
        let total = &report["stages"][stage]["works"][work]["total"];
        ["succeeded", "failed", "bytes"].map(|name| total[name].as_u64().unwrap())
    };
    assert_eq!((total(0, 0), total(1, 0)), ([10, 0, 10_000], [300, 0, 600_000]));
    assert_eq!((total(2, 0), total(2, 1)), ([1001, 0, 1_001_000], [100, 0, 100_000]));
    let drivers = report["drivers"].as_array().unwrap();
    let of = |name: &str| -> Vec<u64> { drivers.iter().map(|driver| driver[name].as_u64().unwrap()).collect() };
    assert_eq!(
        (of("succeeded").iter().sum::<u64>(), of("bytes").iter().sum::<u64>()),
        (1411, 1_711_000)
    );
    // Workers 2, 2 and 1 of five have 401, 400 and 200 of 1001 operations, and the second driver has the pinned work.
    let names = |driver: usize| drivers[driver]["name"].as_str().unwrap();
    assert_eq!((names(0), names(1), names(2)), ("driver1", "driver2", "driver3"));
    assert!(of("succeeded")[1] >= 500, "{drivers:?}");
    assert!(drivers.iter().all(|driver| driver["lost"].is_null()));
    assert!(
        output.contains("driver driver1 (127.0.0.1:") && output.contains("main / pinned: 2 workers"),
        "{output}"
    );
}

#[tokio::test]
async fn open_loops_of_drivers_add_up_to_their_rate() {
    let (bench, world) = (Bench::new(), World::real());
    let workload = bench.workload(
        "[storage]\ntype = 'mock'\ndelay = 0\n[[stage]]\nworkers = 6\nruntime = '2s'\nrate = 300\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]",
    );
    let (status, output) = bench.run(&[(&world, ALONE); 2], &["run", &workload], &[]).await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let report = bench.report();
    let total = &report["stages"][0]["works"][0]["total"];
    let succeeded = total["succeeded"].as_u64().unwrap();
    // A request is due each 3.3 ms for two seconds; those that a busy machine holds up at the end do not count.
    assert!((400..=600).contains(&succeeded), "{succeeded}");
    let of_drivers = report["drivers"].as_array().unwrap().iter();
    let parts: Vec<u64> = of_drivers.map(|driver| driver["succeeded"].as_u64().unwrap()).collect();
    assert_eq!(parts.iter().sum::<u64>(), succeeded);
    assert!(parts.iter().all(|part| (100..=300).contains(part)), "{parts:?}");
    let per_second = total["rate"].as_f64().unwrap();
    assert!((per_second - succeeded as f64 / 2.0).abs() < 0.5, "{per_second}");
}

/// A clock whose time of day is ahead.
struct Ahead(world::clock::RealClock, u64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.now().ticks() * 10 + self.1)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

#[tokio::test]
async fn a_clock_that_is_far_off_is_named() {
    let (bench, real) = (Bench::new(), World::real());
    let ahead = World {
        clock: Arc::new(Ahead(world::clock::RealClock::new(), 5_500_000)),
        ..World::real()
    };
    let workload = bench.workload(DIVIDED);
    let drivers = [(&real, ALONE), (&ahead, ALONE)];
    let (status, output) = bench.run(&drivers, &["run", &workload], &["--stages", "init"]).await;
    assert_eq!(status, ToolStatus::FAILURE);
    assert!(
        output.contains("driver driver2 (127.0.0.1:") && output.contains("its clock is 5"),
        "{output}"
    );
    assert!(
        output.contains("ms ahead") && output.contains("--clock-bound allows 100ms"),
        "{output}"
    );
    let more = ["--stages", "init", "--clock-bound", "6s"];
    let (status, output) = bench.run(&drivers, &["run", &workload], &more).await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let offset = |driver: usize| bench.report()["drivers"][driver]["clock_offset"].as_f64().unwrap();
    assert!(
        (5_400.0..5_600.0).contains(&offset(1)) && offset(0).abs() < 100.0,
        "{output}"
    );
}

#[tokio::test]
async fn mistakes_are_reported_before_anything_is_made() {
    let (bench, world) = (Bench::new(), World::real());
    let workload = bench.workload(DIVIDED);
    let (other, short) = (bench.path("other"), bench.path("short"));
    std::fs::write(&short, "too short\n").unwrap();
    let two = [(&world, ALONE); 2];
    let one = [(&world, ALONE)];
    for (drivers, more, complaint) in [
        (&two[..], ["--secret-file", &other], "its secret is another one"),
        (&two, ["--secret-file", &short], "expected 16 bytes or more"),
        (&two, ["--secret-file", "/nowhere"], "/nowhere: "),
        (
            &one,
            ["--run", "1"],
            "<work name=\"pinned\">: driver=\"driver2\": expected driver1",
        ),
        (&two, ["--storage", "s3"], "config has no accesskey"),
        (&two, ["--stages", "end"], "--stages end: the workload has init"),
    ] {
        let (status, output) = bench.run(drivers, &["run", &workload], &more).await;
        assert_eq!(status, ToolStatus::FAILURE);
        assert!(output.contains(complaint) && !output.contains("s measured"), "{output}");
        assert!(!Path::new(&bench.path("r.json")).exists());
    }
}

#[tokio::test]
async fn a_driver_reads_only_the_folder_it_was_given() {
    let (bench, world) = (Bench::new(), World::real());
    let files = PathBuf::from(bench.path("files"));
    std::fs::create_dir_all(files.join("some")).unwrap();
    std::fs::write(files.join("some/one"), [b'x'; 700]).unwrap();
    let write = |folder: &Path| {
        bench.workload(&format!(
            "[storage]\ntype = 'mock'\ndelay = 0\n[[stage]]\ntotal_operations = 5\n\
             operations = [{{ type = 'filewrite', containers = 'c(1)', files = '{}' }}]",
            folder.display()
        ))
    };
    let allowed: &[&str] = &["--files", files.to_str().unwrap()];
    for (folder, more, complaint) in [
        (files.join("some"), &[][..], "this driver reads no files"),
        (files.join(".."), allowed, "this driver reads files below"),
        (PathBuf::from("/etc"), allowed, "this driver reads files below"),
        (files.join("none"), allowed, "No such file"),
    ] {
        let (status, output) = bench.run(&[(&world, more)], &["run", &write(&folder)], &[]).await;
        assert_eq!(status, ToolStatus::FAILURE);
        assert!(output.contains(complaint) && !output.contains("s measured"), "{output}");
    }
    let (status, output) = bench
        .run(&[(&world, allowed)], &["run", &write(&files.join("some"))], &[])
        .await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let report = bench.report();
    assert_eq!(report["stages"][0]["works"][0]["total"]["bytes"], 3500);
}

#[tokio::test]
async fn a_search_is_done_by_drivers_too() {
    let (bench, world) = (Bench::new(), World::real());
    let workload = bench.workload(
        "[storage]\ntype = 'mock'\ndelay = 0\ncapacity = 200\n[[stage]]\nworkers = 40\nruntime = '1h'\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]",
    );
    let words = [
        "search",
        &workload,
        "--from",
        "300",
        "--step",
        "1s",
        "--constant",
        "--p99",
        "300ms",
    ];
    // Each driver has a mock of its own: together they serve twice as many.
    let (status, output) = bench.run(&[(&world, ALONE); 2], &words, &[]).await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let borne = output
        .split("bears ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap();
    let borne: f64 = borne.parse().unwrap();
    assert!((300.0..430.0).contains(&borne), "{output}");
}

/// A clock on which short waits end, and long ones (the distance of two reports on a stage) never.
struct Hung(world::clock::RealClock);

impl Clock for Hung {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        match duration > Duration::from_millis(400) {
            true => Box::pin(std::future::pending()),
            false => self.0.sleep(duration),
        }
    }
}

/// A clock on which all waits take a tenth of their time.
struct Hurried(world::clock::RealClock);

impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration / 10)
    }
}

/// Its connection stays open: that it says nothing is all that can be noticed.
#[tokio::test]
async fn a_driver_that_hangs_is_lost_and_the_others_go_on() {
    let (bench, well) = (Bench::new(), World::real());
    let hung = World {
        clock: Arc::new(Hung(world::clock::RealClock::new())),
        ..World::real()
    };
    let hurried = World {
        clock: Arc::new(Hurried(world::clock::RealClock::new())),
        ..World::real()
    };
    let workload = bench.workload(
        "[storage]\ntype = 'mock'\ndelay = 1\n[[stage]]\nname = 'main'\nworkers = 4\nruntime = '6s'\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]\n\
         [[stage]]\nname = 'dispose'\ntype = 'dispose'\nworkers = 4\ncontainers = 'r(1,30)'",
    );
    let drivers = [(&well, ALONE), (&hung, ALONE)];
    let (status, output) = bench.run_by(&hurried, &drivers, &["run", &workload], &[]).await;
    assert_eq!(status, ToolStatus::FAILURE, "{output}");
    let report = bench.report();
    let lost: Vec<bool> = (0..2).map(|at| !report["drivers"][at]["lost"].is_null()).collect();
    assert_eq!(lost, [false, true], "{output}");
    let why = report["drivers"][1]["lost"].as_str().unwrap();
    assert!(why.contains("main") && why.contains("it said nothing"), "{why}");
    let total = |stage: usize| {
        report["stages"][stage]["works"][0]["total"]["succeeded"]
            .as_u64()
            .unwrap()
    };
    assert!(total(0) > 0, "{output}");
    assert_eq!(total(1), 30, "all of the next stage is done by the other one");
}

/// Where a controller reaches a driver that takes so many bytes of what it is sent, and then nothing more: its
/// connection stays open, or ends.
async fn stuck_after(bytes: u64, driver: String, ends: bool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (controller, _) = listener.accept().await.unwrap();
        let driver = tokio::net::TcpStream::connect(driver).await.unwrap();
        let (from_controller, mut to_controller) = controller.into_split();
        let (mut from_driver, mut to_driver) = driver.into_split();
        let mut sent = from_controller.take(bytes);
        tokio::select! {
            _ = tokio::io::copy(&mut sent, &mut to_driver) => {}
            _ = tokio::io::copy(&mut from_driver, &mut to_controller) => {}
        }
        if !ends {
            std::future::pending::<()>().await;
        }
    });
    address
}

/// A log of so many readings of fifty objects.
fn log_of(readings: usize) -> String {
    let line = |number: usize| {
        let start = 1_790_000_000.0 + number as f64 / 1e3;
        format!(
            "127.0.0.1 127.0.0.1 26/Nov/2026/13/39/28 GET /v1/A/c/{} HTTP/1.0 200 - agent token - 700 - tx1 - 0.1 - - \
             {start:.9} {:.9} 0 -\n",
            number % 50,
            start + 0.1
        )
    };
    (0..readings).map(line).collect()
}

#[tokio::test]
async fn a_driver_that_hangs_while_a_log_is_sent_is_lost_and_the_others_go_on() {
    for ends in [false, true] {
        let bench = Bench::new();
        let hurried = World {
            clock: Arc::new(Hurried(world::clock::RealClock::new())),
            ..World::real()
        };
        let log = bench.path("proxy.log");
        std::fs::write(&log, log_of(3000)).unwrap();
        let words = [
            "run",
            "replay",
            "--log",
            &log,
            "--speed",
            "max",
            "--storage",
            "mock:delay=0;size=700",
        ];
        // The log is more than a hundred thousand bytes on its way, and all that goes before it some five thousand.
        let through = async |at: usize, address: String| match at {
            0 => address,
            _ => stuck_after(40_000, address, ends).await,
        };
        let drivers = [(&hurried, ALONE); 2];
        let (status, output) = bench.run_through(&hurried, &drivers, through, &words, &[]).await;
        assert_eq!(status, ToolStatus::FAILURE, "{output}");
        let report = bench.report();
        let lost = |at: usize| report["drivers"][at]["lost"].as_str();
        assert_eq!(lost(0), None, "{output}");
        let why = lost(1).unwrap();
        assert!(why.starts_with("before the run began: "), "{why}");
        assert!(ends || why.contains("it said nothing"), "{why}");
        assert!(output.contains("is lost, before the run began"), "{output}");
        let main = &report["stages"][2]["works"][0]["total"];
        assert_eq!(
            (main["succeeded"].as_u64(), main["failed"].as_u64()),
            (Some(3000), Some(0)),
            "{output}"
        );
    }
}

#[tokio::test]
async fn nothing_is_made_when_all_drivers_are_lost_before_it() {
    let (bench, world) = (Bench::new(), World::real());
    let log = bench.path("proxy.log");
    std::fs::write(&log, log_of(3000)).unwrap();
    let words = ["run", "replay", "--log", &log, "--storage", "mock"];
    let through = async |_: usize, address: String| stuck_after(40_000, address, true).await;
    let (status, output) = bench
        .run_through(&world, &[(&world, ALONE)], through, &words, &[])
        .await;
    assert_eq!(status, ToolStatus::FAILURE);
    assert!(
        output.contains("driver driver1 (127.0.0.1:") && output.contains("is lost, before the run began"),
        "{output}"
    );
    assert!(
        !output.contains("s measured") && !Path::new(&bench.path("r.json")).exists(),
        "{output}"
    );
}

/// Peers without the secret: they learn nothing, and who has it is served all the same.
#[tokio::test]
async fn strangers_are_hung_up_on() {
    let (bench, world) = (Bench::new(), World::real());
    let heard = Output::default();
    let mut driving = std::pin::pin!(bench.driver(&world, &heard, ALONE));
    let meeting = async {
        let address = heard.line("ready ").await;
        for (sent, is_tls) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], false),
            (&[0; 4096], false),
            (&[0x16, 3, 1, 0xff, 0xff], true),
        ] {
            let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            stream.write_all(sent).await.unwrap();
            if is_tls {
                // It announces more than it sends.
                stream.shutdown().await.unwrap();
            }
            let mut answer = vec![];
            // The connection may be reset, as bytes were left unread.
            let _ = stream.read_to_end(&mut answer).await;
            assert!(answer.len() < 64, "an alert at most: {answer:?}");
        }
        // More than are greeted at a time and may wait for that: the rest is hung up on at once.
        let mut waiting = vec![];
        for _ in 0..16 + 256 + 24 {
            waiting.push(tokio::net::TcpStream::connect(&address).await.unwrap());
        }
        let mut hung_up = 0;
        while hung_up < 24 {
            hung_up = 0;
            for stream in &mut waiting {
                let read = stream.read(&mut [0; 16]).now_or_never();
                hung_up += usize::from(matches!(read, Some(Ok(0) | Err(_))));
            }
            tokio::task::yield_now().await;
        }
        // Those that end leave their places.
        drop(waiting);
        let workload = bench.workload(DIVIDED);
        let secret = bench.path("secret");
        let words = [
            "run",
            &workload,
            "--drivers",
            &address,
            "--secret-file",
            &secret,
            "--stages",
            "init",
        ];
        loop {
            let output = Output::default();
            let status = bench_run(&world, &words, &output).await;
            if status == ToolStatus::SUCCESS {
                return;
            }
            // The strangers may not have been noticed to be gone yet.
            assert!(output.text().contains("driver1"), "{}", output.text());
        }
    };
    tokio::select! {
        () = meeting => {}
        _ = &mut driving => panic!("{}", heard.text()),
    }
    assert!(heard.text().contains("was refused: "), "{}", heard.text());
}

/// One run at a time, and the next one when that has ended; the controller's Ctrl-C ends the load of its driver.
#[tokio::test]
async fn a_driver_serves_one_run_at_a_time() {
    let (bench_of, world) = (Bench::new(), World::real());
    let heard = Output::default();
    let mut driving = std::pin::pin!(bench_of.driver(&world, &heard, ALONE));
    let long = bench_of.workload(
        "[storage]\ntype = 'mock'\ndelay = 1\n[[stage]]\nworkers = 2\nruntime = '1h'\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]\n\
         [[stage]]\ntype = 'dispose'\ncontainers = 'r(1,3)'\n[[stage]]\nname = 'more'\ntotal_operations = 1\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]",
    );
    let meeting = async {
        let address = heard.line("ready ").await;
        let (secret, json) = (bench_of.path("secret"), bench_of.path("r.json"));
        let common = ["--drivers", &address, "--secret-file", &secret];
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let first = async {
            let output = Output::default();
            let words = [&["run", &long, "--json", &json, "--clean-up"], &common[..]].concat();
            let status = bench(&world, &words, &output, async { drop(stopped.await) }).await;
            (status, output.text())
        };
        let second = async {
            let words = [&["run", &long, "--stages", "dispose"], &common[..]].concat();
            heard.line("driver1: workload").await;
            let output = Output::default();
            assert_eq!(bench_run(&world, &words, &output).await, ToolStatus::FAILURE);
            assert!(
                output.text().contains("it serves another run, that of 127.0.0.1:"),
                "{}",
                output.text()
            );
            stop.send(()).unwrap();
        };
        let ((status, output), ()) = futures_util::join!(first, second);
        assert_eq!(status, ToolStatus::FAILURE);
        assert!(
            output.contains("interrupted: ") && output.contains("the stages that clean up were run"),
            "{output}"
        );
        let report = bench_of.report();
        let stages: Vec<&str> = report["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stage| stage["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            (stages, &report["interrupted"]),
            (vec!["normal", "dispose"], &true.into())
        );
        assert_eq!(report["stages"][1]["works"][0]["total"]["succeeded"], 3);
        assert!(report["drivers"][0]["lost"].is_null(), "{report}");
        let words = [&["run", &long, "--stages", "dispose"], &common[..]].concat();
        loop {
            let output = Output::default();
            if bench_run(&world, &words, &output).await == ToolStatus::SUCCESS {
                return;
            }
            // The driver may not have noticed yet that the first controller is gone.
            assert!(output.text().contains("it serves another run"), "{}", output.text());
        }
    };
    tokio::select! {
        () = meeting => {}
        _ = &mut driving => panic!("{}", heard.text()),
    }
}

#[tokio::test]
async fn a_sweep_is_done_by_drivers_too() {
    let (bench, world) = (Bench::new(), World::real());
    let workload = bench.workload(
        "[storage]\ntype = 'mock'\ndelay = 1\n[[stage]]\nworkers = 1\ntotal_operations = 100\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]",
    );
    let words = ["sweep", &workload, "--over-workers", "1,5"];
    let (status, output) = bench.run(&[(&world, ALONE); 2], &words, &[]).await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let report = bench.report();
    let points = report["points"].as_array().unwrap();
    let workers: Vec<u64> = points.iter().map(|point| point["workers"].as_u64().unwrap()).collect();
    assert_eq!(workers, [1, 5], "{report}");
}
