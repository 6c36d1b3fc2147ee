//! Which resource a path names. Segments are split before they are decoded, so that an id may hold anything.

use percent_encoding::percent_decode_str;

/// A resource of the HTTP+JSON binding (A2A §11.3), and of our extension.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Resource {
    SendMessage,
    SendStreamingMessage,
    Tasks,
    Task { id: String },
    CancelTask { id: String },
    SubscribeToTask { id: String },
    PushConfigs { task_id: String },
    PushConfig { task_id: String, id: String },
    ExtendedAgentCard,
    Artifact { task_id: String, artifact_id: String },
    ArtifactVersions { task_id: String, artifact_id: String },
    ArtifactVersion { task_id: String, artifact_id: String, version: String },
}

/// Finds the resource that a path below the prefix names, and the tenant before it if there is one.
pub(crate) fn resource(path: &str) -> Option<(Resource, String)> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    if let Some(resource) = of_segments(&segments) {
        return Some((resource, String::new()));
    }
    let (tenant, rest) = segments.split_first()?;
    if tenant.is_empty() {
        return None;
    }
    Some((of_segments(rest)?, decoded(tenant)))
}

/// Finds the resource of v0.3 that a path below `/v1` names (§3.5.6 of v0.3). Most are those of v1.0.
pub(crate) fn resource_v0_3(path: &str) -> Option<Resource> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    match (segments.as_slice(), of_segments(&segments)) {
        (["card"], _) => Some(Resource::ExtendedAgentCard),
        (
            _,
            None
            | Some(
                Resource::ExtendedAgentCard
                | Resource::Tasks
                | Resource::Artifact { .. }
                | Resource::ArtifactVersions { .. }
                | Resource::ArtifactVersion { .. },
            ),
        ) => None,
        (_, found) => found,
    }
}

fn of_segments(segments: &[&str]) -> Option<Resource> {
    match segments {
        ["message:send"] => Some(Resource::SendMessage),
        ["message:stream"] => Some(Resource::SendStreamingMessage),
        ["extendedAgentCard"] => Some(Resource::ExtendedAgentCard),
        ["tasks"] => Some(Resource::Tasks),
        ["tasks", task] => task_or_verb(task),
        ["tasks", task, "pushNotificationConfigs"] => Some(Resource::PushConfigs { task_id: decoded(task) }),
        ["tasks", task, "pushNotificationConfigs", id] => {
            Some(Resource::PushConfig { task_id: decoded(task), id: decoded(id) })
        }
        ["tasks", task, "artifacts", artifact] => {
            Some(Resource::Artifact { task_id: decoded(task), artifact_id: decoded(artifact) })
        }
        ["tasks", task, "artifacts", artifact, "versions"] => {
            Some(Resource::ArtifactVersions { task_id: decoded(task), artifact_id: decoded(artifact) })
        }
        ["tasks", task, "artifacts", artifact, "versions", version] => Some(Resource::ArtifactVersion {
            task_id: decoded(task),
            artifact_id: decoded(artifact),
            version: decoded(version),
        }),
        _ => None,
    }
}

/// A colon as it stands divides an id from a verb; one that is escaped belongs to the id.
fn task_or_verb(segment: &str) -> Option<Resource> {
    match segment.rsplit_once(':') {
        Some((id, "cancel")) => Some(Resource::CancelTask { id: decoded(id) }),
        Some((id, "subscribe")) => Some(Resource::SubscribeToTask { id: decoded(id) }),
        Some(_) | None if segment.is_empty() => None,
        Some(_) | None => Some(Resource::Task { id: decoded(segment) }),
    }
}

/// What is not UTF-8 becomes an id that nothing has.
fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str) -> Option<(Resource, String)> {
        Some((Resource::Task { id: id.to_owned() }, String::new()))
    }

    #[test]
    fn ids_are_decoded_after_the_path_is_split() {
        assert_eq!(resource("/tasks/a%2Fb"), task("a/b"));
        assert_eq!(resource("/tasks/.."), task(".."));
        assert_eq!(resource("/tasks/%2E%2E%2Ftasks"), task("../tasks"));
        assert_eq!(resource("/tasks/a%3Fb"), task("a?b"));
        assert_eq!(resource("/tasks/a%3Acancel"), task("a:cancel"));
        assert_eq!(resource("/tasks/a:cancel"), Some((Resource::CancelTask { id: "a".to_owned() }, String::new())));
        assert_eq!(
            resource("/tasks/a%3Ab:subscribe"),
            Some((Resource::SubscribeToTask { id: "a:b".to_owned() }, String::new()))
        );
        assert_eq!(resource("/tasks/a:b"), task("a:b"));
    }

    #[test]
    fn v0_3_has_some_of_them_and_its_own_name_for_the_card() {
        assert_eq!(resource_v0_3("/tasks/a%2Fb"), Some(Resource::Task { id: "a/b".to_owned() }));
        assert_eq!(resource_v0_3("/tasks/a:cancel"), Some(Resource::CancelTask { id: "a".to_owned() }));
        assert_eq!(resource_v0_3("/card"), Some(Resource::ExtendedAgentCard));
        for path in ["/tasks", "/extendedAgentCard", "/tasks/a/artifacts/b", "/acme/message:send", "/", "", "/nope"] {
            assert_eq!(resource_v0_3(path), None, "{path}");
        }
    }

    #[test]
    fn a_tenant_comes_first() {
        assert_eq!(resource("/acme/tasks"), Some((Resource::Tasks, "acme".to_owned())));
        assert_eq!(resource("/a%20b/message:send"), Some((Resource::SendMessage, "a b".to_owned())));
        assert_eq!(resource("/tasks/tasks"), task("tasks"));
        assert_eq!(resource("/a/b/tasks"), None);
        assert_eq!(resource("//tasks"), None);
        assert_eq!(resource("/tasks/"), None);
        assert_eq!(resource("/nope"), None);
    }
}
