//! How devices come, fail and are put at rest, with an engine that only counts.

use super::*;
use parking_lot::Mutex;

/// Opens `sda`, and counts how often; its engine has leftovers after each job.
#[derive(Default)]
struct Opener(Mutex<usize>);

#[derive(Default)]
struct Leftovers(AtomicBool);

impl DeviceEngine for Leftovers {
    fn has_leftovers(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn clear_leftovers(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl DeviceOpener for Opener {
    type Engine = Leftovers;

    fn open(&self, name: &str) -> Result<Leftovers, Fault> {
        *self.0.lock() += 1;
        match name {
            "sda" => Ok(Leftovers::default()),
            _ => Err(Fault::device("not mounted")),
        }
    }

    fn health(&self, name: &str) -> Arc<Health> {
        Health::new(name)
    }
}

fn pool(queue: usize) -> DevicePool<Opener> {
    let options = PoolOptions {
        openers: "open",
        threads: 1,
        queue,
    };
    DevicePool::new(World::real(), Opener::default(), options).unwrap()
}

#[tokio::test]
async fn a_device_is_opened_once_for_both_lanes() {
    let pool = Arc::new(pool(10));
    let tasks = (0..20).map(|number| {
        let (pool, lane) = (pool.clone(), [Lane::Requests, Lane::Replication][number % 2]);
        tokio::spawn(async move { pool.device("sda", lane).await.is_ok() })
    });
    for task in tasks.collect::<Vec<_>>() {
        assert!(task.await.unwrap());
    }
    assert_eq!(*pool.opener().0.lock(), 1);
    let absent: Result<(), Fault> = pool.run("sdb", Lane::Requests, |_| Ok(())).await;
    assert_eq!(absent.unwrap_err().to_string(), "device sdb: not mounted");
    assert!(pool.opened("sdb").is_none() && pool.opening.lock().await.is_empty());
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_is_waited_for_in_the_middle_of_a_body() {
    let device = pool(1).device("sda", Lane::Requests).await.unwrap();
    let (release, hang) = std::sync::mpsc::channel::<()>();
    let (began, running) = tokio::sync::oneshot::channel();
    let spawn = |job: Box<dyn FnOnce() + Send>| {
        let device = device.clone();
        tokio::spawn(async move {
            let job = move |_: &PooledDevice<Leftovers>| {
                job();
                Ok::<_, Fault>(())
            };
            device.run(job).await
        })
    };
    let first = spawn(Box::new(move || {
        let _ = began.send(());
        let _ = hang.recv();
    }));
    running.await.unwrap();
    let second = spawn(Box::new(|| {}));
    while device.workers.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let refused: Result<(), Fault> = device.run(|_| Ok(())).await;
    assert_eq!(refused.unwrap_err().kind, FaultKind::Contention);
    let patient = {
        let device = device.clone();
        tokio::spawn(async move {
            device
                .run_patiently(Turn::Behind, || |_: &PooledDevice<Leftovers>| Ok::<_, Fault>(3))
                .await
        })
    };
    release.send(()).unwrap();
    assert_eq!(patient.await.unwrap(), Ok(3));
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
}

#[tokio::test]
async fn leftovers_are_cleared_and_a_panic_costs_one_job() {
    let device = pool(10).device("sda", Lane::Requests).await.unwrap();
    let panicked: Result<(), Fault> = device.run(|_| panic!("planted")).await;
    assert_eq!(panicked.unwrap_err().kind, FaultKind::Caller);
    let leave = |device: &PooledDevice<Leftovers>| {
        device.engine().0.store(true, Ordering::Release);
        Ok::<_, Fault>(())
    };
    device.run(leave).await.unwrap();
    while device.engine().has_leftovers() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn requests_that_are_given_up_leave_no_names() {
    let pool = pool(10);
    let mut given_up = 0;
    for number in 0..2 * MAX_OPENING {
        let name = format!("none{number}");
        let mut opening = std::pin::pin!(pool.device(&name, Lane::Requests));
        // As a client that hangs up at once; hardly one is answered before that.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        given_up += usize::from(opening.as_mut().poll(&mut context).is_pending());
    }
    let known = pool.opening.lock().await.len();
    assert!(given_up > MAX_OPENING, "only {given_up} were given up");
    assert!(known <= MAX_OPENING, "{known} names");
}
