use super::*;

fn os(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// Ticks until a trial is wanted, and lets it end so.
fn try_out(health: &Health, outcome: TrialOutcome) -> u32 {
    let waited = (0..LONGEST_REST * 2).take_while(|_| !health.tick()).count();
    health.tried(outcome);
    waited as u32
}

fn saw(health: &Health, error: io::Error) {
    health.saw(Path::new("/srv/sda/one"), &error);
}

fn many_errors(health: &Health) {
    for number in 0..MANY_ERRORS {
        health.saw(&Path::new("/srv/sda").join(number.to_string()), &os(5));
    }
}

fn service(health: &Health) -> DriveService {
    health.service().0
}

#[test]
fn a_failed_sync_refuses_writes_until_the_drive_is_well() {
    let health = Health::new("/srv/sda");
    health.sync_failed(Path::new("/srv/sda/x"), &os(28));
    assert!(health.check().is_ok() && health.check_writable().is_err());
    assert!(health.service().1.contains("/srv/sda/x"));
    try_out(&health, TrialOutcome::Well);
    assert!(health.check_writable().is_err());
    try_out(&health, TrialOutcome::Well);
    assert!(health.check_writable().is_ok());
}

#[test]
fn what_cannot_be_synced_at_all_says_nothing_of_the_drive() {
    let health = Health::new("/srv/sda");
    health.sync_failed(Path::new("/srv/sda/pipe"), &os(22));
    assert!(health.check_writable().is_ok());
    assert!(health.tick(), "it is tried out");
}

#[test]
fn an_error_asks_for_a_trial_and_its_failure_ends_service() {
    let health = Health::new("/srv/sda");
    saw(&health, os(2));
    assert!(!health.tick());
    saw(&health, os(5));
    assert!(health.tick());
    assert_eq!(service(&health), DriveService::Full);
    assert!(!health.tick(), "one trial at a time");
    health.tried(TrialOutcome::Sick("it hurts".into()));
    assert_eq!(health.service(), (DriveService::Out, "it hurts".into()));
    assert!(health.check().unwrap_err().to_string().contains("it hurts"));
}

#[test]
fn many_errors_end_service_for_longer_each_time() {
    let health = Health::new("/srv/sda");
    many_errors(&health);
    assert_eq!(service(&health), DriveService::Full, "nobody looks after it");
    try_out(&health, TrialOutcome::Well);
    let mut rests = vec![];
    for _ in 0..3 {
        many_errors(&health);
        assert_eq!(service(&health), DriveService::Out);
        rests.push(try_out(&health, TrialOutcome::Well));
        assert_eq!(service(&health), DriveService::Out);
        try_out(&health, TrialOutcome::Well);
        assert_eq!(service(&health), DriveService::Full);
    }
    assert!(rests.windows(2).all(|pair| pair[0] < pair[1]), "{rests:?}");
    // Spread over time they are bad luck.
    for number in 0..MANY_ERRORS * 2 {
        health.saw(&Path::new("/srv/sda").join(number.to_string()), &os(5));
        for _ in 0..WINDOW {
            if health.tick() {
                health.tried(TrialOutcome::Well);
            }
        }
    }
    assert_eq!(service(&health), DriveService::Full);
}

#[test]
fn one_file_that_cannot_be_read_leaves_it_to_a_trial() {
    let health = Health::new("/srv/sda");
    health.tick();
    for _ in 0..MANY_ERRORS * 5 {
        // EIO, EBADMSG, EACCES, ELOOP.
        [5, 74, 13, 40].into_iter().for_each(|number| saw(&health, os(number)));
        assert!(health.tick(), "it asks for one");
        health.tried(TrialOutcome::Well);
    }
    assert_eq!(service(&health), DriveService::Full);
}

#[test]
fn a_process_out_of_descriptors_or_memory_blames_no_drive() {
    let health = Health::new("/srv/sda");
    health.tick();
    // EMFILE, ENFILE, ENOMEM, EAGAIN.
    for number in [24, 23, 12, 11].repeat(MANY_ERRORS as usize) {
        saw(&health, os(number));
    }
    assert!(!health.tick(), "a trial would say nothing");
    for _ in 0..3 {
        try_out(&health, TrialOutcome::Unclear("no descriptors".into()));
    }
    assert_eq!(service(&health), DriveService::Full);
    // Nor does it bring one back.
    saw(&health, os(5));
    try_out(&health, TrialOutcome::Sick("it hurts".into()));
    for _ in 0..3 {
        try_out(&health, TrialOutcome::Unclear("no descriptors".into()));
    }
    assert_eq!(service(&health), DriveService::Out);
    try_out(&health, TrialOutcome::Well);
    try_out(&health, TrialOutcome::Unclear("no descriptors".into()));
    assert_eq!(service(&health), DriveService::Out);
    try_out(&health, TrialOutcome::Well);
    assert_eq!(service(&health), DriveService::Full);
}

#[tokio::test]
async fn no_request_waits_for_a_hung_drive() {
    let health = Health::new("/srv/sda");
    let job = health.enter();
    let waiting = tokio::spawn({
        let health = health.clone();
        async move { health.gone().await }
    });
    (0..HUNG).for_each(|_| _ = health.tick());
    assert_eq!(service(&health), DriveService::Out);
    waiting.await.unwrap();
    // The trial that hung has ended, and those after it succeed; other jobs may not need what this one waits for.
    health.tried(TrialOutcome::Well);
    try_out(&health, TrialOutcome::Well);
    assert_eq!(service(&health), DriveService::Full);
    drop(job);
}

#[test]
fn a_long_job_is_not_a_hung_drive() {
    let health = Health::new("/srv/sda");
    let _job = health.enter();
    for _ in 0..HUNG * 3 {
        if health.tick() {
            health.tried(TrialOutcome::Well);
        }
    }
    assert_eq!(service(&health), DriveService::Full, "trials succeed beside it");
    while !health.tick() {}
    for _ in 1..NO_TRIAL {
        health.progressed();
        health.tick();
    }
    assert_eq!(
        service(&health),
        DriveService::Full,
        "it gets on, whatever becomes of the trial"
    );
}

#[test]
fn a_large_step_is_waited_for_as_long_as_a_slow_drive_needs() {
    let health = Health::new("/srv/sda");
    let _job = health.enter();
    let step = health.announce(LOWEST_RATE * 4096);
    while !health.tick() {}
    (0..4096).for_each(|_| _ = health.tick());
    assert_eq!(service(&health), DriveService::Full);
    (0..NO_TRIAL).for_each(|_| _ = health.tick());
    assert_eq!(service(&health), DriveService::Out);
    drop(step);
    let health = Health::new("/srv/sda");
    let (_job, step) = (health.enter(), health.announce(LOWEST_RATE * 4096));
    drop(step);
    (0..=HUNG).for_each(|_| _ = health.tick());
    assert_eq!(
        service(&health),
        DriveService::Out,
        "it has ended, and with it the patience"
    );
}

#[test]
fn a_drive_is_hung_whose_trial_does_not_end_whatever_else_does() {
    let health = Health::new("/srv/sda");
    while !health.tick() {}
    for _ in 0..NO_TRIAL * 2 {
        // Slow, and not hung.
        health.has_synced();
        health.tick();
    }
    for _ in 1..NO_TRIAL {
        drop(health.enter());
        health.tick();
    }
    assert_eq!(service(&health), DriveService::Full);
    health.tick();
    assert_eq!(service(&health), DriveService::Out);
    health.tried(TrialOutcome::Well);
    assert_eq!(service(&health), DriveService::Out);
    try_out(&health, TrialOutcome::Well);
    assert_eq!(service(&health), DriveService::Full);
}

#[test]
fn a_busy_drive_is_not_hung() {
    let health = Health::new("/srv/sda");
    let mut jobs: Vec<DriveJob> = (0..4).map(|_| health.enter()).collect();
    for at in 0..HUNG as usize * 3 {
        if at % 20 == 0 {
            jobs[0] = health.enter();
        }
        health.tick();
        health.tried(TrialOutcome::Well);
    }
    assert_eq!(service(&health), DriveService::Full);
}

#[test]
fn what_is_gone_serves_nothing_and_what_is_absent_is_reported() {
    let health = Health::new("/srv/sda");
    saw(&health, os(30));
    assert_eq!(try_out(&health, TrialOutcome::ReadOnly("read-only".into())), 0);
    assert_eq!(service(&health), DriveService::ReadOnly);
    saw(&health, os(19));
    assert_eq!(service(&health), DriveService::Out);
    let health = Health::new("/srv/sda");
    try_out(&health, TrialOutcome::Absent("not mounted".into()));
    assert_eq!(service(&health), DriveService::Out);
    assert!(health.check().is_ok(), "everybody sees for himself");
    try_out(&health, TrialOutcome::Well);
    assert_eq!(service(&health), DriveService::Full);
}
