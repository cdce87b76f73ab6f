//! Which request gets a seat, and when.

use super::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// A request from this address that waits for its turn.
fn waiting<'a>(seats: &'a Seats, address: &str) -> BoxFuture<'a, Option<Seat>> {
    let mut waiting = seats.wait(address.parse().unwrap()).boxed();
    assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
    waiting
}

/// Those of the requests that have a seat now.
fn seated(waiting: &mut Vec<(usize, BoxFuture<'_, Option<Seat>>)>) -> Vec<(usize, Seat)> {
    let mut seated = Vec::new();
    waiting.retain_mut(|(number, request)| match request.as_mut().now_or_never() {
        Some(seat) => {
            seated.push((*number, seat.unwrap()));
            false
        }
        None => true,
    });
    seated
}

async fn round() {
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn addresses_take_turns() {
    let seats = Seats::new(&World::real(), 1);
    let mut taken = seats.sit_down();
    assert!(taken.is_some());
    let addresses = [
        "10.0.0.1",
        "10.0.0.1",
        "10.0.0.1",
        "::ffff:10.0.0.2",
        "2001:db8::1",
        "2001:db8::2",
        "10.0.0.2",
    ];
    let requests = addresses.iter().map(|address| waiting(&seats, address));
    let mut requests: Vec<_> = requests.enumerate().collect();
    let mut order = Vec::new();
    while !requests.is_empty() {
        drop(taken.take());
        while taken.is_none() {
            round().await;
            let mut now = seated(&mut requests);
            assert!(now.len() < 2, "one has the seat");
            taken = now.pop().map(|(number, seat)| {
                order.push(number);
                seat
            });
        }
    }
    assert_eq!(order, [0, 3, 4, 1, 6, 5, 2]);
}

#[tokio::test]
async fn few_begin_together_and_the_others_soon() {
    let seats = Seats::new(&World::real(), 1000);
    let mut begun: Vec<Seat> = std::iter::from_fn(|| seats.sit_down()).collect();
    assert_eq!(begun.len(), BEGINNING);
    let mut requests: Vec<_> = (0..10).map(|number| (number, waiting(&seats, "10.0.0.1"))).collect();
    let mut rounds = 0;
    while !requests.is_empty() {
        round().await;
        let now = seated(&mut requests);
        assert!(now.len() <= BEYOND);
        begun.extend(now.into_iter().map(|(_, seat)| seat));
        rounds += 1;
        assert!(rounds < 100, "none waits for those that have begun");
    }
    // They have answers: others begin at once, as many.
    let held: Vec<_> = begun.into_iter().map(|seat| seat.permit).collect();
    assert_eq!(std::iter::from_fn(|| seats.sit_down()).take(100).count(), 100);
    assert_eq!(held.len(), BEGINNING + 10);
}

#[tokio::test]
async fn requests_that_take_long_hold_up_no_others() {
    let seats = Seats::new(&World::real(), 1000);
    let long: Vec<Seat> = std::iter::from_fn(|| seats.sit_down()).collect();
    assert_eq!(long.len(), BEGINNING);
    let long_enough = u64::from(2 * beginnings::EPOCH_MILLIS);
    tokio::time::sleep(std::time::Duration::from_millis(long_enough)).await;
    assert_eq!(std::iter::from_fn(|| seats.sit_down()).take(20).count(), 20);
}

#[tokio::test]
async fn without_room_the_address_with_most_requests_loses_its_newest() {
    let seats = Seats::new(&World::real(), 1);
    let _taken = seats.sit_down();
    let mut many: Vec<_> = (0..3).map(|number| (number, waiting(&seats, "10.0.0.1"))).collect();
    assert!(!seats.make_place("10.0.0.1".parse().unwrap()), "it would be no shorter");
    assert!(seats.make_place("10.0.0.2".parse().unwrap()));
    let refused = many.pop().unwrap().1.await;
    assert!(refused.is_none(), "the newest one");
    assert_eq!(seats.waiting(), 2);
}

#[tokio::test]
async fn a_cancelled_request_leaves_no_place_and_takes_no_seat() {
    let seats = Seats::new(&World::real(), 1);
    let taken = seats.sit_down();
    let impatient = [waiting(&seats, "10.0.0.1"), waiting(&seats, "10.0.0.2")];
    let mut patient = vec![(0, waiting(&seats, "10.0.0.1"))];
    assert_eq!(seats.waiting(), 3);
    drop(impatient);
    assert_eq!(seats.waiting(), 1);
    drop(taken);
    let mut rounds = 0;
    while seated(&mut patient).is_empty() {
        round().await;
        rounds += 1;
        assert!(rounds < 100, "the seat is for the one that is left");
    }
    assert!(seats.queues.lock().are_empty());
    assert_eq!(seats.waiting(), 0);
    assert!(seats.sit_down().is_some());
}
