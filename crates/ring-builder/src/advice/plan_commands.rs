//! The commands that make the ring of a plan.

use super::inventory::{InventoryServer, usual_port};
use super::planned_cluster::{PlannedCluster, USUAL_SIZE};
use crate::command::Desk;

/// What a weight of 1 stands for.
const GB: f64 = 1e9;

/// What makes the ring.
pub(super) fn commands(desk: &Desk<'_, '_>, cluster: &PlannedCluster, part_power: u32) -> Vec<String> {
    let (program, file) = (desk.program, desk.builder_name());
    let mut commands = vec![format!(
        "{program} {file} create {part_power} {} {}",
        cluster.replicas, cluster.hours
    )];
    for server in &cluster.inventory.servers {
        let weight = cluster.size_of_a_drive(server) / GB;
        let named = server
            .address
            .bytes()
            .any(|byte| byte.is_ascii_alphabetic() && byte != b'R')
            && !server.address.contains('[');
        let (region, zone, address) = (server.region, server.zone, &server.address);
        // In a value an underscore begins the remark.
        let (values, options): (Vec<_>, Vec<_>) = server
            .devices
            .iter()
            .partition(|device| !named && !device.contains('_'));
        if !values.is_empty() {
            let values: Vec<String> = values
                .iter()
                .map(|device| format!("r{region}z{zone}-{address}/{device} {weight}"))
                .collect();
            commands.push(format!("{program} {file} add {}", values.join(" ")));
        }
        let lines = options
            .into_iter()
            .map(|device| by_options(program, &file, server, device, weight));
        commands.extend(lines);
    }
    if cluster.inventory.servers.is_empty() {
        let weight = cluster.drive_size.unwrap_or(USUAL_SIZE) / GB;
        let port = usual_port(&desk.shelf.files().builder);
        commands.push(format!(
            "{program} {file} add r1z<zone>-<ip>:{port}/<device> {weight}   # for each drive"
        ));
    }
    commands.push(format!("{program} {file} rebalance"));
    commands
}

/// Host names stand in options only.
fn by_options(program: &str, file: &str, server: &InventoryServer, device: &str, weight: f64) -> String {
    let (main, replication) = match server.address.split_once('R') {
        Some((main, replication)) => (main, Some(replication)),
        None => (&*server.address, None),
    };
    let pair = |text: &str| {
        text.rsplit_once(':')
            .map(|(ip, port)| (ip.to_owned(), port.to_owned()))
            .unwrap_or_default()
    };
    let (ip, port) = pair(main);
    let mut line = format!(
        "{program} {file} add --region {} --zone {} --ip {ip} --port {port} --device {device} --weight {weight}",
        server.region, server.zone
    );
    if let Some((ip, port)) = replication.map(pair) {
        line.push_str(&format!(" --replication-ip {ip} --replication-port {port}"));
    }
    line
}
