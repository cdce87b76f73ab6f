//! POSTs whose body is not where they are.

use crate::common::pass;
use crate::site::Site;
use std::time::Duration;

/// A POST on a handoff whose body is not there (moved away while the POST came).
async fn post_alone(site: &Site, device: &str, name: &str, second: u64) {
    site.put(device, name, 1, b"body").await;
    let post = [("content-type", "t/y"), ("x-object-meta-b", "\u{fc}")];
    site.post(device, name, second, &post).await;
    let hash = site.hash.object("a", "c", name).hex();
    let partition = site.partition(name).to_string();
    let directory = site.dir.path().join(device).join("objects").join(partition);
    let data = format!("{}.data", site.at(1));
    std::fs::remove_file(directory.join(&hash[29..]).join(&hash).join(data)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_its_body_goes_to_the_primaries_and_its_partition_with_it() {
    let site = Site::new();
    let names = ["on all", "on one", "newer", "deleted", "posted"].map(str::to_owned);
    for name in &names {
        let nodes = site.nodes(name);
        post_alone(&site, &nodes[3], name, 5).await;
        for node in &nodes[..3] {
            match name.as_str() {
                "on one" if *node != nodes[1] => {}
                "newer" => site.put(node, name, 7, b"newer").await,
                "deleted" => site.delete(node, name, 7).await,
                _ => site.put(node, name, 1, b"body").await,
            }
            if name == "posted" {
                let post = [("x-object-meta-c", "d")];
                site.post(node, name, 7, &post).await;
            }
        }
    }
    let mut replicator = site.replicator(|_| {});
    // Each is left for the next pass once: only then is it known that it has arrived.
    for _ in 0..5 {
        pass(&mut replicator).await;
    }
    assert_eq!(pass(&mut replicator).await, (0, 0));
    site.assert_whole(&names);
    let files = |name: &String| {
        let hash = site.hash.object("a", "c", name).hex();
        let content = site.content(&site.nodes(name)[0]);
        let mine = content
            .keys()
            .filter_map(|path| path.strip_prefix(&hash))
            .map(str::to_owned);
        mine.collect::<Vec<_>>()
    };
    for name in &names[..2] {
        let there = files(name);
        assert_eq!(there[0], format!("/{}.data", site.at(1)), "{name}");
        assert!(
            there.len() == 2 && there[1].starts_with(&format!("/{}", site.at(5))),
            "{name}: {there:?}"
        );
    }
    assert_eq!(files(&names[2]), [format!("/{}.data", site.at(7))]);
    assert_eq!(files(&names[3]), [format!("/{}.ts", site.at(7))]);
    // Of the older POST the content type counts still.
    let of_both = format!("/{}-{:x}.meta", site.at(7), site.at(7).ticks() - site.at(5).ticks());
    assert_eq!(files(&names[4])[1], of_both);
    for name in &names {
        let left = site.dir.path().join(&site.nodes(name)[3]).join("objects");
        assert!(!left.join(site.partition(name).to_string()).exists(), "{name}");
    }
    let hash = site.hash.object("a", "c", &names[0]).hex();
    let content = site.content(&site.nodes(&names[0])[2]);
    let (_, (_, metadata)) = content.iter().rfind(|(path, _)| path.starts_with(&hash)).unwrap();
    let metadata = String::from_utf8_lossy(metadata);
    assert!(
        metadata.contains("X-Object-Meta-B") && metadata.contains("t/y") && metadata.contains(&site.at(5).internal())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_body_nobody_has_is_kept_until_it_is_too_old() {
    let site = Site::new();
    let name = "lost".to_owned();
    let handoff = site.nodes(&name)[3].clone();
    post_alone(&site, &handoff, &name, 5).await;
    let mut replicator = site.replicator(|_| {});
    for _ in 0..3 {
        assert_eq!(pass(&mut replicator).await, (0, 1));
    }
    assert_eq!(site.content(&handoff).len(), 1);
    let mut replicator = site.replicator(|options| options.reclaim_age = Duration::from_secs(500));
    assert_eq!(pass(&mut replicator).await.1, 0);
    let left = site.dir.path().join(&handoff).join("objects");
    assert!(!left.join(site.partition(&name).to_string()).exists());
}
