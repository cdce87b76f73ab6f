//! Commands of `martlet bench` in this process, and what they write.

use bench::arguments::BenchArguments;
use bench::command::run;
use clap::Parser;
use futures_util::FutureExt;
use operator_tools::{Console, ToolStatus};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::World;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: BenchArguments,
}

/// What a command has written so far.
#[derive(Clone, Default)]
pub struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits until a line that begins with this was written; the rest of it.
    pub async fn line(&self, start: &str) -> String {
        loop {
            let found = self
                .text()
                .lines()
                .find_map(|line| line.strip_prefix(start).map(str::to_owned));
            match found {
                Some(rest) => return rest,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs `martlet bench …` until it ends or `until` does.
pub async fn bench(world: &World, words: &[&str], output: &Output, until: impl Future<Output = ()>) -> ToolStatus {
    let line = Line::try_parse_from([&["bench"], words].concat()).unwrap();
    let (mut out, mut err) = (output.clone(), output.clone());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        shows_progress: false,
    };
    run(&line.arguments, world, &mut console, until).await.unwrap()
}

/// A place for secrets and reports.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
        std::fs::write(folder.path().join("other"), "fedcba9876543210fedcba9876543210\n").unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn workload(&self, text: &str) -> String {
        std::fs::write(self.folder.path().join("w"), text).unwrap();
        self.path("w")
    }

    pub fn report(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.folder.path().join("r.json")).unwrap()).unwrap()
    }

    /// A driver that runs as long as it is polled.
    pub async fn driver(&self, world: &World, output: &Output, more: &[&str]) -> ToolStatus {
        let secret = self.path("secret");
        let words = ["driver", "--listen", "127.0.0.1:0", "--secret-file", &secret];
        bench(world, &[&words, more].concat(), output, std::future::pending()).await
    }

    /// A run with so many drivers, of which each may have options and a clock of its own.
    pub async fn run(&self, drivers: &[(&World, &[&str])], words: &[&str], more: &[&str]) -> (ToolStatus, String) {
        self.run_by(&World::real(), drivers, words, more).await
    }

    /// [`Bench::run`], by a controller with a clock of its own.
    pub async fn run_by(
        &self,
        controller: &World,
        drivers: &[(&World, &[&str])],
        words: &[&str],
        more: &[&str],
    ) -> (ToolStatus, String) {
        self.run_through(controller, drivers, async |_, address| address, words, more)
            .await
    }

    /// [`Bench::run_by`], with addresses in place of those of the drivers: driver `at` has `through(at, its own)`.
    pub async fn run_through(
        &self,
        controller: &World,
        drivers: &[(&World, &[&str])],
        through: impl AsyncFn(usize, String) -> String,
        words: &[&str],
        more: &[&str],
    ) -> (ToolStatus, String) {
        let heard: Vec<Output> = drivers.iter().map(|_| Output::default()).collect();
        let serving = drivers
            .iter()
            .zip(&heard)
            .map(|((world, more), output)| self.driver(world, output, more));
        let mut serving = futures_util::future::join_all(serving).fuse();
        let controlling = async {
            let mut addresses = vec![];
            for (at, output) in heard.iter().enumerate() {
                addresses.push(through(at, output.line("ready ").await).await);
            }
            let (output, drivers) = (Output::default(), addresses.join(","));
            let (secret, json) = (self.path("secret"), self.path("r.json"));
            let mut line = words.to_vec();
            line.extend(["--drivers", &drivers, "--json", &json]);
            if !more.contains(&"--secret-file") {
                line.extend(["--secret-file", &secret]);
            }
            line.extend(more);
            let status = bench(controller, &line, &output, std::future::pending()).await;
            (status, output.text())
        };
        tokio::select! {
            ended = controlling => ended,
            _ = &mut serving => panic!("{:?}", heard.iter().map(Output::text).collect::<Vec<_>>()),
        }
    }
}

/// Options of a driver that leaves processors to others.
pub const ALONE: &[&str] = &["--threads", "1"];

/// Runs `martlet bench …` to its end.
pub async fn bench_run(world: &World, words: &[&str], output: &Output) -> ToolStatus {
    bench(world, words, output, std::future::pending()).await
}
