//! Lines of a person, and a question of the agent on the terminal (`--interactive`).

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use longhaul_protocol::wire::{Message, Part};

use crate::caller::render::Page;

/// The longest line, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Whether there is somebody to ask.
pub fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, and waits for a line; none when there will be no answer.
pub async fn ask(question: Option<&Message>) -> Option<String> {
    let mut page = Page::new();
    let texts = question.iter().flat_map(|message| message.parts.iter()).filter_map(Part::as_text);
    page.block("The agent asks", &texts.collect::<Vec<_>>().join("\n"));
    eprint!("{}> ", page.into_text());
    let _ = io::stderr().flush();
    next_line().await.filter(|line| !line.trim().is_empty())
}

/// The next line of stdin, without its end; none when there is no more.
pub async fn next_line() -> Option<String> {
    let read = || {
        let mut line = String::new();
        let read = io::stdin().lock().by_ref().take(LINE_BYTES_MAX).read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}
