//! `dispersion-populate`: makes containers and objects until they are on as many partitions as was asked for.

use super::account::Account;
use super::progress::Progress;
use super::{ANEW, Common, Ground, shortly};
use crate::console::{Console, ToolStatus, ToolStop};
use crate::words::whole;
use clap::Args;
use futures_util::StreamExt;
use std::collections::HashSet;
use std::io;
use vocabulary::{Fault, Partition};
use world::World;

/// The command line.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct PopulateArguments {
    #[command(flatten)]
    common: Common,
    /// The number to begin with in names of containers.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = whole)]
    container_suffix_start: i64,
    /// The number to begin with in names of objects.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = whole)]
    object_suffix_start: i64,
    /// Choose partitions that nothing is on yet: each time adds dispersion_coverage to what is covered.
    #[arg(long)]
    no_overlap: bool,
}

/// Makes what is wanting.
pub async fn run(arguments: &PopulateArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    match populate(arguments, world, console).await {
        Ok(()) => Ok(ToolStatus::SUCCESS),
        Err(unfit) => unfit.end(console),
    }
}

async fn populate(arguments: &PopulateArguments, world: &World, console: &mut Console<'_>) -> Result<(), ToolStop> {
    let common = &arguments.common;
    let ground = Ground::read(world, common)?;
    console.say(format_args!("Using storage policy: {} ", ground.policy.name))?;
    let containers = ground.settings.container_populate && !common.object_only;
    let objects = ground.settings.object_populate && !common.container_only;
    if !containers && !objects {
        return Err(ToolStop::caller("Neither container or object populate is set to run"));
    }
    let account = ground.account().await?;
    let of = Populating {
        ground: &ground,
        account: &account,
        no_overlap: arguments.no_overlap,
    };
    if containers {
        of.containers(arguments.container_suffix_start, console).await?;
    }
    if objects {
        of.objects(arguments.object_suffix_start, console).await?;
    }
    Ok(())
}

struct Populating<'a> {
    ground: &'a Ground<'a>,
    account: &'a Account,
    no_overlap: bool,
}

impl Populating<'_> {
    async fn containers(&self, start: i64, console: &mut Console<'_>) -> Result<(), ToolStop> {
        let (ground, account) = (self.ground, self.account);
        let prefix = ground.container_prefix();
        let partition = |name: &str| ground.partition_of_container(&account.name, name);
        let there = match self.no_overlap {
            true => account.names("", &prefix).await?,
            false => vec![],
        };
        let names = self.choose(start, &prefix, &there, ground.containers.partition_count(), partition);
        let make = |name: String| async move { account.make_container(&name, &ground.policy.name).await };
        let made = names.len();
        self.make("containers", names, make, console).await?;
        self.coverage(
            "container",
            &there,
            made,
            ground.containers.partition_count(),
            partition,
            console,
        )
    }

    async fn objects(&self, start: i64, console: &mut Console<'_>) -> Result<(), ToolStop> {
        let (ground, account) = (self.ground, self.account);
        let container = ground.objects_container();
        account.make_container(&container, &ground.policy.name).await?;
        let partition = |name: &str| ground.partition_of_object(&account.name, name);
        let there = match self.no_overlap {
            true => account.names(&format!("/{container}"), "dispersion_").await?,
            false => vec![],
        };
        let names = self.choose(
            start,
            "dispersion_",
            &there,
            ground.objects.partition_count(),
            partition,
        );
        let within = &container;
        let make = |name: String| async move { account.make_object(within, &name).await };
        let made = names.len();
        self.make("objects", names, make, console).await?;
        self.coverage(
            "object",
            &there,
            made,
            ground.objects.partition_count(),
            partition,
            console,
        )
    }

    /// Names, each on a partition that none before it is on.
    fn choose(
        &self,
        start: i64,
        prefix: &str,
        there: &[String],
        partitions: u32,
        partition: impl Fn(&str) -> Partition,
    ) -> Vec<String> {
        let mut covered: HashSet<Partition> = there.iter().map(|name| partition(name)).collect();
        let wanted = self.ground.settings.dispersion_coverage / 100.0 * f64::from(partitions);
        let wanted = (wanted.max(0.0) as usize).min((partitions as usize).saturating_sub(covered.len()));
        let names = (start.max(0)..=i64::MAX).map(|number| format!("{prefix}{number}"));
        names
            .filter(|name| covered.insert(partition(name)))
            .take(wanted)
            .collect()
    }

    async fn make<F: Future<Output = Result<(), Fault>>>(
        &self,
        what: &str,
        names: Vec<String>,
        make: impl Fn(String) -> F,
        console: &mut Console<'_>,
    ) -> Result<(), ToolStop> {
        let clock = &self.ground.world.clock;
        let (count, began, retried) = (names.len(), clock.elapsed(), self.account.retried());
        let doing = format!("Creating {what}");
        let mut progress = Progress::new(&doing, count, began);
        let at_once = self.ground.settings.concurrency.max(1);
        let mut making = futures_util::stream::iter(names.into_iter().map(make)).buffer_unordered(at_once);
        while let Some(made) = making.next().await {
            made?;
            progress.step(self.account.retried() - retried, clock.elapsed(), console)?;
        }
        let took = shortly(clock.elapsed().saturating_sub(began).as_secs_f64());
        let retried = self.account.retried() - retried;
        console.say(format_args!(
            "{ANEW}Created {count} {what} for dispersion reporting, {took}, {retried} retries"
        ))?;
        Ok(())
    }

    /// What is covered now, where that is more than was asked for this time.
    fn coverage(
        &self,
        what: &str,
        there: &[String],
        made: usize,
        partitions: u32,
        partition: impl Fn(&str) -> Partition,
        console: &mut Console<'_>,
    ) -> Result<(), ToolStop> {
        if self.no_overlap {
            let before: HashSet<Partition> = there.iter().map(|name| partition(name)).collect();
            let covered = (before.len() + made) as f64 / f64::from(partitions) * 100.0;
            console.say(format_args!("{ANEW}Total {what} coverage is now {covered:.2}%."))?;
        }
        Ok(())
    }
}
