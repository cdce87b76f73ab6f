//! Offers and wishes: what the sender has, what of it is newer than what is here.
//!
//! Offers are looked up in batches, so that a thousand objects cost a few hops to the device. Wishes can only be said
//! after the last offer, because senders do not listen before; until then they are kept in memory.
//! Always holds: after an offer that was passed over, no further one is looked up.

use super::{Exchange, ExchangeEnd};
use crate::devices::ObjectDevice;
use bytes::Bytes;
use object_engine::{EngineError, ObjectEngine, PartitionKey, Versions};
use peer::ssync::{MISSING_END, MISSING_START, Offer, Wish};
use vocabulary::PathHash;

/// Offers that are looked up in one hop.
const BATCH: usize = 512;
/// Wishes go out in pieces of about that many bytes.
const PIECE: usize = 64 * 1024;

impl Exchange {
    pub(super) async fn missing_check(&mut self) -> Result<(), ExchangeEnd> {
        self.expect(MISSING_START).await?;
        let mut room = self.state.exchange_slots.room_for_wishes();
        let mut wishes = vec![];
        let mut over = false;
        while !over {
            self.check_time()?;
            let offers;
            (offers, over) = self.offers().await?;
            if self.passed_over > 0 {
                self.passed_over += offers.len() as u64;
                continue;
            }
            let key = self.place.key;
            let compare = move |device: &ObjectDevice| Ok(compare(&**device.engine(), key, &offers)?);
            let found = self.on_device(compare).await?;
            let fitting = room.take(found.len());
            self.passed_over += (found.len() - fitting) as u64;
            wishes.extend(found.into_iter().take(fitting));
        }
        let mut text = format!("{MISSING_START}\r\n");
        if wishes.is_empty() {
            // What OpenStack's receiver says then; its sender passes over it.
            text.push_str("\r\n");
        }
        for (hash, wish) in wishes {
            text.push_str(&wish.line(hash));
            text.push_str("\r\n");
            if text.len() >= PIECE {
                self.say(std::mem::take(&mut text)).await?;
            }
        }
        text.push_str(MISSING_END);
        text.push_str("\r\n");
        self.say(text).await
    }

    /// The offers that have come, and whether they were the last.
    async fn offers(&mut self) -> Result<(Vec<Offer>, bool), ExchangeEnd> {
        let mut offers = vec![];
        let mut next = self.lines.next().await?;
        if next.is_none() {
            return Err(ExchangeEnd::Gone("it ended among its offers".into()));
        }
        while let Some(line) = next {
            if line == MISSING_END {
                return Ok((offers, true));
            }
            offers.push(parse(&line)?);
            next = match offers.len() {
                BATCH.. => None,
                _ => self.lines.at_hand()?,
            };
        }
        Ok((offers, false))
    }
}

fn parse(line: &Bytes) -> Result<Offer, ExchangeEnd> {
    Offer::parse(&String::from_utf8_lossy(line)).map_err(ExchangeEnd::nonsense)
}

/// What of the offers is missing.
fn compare(
    engine: &dyn ObjectEngine,
    key: PartitionKey,
    offers: &[Offer],
) -> Result<Vec<(PathHash, Wish)>, EngineError> {
    let hashes: Vec<PathHash> = offers.iter().map(|offer| offer.hash).collect();
    let versions = engine.replica().versions_of(key, &hashes)?;
    let wish = |(offer, versions): (&Offer, Option<Versions>)| {
        let here = versions.map(|versions| here(offer.hash, &versions));
        offer.wish(here.as_ref()).map(|wish| (offer.hash, wish))
    };
    Ok(offers.iter().zip(versions).filter_map(wish).collect())
}

fn here(hash: PathHash, versions: &Versions) -> Offer {
    Offer {
        hash,
        data: versions.data,
        deleted: versions.deleted,
        meta: versions.meta.unwrap_or(versions.data),
        content_type: versions.content_type.unwrap_or(versions.data),
        durable: true,
    }
}
