//! The sections of a run. Each starts processes of its own on fresh folders and ends them.

mod client;
mod cpu;
mod disk;
mod leases;
mod list;
mod memory;
mod postgres;
mod postgres_size;
mod push;
mod recovery;
mod sends;
mod streams;
mod transactions;

use anyhow::Result;

use crate::report::{Figure, Section};
use crate::run::Run;

/// Name of a section.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum SectionName {
    /// `fdatasync` by itself.
    Disk,
    /// Blocking sends, beside floor and bare loop.
    Sends,
    /// The bare SQLite loop.
    Loop,
    /// First event, streams and events a second.
    Streams,
    /// Processor time a request.
    Cpu,
    /// Resident memory.
    Memory,
    /// `ListTasks` on small and large folders.
    List,
    /// The caller's side: calls beside bare ones, streams and their memory.
    Client,
    /// Restarts, leases that run out, and starts of turns.
    Leases,
    /// Push notifications.
    Push,
    /// Several instances on PostgreSQL, beside `pgbench`.
    Postgres,
    /// What each operation costs in PostgreSQL with few and with many tasks. Takes minutes to fill.
    PostgresSize,
}

impl SectionName {
    /// The sections of a run that names none, in the order in which they run: all but the one that takes minutes to fill.
    pub const DEFAULT: [Self; 11] = [
        Self::Disk,
        Self::Sends,
        Self::Loop,
        Self::Streams,
        Self::Cpu,
        Self::Memory,
        Self::List,
        Self::Client,
        Self::Leases,
        Self::Push,
        Self::Postgres,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Sends => "sends",
            Self::Loop => "loop",
            Self::Streams => "streams",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::List => "list",
            Self::Client => "client",
            Self::Leases => "leases",
            Self::Push => "push",
            Self::Postgres => "postgres",
            Self::PostgresSize => "postgres-size",
        }
    }
}

/// Measures one section. What was measured before a failure is kept.
pub async fn measure(name: SectionName, run: &mut Run) -> Section {
    let mut figures = Vec::new();
    let result = dispatch(name, run, &mut figures).await;
    Section { name: name.name(), error: result.err().map(|error| format!("{error:#}")), figures }
}

async fn dispatch(name: SectionName, run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    match name {
        SectionName::Disk => disk::measure(run, figures),
        SectionName::Sends => sends::measure(run, figures).await,
        SectionName::Loop => transactions::measure(run, figures).await,
        SectionName::Streams => streams::measure(run, figures).await,
        SectionName::Cpu => cpu::measure(run, figures).await,
        SectionName::Memory => memory::measure(run, figures).await,
        SectionName::List => list::measure(run, figures).await,
        SectionName::Client => {
            client::measure(run, figures).await?;
            recovery::measure(run, figures).await
        }
        SectionName::Leases => leases::measure(run, figures).await,
        SectionName::Push => push::measure(run, figures).await,
        SectionName::Postgres => postgres::measure(run, figures).await,
        SectionName::PostgresSize => postgres_size::measure(run, figures).await,
    }
}
