//! Names of resources, which hold the ids: `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`.

use crate::json::JsonError;
use crate::v0_3::fault::fault;

const TASKS: &str = "tasks/";
const CONFIGS: &str = "/pushNotificationConfigs/";

/// The name of a task.
pub(super) fn task_name(task_id: &str) -> String {
    format!("{TASKS}{task_id}")
}

/// The name of a push config.
pub(super) fn push_config_name(task_id: &str, config_id: &str) -> String {
    format!("{TASKS}{task_id}{CONFIGS}{config_id}")
}

/// The id in the name of a task. An empty name is that of no task: whoever needs one refuses it.
pub(super) fn task_id(name: &str, member: &'static str) -> Result<String, JsonError> {
    match name.strip_prefix(TASKS) {
        Some(id) if !id.is_empty() && !id.contains('/') => Ok(id.to_owned()),
        Some(_) | None if name.is_empty() => Ok(String::new()),
        Some(_) | None => Err(fault(member, format!("must be {TASKS}{{id}}"))),
    }
}

/// The ids of the task and of the config in the name of a push config; the second may be empty.
pub(super) fn push_config_ids(name: &str, member: &'static str) -> Result<(String, String), JsonError> {
    let ids = name.strip_prefix(TASKS).and_then(|ids| ids.split_once(CONFIGS));
    match ids {
        Some((task, config)) if !task.is_empty() && !task.contains('/') && !config.contains('/') => {
            Ok((task.to_owned(), config.to_owned()))
        }
        Some(_) | None if name.is_empty() => Ok(Default::default()),
        Some(_) | None => Err(fault(member, format!("must be {TASKS}{{id}}{CONFIGS}{{id}}"))),
    }
}
