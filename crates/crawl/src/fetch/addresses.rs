//! How much one IP address is asked for, whatever names lead there.
//!
//! Delays are kept by host, and a name costs nothing: without this, a thousand names of one
//! machine are a thousand requests a second. Who comes too soon is told when to come again, and
//! that moment is kept for its host, so that many who wait do not try again and again.
//! Invariants: starts at an address are spaced by the pace of whoever asks; never more are under
//! way than it allows; what is remembered is bounded, and forgetting only makes somebody wait anew.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Addresses remembered; above that, those at rest are forgotten.
const ADDRESSES_MAX: usize = 20_000;
/// Hosts of one address for which a moment is kept.
const PROMISED_MAX: usize = 10_000;
/// A moment that nobody used is forgotten after this.
const PROMISE_KEPT_MS: i64 = 60_000;

/// How fast and how wide one address may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPace {
    /// From one start to the next; 0 is as fast as can be.
    pub interval_ms: i64,
    /// Requests at once; 0 is not limited.
    pub requests_max: usize,
}

#[derive(Debug, Default)]
struct AddressLoad {
    under_way: usize,
    next_ms: i64,
    /// When the hosts that were sent away may come.
    promised: HashMap<Box<str>, i64>,
}

impl AddressLoad {
    fn is_at_rest(&self, now_ms: i64) -> bool {
        self.under_way == 0 && self.next_ms <= now_ms && self.promised.is_empty()
    }

    /// Whether a host may start now, or when it may.
    fn admit(&mut self, host: &str, pace: AddressPace, now_ms: i64) -> Result<(), i64> {
        let is_full = pace.requests_max > 0 && self.under_way >= pace.requests_max;
        match self.promised.remove(host) {
            Some(at_ms) if at_ms > now_ms => {
                self.promised.insert(host.into(), at_ms);
                return Err(at_ms);
            }
            Some(_) if !is_full => return Ok(()),
            _ => {}
        }
        let at_ms = if is_full { now_ms + pace.interval_ms.max(1) } else { now_ms };
        let at_ms = at_ms.max(self.next_ms);
        self.next_ms = at_ms + pace.interval_ms;
        if at_ms <= now_ms {
            return Ok(());
        }
        if self.promised.len() >= PROMISED_MAX {
            self.promised.retain(|_, at_ms| *at_ms + PROMISE_KEPT_MS > now_ms);
        }
        if self.promised.len() < PROMISED_MAX {
            self.promised.insert(host.into(), at_ms);
        }
        Err(at_ms)
    }
}

/// The addresses that are asked, shared by all who ask.
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, AddressLoad>>>);

/// A request to an address is under way until this is dropped.
#[derive(Debug)]
pub struct AddressRequest {
    addresses: Addresses,
    address: IpAddr,
}

impl Addresses {
    /// Begins a request to an address for a host; the error is when the host may try again.
    pub fn begin(
        &self,
        address: IpAddr,
        host: &str,
        pace: AddressPace,
        now_ms: i64,
    ) -> Result<AddressRequest, i64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, place| !place.is_at_rest(now_ms));
        }
        let place = known.entry(address).or_default();
        place.admit(host, pace, now_ms)?;
        place.under_way += 1;
        Ok(AddressRequest { addresses: self.clone(), address })
    }
}

impl Drop for AddressRequest {
    fn drop(&mut self) {
        let mut known = self.addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known.get_mut(&self.address) {
            place.under_way = place.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const PACE: AddressPace = AddressPace { interval_ms: 50, requests_max: 3 };

    /// Hosts that ask when they are told to, for so long; how many requests began in each second.
    fn begun(hosts: usize, until_ms: i64, took_ms: i64) -> Vec<usize> {
        let addresses = Addresses::default();
        let mut next: Vec<i64> = vec![0; hosts];
        let mut under_way: Vec<(i64, AddressRequest)> = Vec::new();
        let mut seconds = vec![0; usize::try_from(until_ms / 1_000).unwrap()];
        for now_ms in 0..until_ms {
            under_way.retain(|(end_ms, _)| *end_ms > now_ms);
            for (number, next_ms) in next.iter_mut().enumerate().filter(|it| *it.1 <= now_ms) {
                match addresses.begin(HERE, &number.to_string(), PACE, now_ms) {
                    Ok(begun) => {
                        under_way.push((now_ms + took_ms, begun));
                        assert!(under_way.len() <= PACE.requests_max);
                        // Each host is polite to itself.
                        *next_ms = now_ms + 1_000;
                        seconds[usize::try_from(now_ms / 1_000).unwrap()] += 1;
                    }
                    Err(at_ms) => {
                        assert!(at_ms > now_ms);
                        *next_ms = at_ms;
                    }
                }
            }
        }
        seconds
    }

    #[test]
    fn a_thousand_hosts_at_one_address_are_asked_as_often_as_the_address_may_be() {
        let seconds = begun(1_000, 10_000, 10);
        assert!(seconds.iter().all(|count| (19..=21).contains(count)), "{seconds:?}");
    }

    #[test]
    fn a_few_hosts_that_are_polite_to_themselves_do_not_wait_for_each_other() {
        let seconds = begun(5, 10_000, 10);
        assert!(seconds.iter().all(|count| *count == 5), "{seconds:?}");
    }

    #[test]
    fn slow_answers_leave_no_more_under_way_than_the_address_may_have() {
        let seconds = begun(100, 10_000, 600);
        assert!(seconds.iter().all(|count| (3..=6).contains(count)), "{seconds:?}");
    }

    #[test]
    fn addresses_at_rest_are_forgotten() {
        let addresses = Addresses::default();
        for number in 0..3 * ADDRESSES_MAX {
            let address = IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number).unwrap()));
            let now_ms = i64::try_from(number).unwrap() * 100;
            drop(addresses.begin(address, "a", PACE, now_ms).unwrap());
        }
        assert!(addresses.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
