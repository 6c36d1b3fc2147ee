//! `task download`: the artifacts of a task as files.

use longhaul_protocol::wire::{Artifact, Task};
use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::arguments::DownloadFlags;
use crate::caller::failure::Failure;
use crate::caller::render::{Page, state_name};
use crate::caller::save::{Folder, Saved, save};
use crate::caller::session::{End, Session};

use super::answers::fetch;

/// Writes files, and says which.
///
/// # Errors
///
/// [`End`] when the task can't be had, has no such artifact, or a file can't be written.
pub async fn download(session: &Session, flags: &DownloadFlags) -> Result<(), End> {
    let folder = Folder::open(&flags.dir)?;
    let client = session.client().await?;
    let task = fetch(session, &client, &flags.task_id, Some(0)).await?;
    let saved = save(&folder, &wanted(&task, &flags.artifacts)?)?;
    match session.options.output {
        OutputForm::Json => session.print_json(&told(&task, &saved)),
        OutputForm::Text => {
            let mut page = Page::new();
            page.field("Task", &task.id);
            page.field("Context", &task.context_id);
            page.field("State", state_name(task.status.as_ref().map(|status| status.state).unwrap_or_default()));
            write_saved(&mut page, &saved);
            page.field("Files", saved.iter().filter(|saved| matches!(saved, Saved::File { .. })).count());
            session.print(&page.into_text())
        }
    }
}

fn wanted(task: &Task, ids: &[String]) -> Result<Vec<Artifact>, Failure> {
    if let Some(missing) = ids.iter().find(|id| task.artifacts.iter().all(|artifact| artifact.artifact_id != **id)) {
        return Err(Failure::usage(format!("the task has no artifact {missing:?}"))
            .hint("longhaul task get shows the artifacts of a task"));
    }
    let is_wanted = |artifact: &&Artifact| ids.is_empty() || ids.contains(&artifact.artifact_id);
    Ok(task.artifacts.iter().filter(is_wanted).cloned().collect())
}

/// Writes which files there are now, and which addresses were not called.
pub fn write_saved(page: &mut Page, saved: &[Saved]) {
    for one in saved {
        match one {
            Saved::File { path, .. } => page.field("Saved", path.display()),
            Saved::Url { url, .. } => page.field("Not fetched", url),
        }
    }
}

fn told(task: &Task, saved: &[Saved]) -> Value {
    let file = |saved: &Saved| match saved {
        Saved::File { artifact_id, path, bytes } => {
            json!({ "artifactId": artifact_id, "path": path.to_string_lossy(), "bytes": bytes })
        }
        Saved::Url { artifact_id, url } => json!({ "artifactId": artifact_id, "url": url }),
    };
    let state = task.status.as_ref().map(|status| status.state).unwrap_or_default();
    json!({
        "taskId": task.id,
        "contextId": task.context_id,
        "state": state_name(state),
        "files": saved.iter().map(file).collect::<Vec<_>>(),
    })
}
