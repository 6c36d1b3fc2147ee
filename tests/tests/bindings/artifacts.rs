//! Versions of artifacts (design section 9).

use longhaul_tests::Operation;
use longhaul_tests::task::{id_of, say};
use serde_json::json;

crate::scenarios! {
    async fn versions_of_an_artifact_are_listed_and_read(s) {
        let task = s.send(say("chunks 5"), "COMPLETED").await;
        let artifact = &task["artifacts"][0];
        let name = json!({"taskId": id_of(&task), "artifactId": artifact["artifactId"]});
        let page = s.ask(Operation::ListArtifactVersions, name.clone()).await;
        assert_eq!(page["versions"].as_array().map(Vec::len), Some(1));
        assert_eq!(page["versions"][0]["version"], 1);
        assert_eq!(page["nextPageToken"], "");
        let newest = s.ask(Operation::GetArtifact, name.clone()).await;
        assert_eq!(newest, json!({"version": 1, "artifact": artifact}));
        let mut first = name;
        first["version"] = json!(1);
        assert_eq!(s.ask(Operation::GetArtifact, first).await, newest);
    }

    async fn unknown_artifact_or_version_is_not_found(s) {
        let task = s.send(say("echo"), "COMPLETED").await;
        let id = id_of(&task);
        let artifact_id = &task["artifacts"][0]["artifactId"];
        for (task_id, artifact_id) in [(json!(id), json!("nope")), (json!("nope"), artifact_id.clone())] {
            let params = json!({"taskId": task_id, "artifactId": artifact_id});
            s.refused(Operation::GetArtifact, params.clone(), "TASK_NOT_FOUND").await;
            s.refused(Operation::ListArtifactVersions, params, "TASK_NOT_FOUND").await;
        }
        let params = json!({"taskId": id, "artifactId": artifact_id, "version": 2});
        s.refused(Operation::GetArtifact, params, "TASK_NOT_FOUND").await;
    }

    async fn versions_keep_the_field_rules(s) {
        let task = s.send(say("echo"), "COMPLETED").await;
        let name = json!({"taskId": id_of(&task), "artifactId": task["artifacts"][0]["artifactId"]});
        let mut params = name.clone();
        params["version"] = json!(0);
        let refusal = s.refused(Operation::GetArtifact, params, "INVALID_PARAMS").await;
        assert_eq!(refusal.fields(), ["version"]);
        for size in [0, 101] {
            let mut params = name.clone();
            params["pageSize"] = json!(size);
            let refusal = s.refused(Operation::ListArtifactVersions, params, "INVALID_PARAMS").await;
            assert_eq!(refusal.fields(), ["pageSize"]);
        }
        let mut params = name;
        params["pageToken"] = json!("nonsense");
        let refusal = s.refused(Operation::ListArtifactVersions, params, "INVALID_PARAMS").await;
        assert_eq!(refusal.fields(), ["pageToken"]);
    }
}
