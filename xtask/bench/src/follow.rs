//! A process that follows many tasks at once, so that its memory is that of the streams.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use longhaul_client::Client;
use longhaul_client::card::{Binding, Preference};
use longhaul_client::follow::{EventStream, FollowOptions, Until};
use longhaul_protocol::TaskState;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use crate::process;

/// Most time that it may take to open all streams, and for the ends of all to arrive.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the process is told.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The server.
    #[arg(long)]
    addr: SocketAddr,
    /// The binding, by the name that cards use.
    #[arg(long)]
    binding: String,
}

/// A client of the server by this binding.
pub async fn connect(addr: SocketAddr, binding: Binding) -> Result<Client> {
    let preference = Preference { bindings: vec![binding], ..Preference::default() };
    Ok(Client::builder().preference(preference).connect(&format!("http://{addr}")).await?)
}

/// Opens a stream for each task that stdin names, line by line, and says `open SECONDS MB`; then follows them all to their
/// ends, and says how many completed.
pub async fn run(args: Args) -> Result<()> {
    let client = connect(args.addr, args.binding.parse()?).await?;
    let ids: Vec<String> = std::io::stdin().lines().collect::<Result<_, _>>()?;
    let before = process::own_resident_mb()?;
    let begun = Instant::now();
    let mut streams = Vec::new();
    for id in &ids {
        streams.push(opened(&client, id).await?);
    }
    println!("open {} {}", begun.elapsed().as_secs_f64(), process::own_resident_mb()? - before);
    let mut following = JoinSet::new();
    for stream in streams {
        following.spawn(to_its_end(stream));
    }
    let mut completed = 0;
    while let Some(state) = following.join_next().await {
        completed += usize::from(state?? == Some(TaskState::Completed));
    }
    println!("completed {completed}");
    Ok(())
}

/// A stream that has told of its task once.
async fn opened(client: &Client, task_id: &str) -> Result<EventStream> {
    let mut options = FollowOptions::default();
    options.until = Until::Terminal;
    let mut stream = client.follow(task_id, options);
    stream.next().await.context("a stream begins with its task")??;
    Ok(stream)
}

async fn to_its_end(mut stream: EventStream) -> Result<Option<TaskState>> {
    while let Some(event) = stream.next().await {
        event?;
    }
    Ok(stream.state())
}

/// The process, from the outside. Dropping it ends it.
#[derive(Debug)]
pub struct Follower {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What it took to open all streams.
#[derive(Debug)]
pub struct Opened {
    /// The time.
    pub seconds: f64,
    /// The memory, in MB (10^6 bytes).
    pub growth_mb: f64,
}

impl Follower {
    /// Starts it.
    pub fn start(addr: SocketAddr, binding: Binding) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args(["follow", "--addr", &addr.to_string(), "--binding", binding.wire_name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the follower")?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("stdout is piped")?;
        Ok(Self { child, stdin, lines: BufReader::new(stdout).lines() })
    }

    /// Names one more task to follow.
    pub async fn tell(&mut self, id: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("all tasks were told")?;
        Ok(stdin.write_all(format!("{id}\n").as_bytes()).await?)
    }

    /// Waits until all streams are open.
    pub async fn opened(&mut self) -> Result<Opened> {
        drop(self.stdin.take());
        let line = self.line("open ").await?;
        let (seconds, growth) = line.split_once(' ').context("seconds and megabytes")?;
        Ok(Opened { seconds: seconds.parse()?, growth_mb: growth.parse()? })
    }

    /// Waits until all streams have ended, and answers how many told of a completed task.
    pub async fn completed(&mut self) -> Result<usize> {
        let completed = self.line("completed ").await?.parse()?;
        self.child.wait().await?;
        Ok(completed)
    }

    async fn line(&mut self, start: &str) -> Result<String> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.context("the follower is late")??;
        match line.as_deref().and_then(|line| line.strip_prefix(start)) {
            Some(rest) => Ok(rest.to_owned()),
            None => bail!("the follower said {line:?}, not {start:?}"),
        }
    }
}
