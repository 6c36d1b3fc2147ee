//! Requests of the operations, their pages, and push configs (§3, §4.3).

use crate::json::{JsonObject, wire_message};
use crate::timestamp::Timestamp;

use super::{Message, Task, TaskState};

wire_message! {
    /// The request of `SendMessage` and `SendStreamingMessage` (§3.2.1).
    SendMessageRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The message.
        message "message": Option<Message> [required],
        /// How to answer.
        configuration "configuration": Option<SendMessageConfiguration>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// How a send is to be answered (§3.2.2).
    SendMessageConfiguration {
        /// The media types that the caller takes; any when empty.
        accepted_output_modes "acceptedOutputModes": Vec<String>,
        /// Where the events of the task are to be pushed to.
        task_push_notification_config "taskPushNotificationConfig": Option<TaskPushNotificationConfig>,
        /// How many of the newest messages of the history are wanted; all when absent.
        history_length "historyLength": Option<i32>,
        /// Whether to answer before the task rests.
        return_immediately "returnImmediately": bool,
    }
}

wire_message! {
    /// The request of `GetTask` (§3.1.3).
    GetTaskRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The id.
        id "id": String [required],
        /// How many of the newest messages of the history are wanted; all when absent.
        history_length "historyLength": Option<i32>,
    }
}

wire_message! {
    /// The request of `ListTasks` (§3.1.4).
    ListTasksRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The context; may be empty where the proto lets it.
        context_id "contextId": String,
        /// The status.
        status "status": TaskState,
        /// The most items of a page.
        page_size "pageSize": Option<i32>,
        /// Where the page starts; empty for the first.
        page_token "pageToken": String,
        /// How many of the newest messages of the history are wanted; all when absent.
        history_length "historyLength": Option<i32>,
        /// Only tasks whose status is not older than this.
        status_timestamp_after "statusTimestampAfter": Option<Timestamp>,
        /// Whether the tasks come with their artifacts.
        include_artifacts "includeArtifacts": Option<bool>,
    }
}

wire_message! {
    /// One page of tasks (§3.1.4).
    ListTasksResponse {
        /// The tasks.
        tasks "tasks": Vec<Task> [required],
        /// Where the next page starts; empty when there is none.
        next_page_token "nextPageToken": String [required],
        /// The most items of a page.
        page_size "pageSize": i32 [required],
        /// How many there are on all pages.
        total_size "totalSize": i32 [required],
    }
}

wire_message! {
    /// The request of `CancelTask` (§3.1.5).
    CancelTaskRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The id.
        id "id": String [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The request of `SubscribeToTask` (§3.1.6).
    SubscribeToTaskRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The id.
        id "id": String [required],
    }
}

wire_message! {
    /// The request of `GetExtendedAgentCard` (§3.1.11).
    GetExtendedAgentCardRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
    }
}

wire_message! {
    /// Where the events of a task are pushed to (§4.3.1).
    TaskPushNotificationConfig {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The id.
        id "id": String,
        /// The task.
        task_id "taskId": String,
        /// The URL.
        url "url": String [required],
        /// A token that is sent along.
        token "token": String,
        /// How the receiver authenticates us.
        authentication "authentication": Option<AuthenticationInfo>,
    }
}

wire_message! {
    /// How a push notification is authenticated (§4.3.2).
    AuthenticationInfo {
        /// The HTTP authentication scheme.
        scheme "scheme": String [required],
        /// The credentials; their form depends on the scheme.
        credentials "credentials": String,
    }
}

wire_message! {
    /// The request of `GetTaskPushNotificationConfig` (§3.1.8).
    GetTaskPushNotificationConfigRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The task.
        task_id "taskId": String [required],
        /// The id.
        id "id": String [required],
    }
}

wire_message! {
    /// The request of `DeleteTaskPushNotificationConfig` (§3.1.10).
    DeleteTaskPushNotificationConfigRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The task.
        task_id "taskId": String [required],
        /// The id.
        id "id": String [required],
    }
}

wire_message! {
    /// The request of `ListTaskPushNotificationConfigs` (§3.1.9).
    ListTaskPushNotificationConfigsRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The task.
        task_id "taskId": String [required],
        /// The most items of a page.
        page_size "pageSize": i32,
        /// Where the page starts; empty for the first.
        page_token "pageToken": String,
    }
}

wire_message! {
    /// One page of push configs (§3.1.9).
    ListTaskPushNotificationConfigsResponse {
        /// The push configs.
        configs "configs": Vec<TaskPushNotificationConfig>,
        /// Where the next page starts; empty when there is none.
        next_page_token "nextPageToken": String,
    }
}
