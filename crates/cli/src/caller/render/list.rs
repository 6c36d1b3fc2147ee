//! Pages of tasks and push configs for people.

use longhaul_protocol::wire::{ListTasksResponse, TaskPushNotificationConfig};

use super::{Detail, Page, task};

/// Writes tasks, and how many there are.
pub fn tasks(page: &mut Page, list: &ListTasksResponse, detail: Detail) {
    for one in &list.tasks {
        task(page, one, detail);
    }
    page.field("Total", list.total_size);
    page.field_if("Next page token", &list.next_page_token);
}

/// Writes push configs.
pub fn push_configs(page: &mut Page, configs: &[TaskPushNotificationConfig]) {
    for config in configs {
        push_config(page, config);
    }
    page.field("Push configs", configs.len());
}

/// Writes one push config. Its secrets are only said to be there; `-o json` shows what the agent sent.
pub fn push_config(page: &mut Page, config: &TaskPushNotificationConfig) {
    page.field("Push config", &config.id);
    page.field("Task", &config.task_id);
    page.field("URL", &config.url);
    page.field_if("Token", if config.token.is_empty() { "" } else { "(hidden)" });
    if let Some(authentication) = &config.authentication {
        let hidden = if authentication.credentials.is_empty() { "" } else { " (hidden)" };
        page.field("Authentication", format_args!("{}{hidden}", authentication.scheme));
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::from_json;

    use super::*;

    #[test]
    fn a_list_of_tasks_ends_with_their_number_and_the_next_page() {
        let json = r#"{"tasks": [{"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}], "nextPageToken": "n", "totalSize": 7}"#;
        let mut page = Page::new();
        tasks(&mut page, &from_json(json.as_bytes()).unwrap(), Detail::Concise);
        let wanted = "Task: t\nContext: c\nState: TASK_STATE_WORKING\nTotal: 7\nNext page token: n\n";
        assert_eq!(page.into_text(), wanted);
    }

    #[test]
    fn the_secrets_of_a_push_config_are_not_shown() {
        let json = r#"{"id": "p", "taskId": "t", "url": "https://h/", "token": "s3cret", "authentication": {"scheme": "Bearer", "credentials": "s3cret"}}"#;
        let mut page = Page::new();
        push_configs(&mut page, &[from_json(json.as_bytes()).unwrap()]);
        let wanted = "Push config: p\nTask: t\nURL: https://h/\nToken: (hidden)\nAuthentication: Bearer (hidden)\nPush configs: 1\n";
        assert_eq!(page.into_text(), wanted);
    }
}
