//! Requests.

use crate::json::{JsonObject, wire_message};

use super::data::Message;

wire_message! {
    /// The request of `tasks/send` and `tasks/sendSubscribe`.
    TaskSendParams {
        /// The task that is continued; or the id that its caller wants to give a new one.
        id "id": String [required],
        /// The session; made by the server if there is none.
        session_id "sessionId": String,
        /// The message.
        message "message": Option<Message> [required],
        /// The media types that the caller takes; any when empty.
        accepted_output_modes "acceptedOutputModes": Vec<String>,
        /// Where the events of the task are to be pushed to.
        push_notification "pushNotification": Option<JsonObject>,
        /// How many of the newest messages of the history are wanted; none when absent or 0.
        history_length "historyLength": Option<i32>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The request of `tasks/get` and `tasks/resubscribe`.
    TaskQueryParams {
        /// The task.
        id "id": String [required],
        /// How many of the newest messages of the history are wanted; none when absent or 0.
        history_length "historyLength": Option<i32>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The request of `tasks/cancel`.
    TaskIdParams {
        /// The task.
        id "id": String [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}
