//! Claims of deliveries that are due.

use longhaul_protocol::Timestamp;
use longhaul_store::columns::int;
use longhaul_store::{DueDelivery, StoreError};

use super::turns::{Turns, in_turns};
use super::{row, statements};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::row::get;

/// Which deliveries are wanted.
#[derive(Debug)]
pub(super) struct Claims<'c> {
    pub(super) now: Timestamp,
    pub(super) until: Timestamp,
    pub(super) limit: usize,
    pub(super) after: &'c str,
    pub(super) busy: &'c [String],
}

/// Takes deliveries in fair turns between hosts: as many rounds as it takes until enough are found, or no host has more. Each round
/// stands for itself: what was claimed by those before one that fails is due again when the claim runs out.
pub(super) async fn claim(pool: &Pool, claims: &Claims<'_>) -> Result<Vec<DueDelivery>, Fault> {
    if claims.limit == 0 {
        return Ok(Vec::new());
    }
    let (now, limit) = (claims.now.unix_millis(), int(claims.limit as u64));
    let rows = pool.query(statements::HOSTS, &[&now, &limit, &claims.after, &claims.busy]).await?;
    let hosts = rows.iter().map(row::host_due).collect::<Result<Vec<_>, _>>()?;
    let mut turns = Turns::new(hosts.len(), claims.limit);
    let mut claimed: Vec<Vec<DueDelivery>> = hosts.iter().map(|_| Vec::new()).collect();
    loop {
        let quotas = turns.quotas();
        if quotas.is_empty() {
            return Ok(in_turns(claimed));
        }
        let asked: Vec<_> = quotas.iter().filter_map(|(place, _)| hosts.get(*place)).collect();
        let found = round(pool, claims, &asked, &quotas).await?;
        for ((place, quota), found) in quotas.into_iter().zip(found) {
            turns.gave(place, quota, found.len());
            if let Some(claimed) = claimed.get_mut(place) {
                claimed.extend(found);
            }
        }
    }
}

/// What each of the hosts that are asked has given.
async fn round(
    pool: &Pool,
    claims: &Claims<'_>,
    hosts: &[&(String, u32)],
    quotas: &[(usize, usize)],
) -> Result<Vec<Vec<DueDelivery>>, Fault> {
    let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
    let quotas: Vec<i64> = quotas.iter().map(|(_, quota)| int(*quota as u64)).collect();
    let (now, until) = (claims.now.unix_millis(), claims.until.unix_millis());
    let rows = pool.query(statements::CLAIM, &[&now, &until, &names, &quotas]).await?;
    let mut found: Vec<Vec<(i64, DueDelivery)>> = hosts.iter().map(|_| Vec::new()).collect();
    for read in &rows {
        let place = usize::try_from(get::<i64>(read, 0)? - 1).unwrap_or(usize::MAX);
        let host = hosts.get(place).zip(found.get_mut(place));
        let (host, found) = host.ok_or_else(|| StoreError::corrupt("a delivery of a host that was not asked for"))?;
        found.push((get(read, 1)?, row::claimed(read, host.1)?));
    }
    let in_order = found.into_iter().map(|mut found| {
        found.sort_by_key(|(nth, _)| *nth);
        found.into_iter().map(|(_, delivery)| delivery).collect()
    });
    Ok(in_order.collect())
}
