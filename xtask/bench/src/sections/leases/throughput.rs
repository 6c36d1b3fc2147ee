//! Short sends while many turns hold leases, which are renewed seldom or often.

use anyhow::Result;

use super::send_and_leave;
use crate::load;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::run::Run;
use crate::stats::Outcome;

/// Turns at work besides: the demo agent has 1,024 workers.
const TURNS: usize = 900;
const CONNECTIONS: usize = 32;

/// What leases may cost of the rate, at the most.
const RATE_MIN: f64 = 0.9;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for store in run.options.stores.clone() {
        let mut servers = Vec::new();
        for lease in ["1h", "30s", "1s"] {
            let config = format!("[agent]\nlease_duration = \"{lease}\"\n");
            let data = run.data_dir()?;
            let server = run.server_with(&data, store, &config).await?;
            for _ in 0..TURNS {
                send_and_leave(server.addr(), "slow 3600").await?;
            }
            servers.push((lease, server, Outcome::default()));
        }
        for _ in 0..run.options.rounds.max(3) {
            for (_, server, outcome) in &mut servers {
                outcome.extend(load::sends(server.addr(), CONNECTIONS, run.options.window, "echo hello").await?);
            }
        }
        let mut never_renewed = 0.0;
        for (lease, server, outcome) in servers {
            let what = format!("{}, {CONNECTIONS}: sends beside {TURNS} turns, leases of {lease}", store.name());
            let figure = Figure::new(what, outcome.rate(), "/s");
            figures.push(match lease {
                "1h" => {
                    never_renewed = outcome.rate();
                    figure
                }
                _ => {
                    let figure = figure.ratio(never_renewed, "leases that are not renewed", Bound::AtLeast, RATE_MIN);
                    if lease == "30s" || store == StoreKind::Memory { figure } else { figure.aim() }
                }
            });
            server.kill().await?;
        }
    }
    Ok(())
}
