//! How many requests came, by version, binding and operation: so that an operator knows when old callers are gone.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::version::Version;

/// Makes a closed enum of the values of a label.
macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($case:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum $name {
            $($case,)+
        }

        impl $name {
            const ALL: &[Self] = &[$(Self::$case,)+];

            fn text(self) -> &'static str {
                match self {
                    $(Self::$case => $text,)+
                }
            }
        }
    };
}

label! {
    /// The version that a request was answered in.
    Spoken {
        V1_0 = "1.0",
        V0_3 = "0.3",
        Draft = "draft",
        Refused = "refused",
    }
}

impl From<Version> for Spoken {
    fn from(version: Version) -> Self {
        match version {
            Version::V1_0 => Self::V1_0,
            Version::V0_3 => Self::V0_3,
        }
    }
}

label! {
    /// The binding, by its name in cards.
    Transport {
        JsonRpc = "JSONRPC",
        HttpJson = "HTTP+JSON",
        Grpc = "GRPC",
    }
}

label! {
    /// The operation, by its name in v1.0 whatever the version.
    Operation {
        SendMessage = "SendMessage",
        SendStreamingMessage = "SendStreamingMessage",
        GetTask = "GetTask",
        ListTasks = "ListTasks",
        CancelTask = "CancelTask",
        SubscribeToTask = "SubscribeToTask",
        CreatePushConfig = "CreateTaskPushNotificationConfig",
        GetPushConfig = "GetTaskPushNotificationConfig",
        ListPushConfigs = "ListTaskPushNotificationConfigs",
        DeletePushConfig = "DeleteTaskPushNotificationConfig",
        GetExtendedAgentCard = "GetExtendedAgentCard",
        ListArtifactVersions = "ListArtifactVersions",
        GetArtifact = "GetArtifact",
        Unknown = "unknown",
    }
}

impl Operation {
    /// The operation that a method of JSON-RPC or gRPC is, in any version.
    pub fn of_method(method: &str) -> Self {
        match method {
            "message/send" | "tasks/send" => Self::SendMessage,
            "message/stream" | "tasks/sendSubscribe" => Self::SendStreamingMessage,
            "tasks/get" => Self::GetTask,
            "tasks/cancel" => Self::CancelTask,
            "tasks/resubscribe" | "TaskSubscription" => Self::SubscribeToTask,
            "tasks/pushNotificationConfig/set" => Self::CreatePushConfig,
            "tasks/pushNotificationConfig/get" => Self::GetPushConfig,
            "tasks/pushNotificationConfig/list" | "ListTaskPushNotificationConfig" => Self::ListPushConfigs,
            "tasks/pushNotificationConfig/delete" => Self::DeletePushConfig,
            "agent/getAuthenticatedExtendedCard" | "GetAgentCard" => Self::GetExtendedAgentCard,
            name => Self::ALL.iter().copied().find(|known| known.text() == name).unwrap_or(Self::Unknown),
        }
    }
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Requests {
    /// One for each combination of labels, in the order in which [`combinations`] walks them.
    counts: Vec<AtomicU64>,
}

fn combinations() -> impl Iterator<Item = (Spoken, Transport, Operation)> {
    Spoken::ALL.iter().flat_map(|version| {
        Transport::ALL
            .iter()
            .flat_map(|transport| Operation::ALL.iter().map(|operation| (*version, *transport, *operation)))
    })
}

impl Default for Requests {
    fn default() -> Self {
        Self { counts: combinations().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Requests {
    /// Counts one.
    pub fn count(&self, version: Spoken, transport: Transport, operation: Operation) {
        let place =
            (version as usize * Transport::ALL.len() + transport as usize) * Operation::ALL.len() + operation as usize;
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted, in the text format of Prometheus; what never came is left out.
    pub fn to_text(&self) -> Bytes {
        let mut text = String::from(
            "# HELP longhaul_requests_total Requests by the version of the protocol they were answered in.\n\
             # TYPE longhaul_requests_total counter\n",
        );
        for ((version, transport, operation), count) in combinations().zip(&self.counts) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let (version, transport, operation) = (version.text(), transport.text(), operation.text());
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "longhaul_requests_total{{version=\"{version}\",binding=\"{transport}\",operation=\"{operation}\"}} {count}"
                );
            }
        }
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_combination_has_a_counter_of_its_own() {
        let requests = Requests::default();
        for (version, transport, operation) in combinations() {
            requests.count(version, transport, operation);
        }
        assert!(requests.counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        requests.count(Version::V0_3.into(), Transport::Grpc, Operation::of_method("TaskSubscription"));
        let text = String::from_utf8(requests.to_text().to_vec()).unwrap();
        assert_eq!(text.lines().count(), 2 + combinations().count());
        let line = "longhaul_requests_total{version=\"0.3\",binding=\"GRPC\",operation=\"SubscribeToTask\"} 2";
        assert!(text.lines().any(|known| known == line), "{text}");
    }

    #[test]
    fn what_never_came_is_left_out() {
        let requests = Requests::default();
        assert_eq!(String::from_utf8(requests.to_text().to_vec()).unwrap().lines().count(), 2);
        requests.count(Spoken::Refused, Transport::JsonRpc, Operation::of_method("no/such"));
        let text = String::from_utf8(requests.to_text().to_vec()).unwrap();
        assert!(text.ends_with("{version=\"refused\",binding=\"JSONRPC\",operation=\"unknown\"} 1\n"), "{text}");
    }
}
