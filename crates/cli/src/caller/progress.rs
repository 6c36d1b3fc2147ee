//! What a person sees on stderr while a command waits: state, time, and what has come so far.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use longhaul_protocol::wire::{StreamResponse, StreamResponsePayload, TaskArtifactUpdateEvent, TaskState};

use crate::arguments::OutputForm;

use super::render::{clean, state_name};

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(120);
/// How much of an artifact's name is shown, in characters.
const NAME_LENGTH_MAX: usize = 40;

/// One line on a terminal that is drawn again and again; nothing at all elsewhere.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    artifact: Option<(String, u64)>,
    state: TaskState,
}

impl Progress {
    /// Begins. Silent when stderr is no terminal, and when stdout is for programs.
    pub fn begin(output: OutputForm) -> Self {
        match output {
            OutputForm::Text if io::stderr().is_terminal() => Self::drawn(ProgressDrawTarget::stderr()),
            OutputForm::Text | OutputForm::Json => Self::drawn(ProgressDrawTarget::hidden()),
        }
    }

    fn drawn(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target).with_finish(ProgressFinish::AndClear);
        Self::with_bar(bar, "{spinner} {elapsed} {msg}", "sending")
    }

    fn with_bar(bar: ProgressBar, template: &str, message: &'static str) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message);
        bar.enable_steady_tick(TICK);
        Self { bar, artifact: None, state: TaskState::default() }
    }

    /// Shows what an event says.
    pub fn event(&mut self, event: &StreamResponse) {
        match &event.payload {
            Some(StreamResponsePayload::Task(task)) => {
                self.state(task.status.as_ref().map(|status| status.state).unwrap_or_default());
            }
            Some(StreamResponsePayload::StatusUpdate(update)) => {
                self.state(update.status.as_ref().map(|status| status.state).unwrap_or_default());
            }
            Some(StreamResponsePayload::ArtifactUpdate(update)) => self.chunk(update),
            Some(StreamResponsePayload::Message(_)) | None => {}
        }
    }

    /// Shows a state.
    pub fn state(&mut self, state: TaskState) {
        self.state = state;
        self.bar.set_message(self.words());
    }

    fn has_ended(&self) -> bool {
        self.state.known().is_some_and(longhaul_protocol::TaskState::is_terminal)
    }

    fn chunk(&mut self, update: &TaskArtifactUpdateEvent) {
        let Some(artifact) = &update.artifact else { return };
        let name = if artifact.name.is_empty() { &artifact.artifact_id } else { &artifact.name };
        let name: String = clean::line(name).chars().take(NAME_LENGTH_MAX).collect();
        let before = match &self.artifact {
            Some((other, chunks)) if update.append && *other == name => *chunks,
            _ => 0,
        };
        self.artifact = Some((name, before + 1));
        self.bar.set_message(self.words());
    }

    fn words(&self) -> String {
        let state = state_name(self.state).trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', " ");
        match &self.artifact {
            None => state,
            Some((name, 1)) => format!("{state}, artifact {name}"),
            Some((name, chunks)) => format!("{state}, artifact {name}: {chunks} chunks"),
        }
    }

    /// Writes a line of its own to stderr.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("longhaul: {}", clean::line(line)));
    }

    /// Takes the line away.
    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// One line for each of many tasks, on a terminal; nothing at all elsewhere.
#[derive(Debug)]
pub struct Board {
    lines: Vec<(String, Progress)>,
    place: Place,
}

/// Whether anybody sees what is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Terminal,
    Nowhere,
}

impl Board {
    /// Begins, with a line for each of these tasks. Silent when stdout is no terminal or for programs.
    pub fn begin(output: OutputForm, ids: &[String]) -> Self {
        let place = match output {
            OutputForm::Text if io::stdout().is_terminal() => Place::Terminal,
            OutputForm::Text | OutputForm::Json => Place::Nowhere,
        };
        let bars = match place {
            Place::Terminal => MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            Place::Nowhere => MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
        };
        let line = |id: &String| {
            let bar = bars.add(ProgressBar::new_spinner().with_finish(ProgressFinish::AndLeave));
            bar.set_prefix(clean::line(id).into_owned());
            (id.clone(), Progress::with_bar(bar, "{spinner} {elapsed} {prefix} {msg}", "asking"))
        };
        Self { lines: ids.iter().map(line).collect(), place }
    }

    /// Whether a person sees it.
    pub fn is_drawn(&self) -> bool {
        self.place == Place::Terminal
    }

    /// Shows what an event says of a task. A task that has ended keeps its line, as it was then.
    pub fn event(&mut self, id: &str, event: &StreamResponse) {
        for (_, line) in self.lines.iter_mut().filter(|(other, _)| other == id) {
            line.event(event);
            if line.has_ended() {
                line.bar.finish();
            }
        }
    }

    /// Shows how something stands that goes on.
    pub fn say(&self, id: &str, words: &str) {
        for (_, line) in self.lines.iter().filter(|(other, _)| other == id) {
            line.bar.set_message(clean::line(words).into_owned());
        }
    }

    /// Shows how something stands that does not go on by itself.
    pub fn rest(&self, id: &str, words: &str) {
        for (_, line) in self.lines.iter().filter(|(other, _)| other == id) {
            line.bar.finish_with_message(clean::line(words).into_owned());
        }
    }

    /// Leaves the lines as they are.
    pub fn end(self) {
        for (_, line) in &self.lines {
            line.bar.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::from_json;

    use super::*;

    #[test]
    fn the_line_says_how_far_it_is_and_obeys_nobody() {
        let mut progress = Progress::drawn(ProgressDrawTarget::hidden());
        let mut after = |json: &str| {
            progress.event(&from_json(json.as_bytes()).unwrap());
            progress.words()
        };
        assert_eq!(
            after(r#"{"task": {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}}"#),
            "input required"
        );
        let chunk = |name: &str, append: bool| {
            format!(r#"{{"artifactUpdate": {{"append": {append}, "artifact": {{"artifactId": "{name}"}}}}}}"#)
        };
        assert_eq!(after(&chunk("a", false)), "input required, artifact a");
        assert_eq!(after(&chunk("a", true)), "input required, artifact a: 2 chunks");
        assert_eq!(after(&chunk("b", true)), "input required, artifact b");
        assert_eq!(after(&chunk("\\u001b[2J\\n", false)), r"input required, artifact \u{1b}[2J\n");
        progress.end();
    }
}
