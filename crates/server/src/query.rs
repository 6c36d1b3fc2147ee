//! Requests of operations without a body, read from the query (A2A §11.5).

use longhaul_protocol::{A2aError, FieldViolation, TaskState, Timestamp, wire};
use percent_encoding::percent_decode_str;

/// The parameters of a query, decoded, by either spelling of their names.
#[derive(Debug)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
    violations: Vec<FieldViolation>,
}

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let parameters = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self { parameters: parameters.collect(), violations: Vec::new() }
    }

    /// The last value given under a name; the name in snake_case is taken as well.
    pub fn text(&self, name: &str) -> Option<&str> {
        let snake = snake_case(name);
        let given = self.parameters.iter().rev().find(|(known, _)| known == name || *known == snake);
        given.map(|(_, value)| value.as_str())
    }

    fn owned(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    fn read<T>(&mut self, name: &str, what: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let given = self.text(name).filter(|value| !value.is_empty())?;
        let value = read(given);
        if value.is_none() {
            self.violations.push(FieldViolation { field: name.to_owned(), description: format!("must be {what}") });
        }
        value
    }

    fn number(&mut self, name: &str) -> Option<i32> {
        self.read(name, "a whole number of 32 bits", |value| value.parse().ok())
    }

    fn finish<T>(self, request: T) -> Result<T, A2aError> {
        match self.violations.is_empty() {
            true => Ok(request),
            false => Err(A2aError::invalid_argument(self.violations)),
        }
    }

    /// # Errors
    ///
    /// Invalid argument, with a violation for each parameter that is not of its type; likewise below.
    pub fn get_task(mut self, id: String) -> Result<wire::GetTaskRequest, A2aError> {
        let request =
            wire::GetTaskRequest { tenant: self.owned("tenant"), id, history_length: self.number("historyLength") };
        self.finish(request)
    }

    pub fn list_tasks(mut self) -> Result<wire::ListTasksRequest, A2aError> {
        let status = self.read("status", "the name of a task state", state).unwrap_or_default();
        let request = wire::ListTasksRequest {
            tenant: self.owned("tenant"),
            context_id: self.owned("contextId"),
            status,
            page_size: self.number("pageSize"),
            page_token: self.owned("pageToken"),
            history_length: self.number("historyLength"),
            status_timestamp_after: self
                .read("statusTimestampAfter", "a time as ISO 8601 writes it", |value| value.parse::<Timestamp>().ok()),
            include_artifacts: self.read("includeArtifacts", "true or false", |value| value.parse().ok()),
        };
        self.finish(request)
    }

    pub fn list_push_configs(
        mut self,
        task_id: String,
    ) -> Result<wire::ListTaskPushNotificationConfigsRequest, A2aError> {
        let request = wire::ListTaskPushNotificationConfigsRequest {
            tenant: self.owned("tenant"),
            task_id,
            page_size: self.number("pageSize").unwrap_or(0),
            page_token: self.owned("pageToken"),
        };
        self.finish(request)
    }

    pub fn get_push_config(self, task_id: String, id: String) -> wire::GetTaskPushNotificationConfigRequest {
        wire::GetTaskPushNotificationConfigRequest { tenant: self.owned("tenant"), task_id, id }
    }

    pub fn delete_push_config(self, task_id: String, id: String) -> wire::DeleteTaskPushNotificationConfigRequest {
        wire::DeleteTaskPushNotificationConfigRequest { tenant: self.owned("tenant"), task_id, id }
    }

    pub fn subscribe_to_task(self, id: String) -> wire::SubscribeToTaskRequest {
        wire::SubscribeToTaskRequest { tenant: self.owned("tenant"), id }
    }

    pub fn get_artifact(
        mut self,
        task_id: String,
        artifact_id: String,
        version: Option<&str>,
    ) -> Result<wire::GetArtifactRequest, A2aError> {
        let version = match version {
            None => self.read("version", "a whole number", |value| value.parse().ok()),
            Some(version) => match version.parse() {
                Ok(version) => Some(version),
                Err(_) => return Err(crate::operation::invalid("version", "must be a whole number")),
            },
        };
        let request = wire::GetArtifactRequest { tenant: self.owned("tenant"), task_id, artifact_id, version };
        self.finish(request)
    }

    pub fn list_artifact_versions(
        mut self,
        task_id: String,
        artifact_id: String,
    ) -> Result<wire::ListArtifactVersionsRequest, A2aError> {
        let page_size = self.number("pageSize");
        let request = wire::ListArtifactVersionsRequest {
            tenant: self.owned("tenant"),
            task_id,
            artifact_id,
            page_size,
            page_token: self.owned("pageToken"),
        };
        self.finish(request)
    }
}

/// A state by its name or its number, as ProtoJSON has it.
fn state(value: &str) -> Option<wire::TaskState> {
    if value == "TASK_STATE_UNSPECIFIED" {
        return Some(wire::TaskState::default());
    }
    TaskState::from_wire_name(value).map(Into::into).or_else(|| value.parse().ok().map(wire::TaskState))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_typed() {
        let query = Query::parse(Some(
            "contextId=my%20ctx+1%2F%C3%BC&page_size=7&status=TASK_STATE_WORKING&includeArtifacts=true",
        ));
        let request = query.list_tasks().unwrap();
        assert_eq!(request.context_id, "my ctx 1/ü");
        assert_eq!(request.page_size, Some(7));
        assert_eq!(request.status.known(), Some(TaskState::Working));
        assert_eq!(request.include_artifacts, Some(true));
    }

    #[test]
    fn each_parameter_of_a_wrong_type_is_named() {
        let query = Query::parse(Some(
            "pageSize=x&status=working&includeArtifacts=1&statusTimestampAfter=yesterday&historyLength=2147483648",
        ));
        let error = query.list_tasks().unwrap_err();
        let fields: Vec<_> = error.violations.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["status", "pageSize", "historyLength", "statusTimestampAfter", "includeArtifacts"]);
    }
}
