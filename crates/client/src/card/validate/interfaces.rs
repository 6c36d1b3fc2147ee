//! Interfaces (A2A §4.4.6, §8.3.1).

use std::collections::HashSet;

use longhaul_protocol::wire::AgentCard;

use crate::card::binding::Binding;
use crate::card::choose::declared_version;
use crate::card::endpoint::{Endpoint, is_loopback};
use crate::card::origin::{CardOrigin, as_sentence};
use crate::card::shown;

use super::Findings;
use super::names::{InterfacePaths, Names};

pub(super) fn check(card: &AgentCard, names: &Names, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (index, interface) in card.supported_interfaces.iter().enumerate() {
        let paths = names.interface(index);
        let binding = check_binding(&interface.protocol_binding, &paths, findings);
        // In v0.3 there is one version for all of them.
        if !names.is_v0_3 || index == 0 {
            check_version(&interface.protocol_version, names, &paths, findings);
        }
        check_endpoint(&interface.url, binding, &paths, findings);
        // v0.3 wants the interface at `url` to be listed again.
        let facts = (&interface.url, &interface.protocol_binding, &interface.tenant, &interface.protocol_version);
        if !seen.insert(facts) && !names.is_v0_3 {
            findings.remark(paths.url, "repeats an interface before it");
        }
    }
}

fn check_binding(declared: &str, paths: &InterfacePaths, findings: &mut Findings) -> Option<Binding> {
    let binding = declared.parse::<Binding>().ok();
    match binding {
        // That it is missing is told with the required members.
        None if declared.is_empty() => {}
        None => {
            let known = Binding::ALL.map(Binding::wire_name).join(", ");
            findings.remark(&*paths.binding, format!("is {}, none of {known}", shown(declared)));
        }
        Some(binding) if binding.wire_name() != declared => {
            findings.error(&*paths.binding, format!("must be written {binding}, not {}", shown(declared)));
        }
        Some(_) => {}
    }
    binding
}

fn check_version(declared: &str, names: &Names, paths: &InterfacePaths, findings: &mut Findings) {
    if declared.is_empty() {
        return;
    }
    if declared_version(declared).is_none() {
        findings.error(&*paths.version, format!("must be a version such as 1.0, not {}", shown(declared)));
    } else if declared.split('.').count() != 2 && !names.is_v0_3 {
        findings.remark(&*paths.version, format!("should be major and minor only, is {}", shown(declared)));
    }
}

fn check_endpoint(declared: &str, binding: Option<Binding>, paths: &InterfacePaths, findings: &mut Findings) {
    if declared.is_empty() {
        return;
    }
    let endpoint = match binding {
        Some(Binding::Grpc) => Endpoint::grpc(declared, &CardOrigin::caller()),
        Some(Binding::JsonRpc | Binding::HttpJson) => Endpoint::http(declared),
        // What a URL of a binding of someone else's looks like is theirs to say.
        None => return,
    };
    let target = match endpoint {
        Ok(endpoint) => endpoint.target,
        Err(problem) => return findings.error(&*paths.url, as_sentence(&problem)),
    };
    if !target.is_tls() && !is_loopback(&target) {
        findings.remark(&*paths.url, "is without TLS, which it should have in production");
    }
    let path_and_query = target.path_and_query();
    if binding == Some(Binding::Grpc) && path_and_query.as_str() != "/" {
        findings.remark(&*paths.url, "has a path, which gRPC does not use");
    }
    if binding == Some(Binding::HttpJson) && path_and_query.query().is_some() {
        findings.error(&*paths.url, "has a query, so that no path can follow it");
    }
}
