//! The directions of dependencies between our packages, and what none of them may ever reach.

use super::graph::Graph;

/// What one package may use.
#[derive(Debug)]
struct Rule {
    package: &'static str,
    /// Of ours, directly.
    may_use: &'static [&'static str],
    /// Not even through another package. A name that ends in `*` stands for all that begin so.
    never: &'static [&'static [&'static str]],
}

const TOKIO: &[&str] = &["tokio", "tokio-*"];
const AXUM: &[&str] = &["axum", "axum-*"];
const TONIC: &[&str] = &["tonic", "tonic-*"];
const PROST: &[&str] = &["prost", "prost-*"];
const REQWEST: &[&str] = &["reqwest", "reqwest-*"];
const DATABASES: &[&str] = &[
    "rusqlite",
    "libsqlite3-sys",
    "sqlx",
    "sqlx-*",
    "tokio-postgres",
    "postgres",
    "postgres-*",
    "redb",
    "fjall",
    "heed",
    "diesel",
];

/// Clocks and random sources. The time crate is not among them: `protocol` reads and writes times
/// with it; that `lifecycle` asks it for no time is checked in the sources.
const CLOCKS_AND_RANDOM: &[&str] =
    &["rand", "rand_core", "getrandom", "fastrand", "oorandom", "chrono", "jiff", "quanta", "coarsetime", "uuid"];

const STORES: &[&str] = &["longhaul-store-*"];

/// The table of style section 1.
const RULES: &[Rule] = &[
    Rule { package: "longhaul-protocol", may_use: &[], never: &[TOKIO, AXUM, TONIC, PROST, DATABASES] },
    Rule {
        package: "longhaul-lifecycle",
        may_use: &["longhaul-protocol"],
        never: &[TOKIO, AXUM, TONIC, PROST, DATABASES, CLOCKS_AND_RANDOM],
    },
    Rule { package: "longhaul-protobuf", may_use: &["longhaul-protocol"], never: &[AXUM, REQWEST, DATABASES] },
    Rule {
        package: "longhaul-store",
        may_use: &["longhaul-protocol", "longhaul-lifecycle"],
        never: &[AXUM, TONIC, DATABASES],
    },
    Rule { package: "longhaul-store-sqlite", may_use: STORE_AND_ITS_OWN, never: &[&["longhaul-engine"], AXUM, TONIC] },
    Rule {
        package: "longhaul-store-postgres",
        may_use: STORE_AND_ITS_OWN,
        never: &[&["longhaul-engine"], AXUM, TONIC],
    },
    Rule {
        package: "longhaul-engine",
        may_use: &["longhaul-protocol", "longhaul-lifecycle", "longhaul-store"],
        never: &[AXUM, TONIC, REQWEST, DATABASES],
    },
    // It knows requests, addresses and secrets, and nothing of tasks: whoever decides uses it.
    Rule { package: "longhaul-push", may_use: &["longhaul-protocol"], never: &[AXUM, TONIC, REQWEST, DATABASES] },
    Rule {
        package: "longhaul-server",
        may_use: &["longhaul-engine", "longhaul-protobuf", "longhaul-protocol"],
        never: &[STORES, DATABASES],
    },
    Rule {
        package: "longhaul-client",
        // Of `longhaul-push` only how deliveries are signed.
        may_use: &["longhaul-protobuf", "longhaul-protocol", "longhaul-push"],
        never: &[&["longhaul-engine", "longhaul-store", "longhaul-server"], STORES],
    },
    // A tool of tests too, but bound: whatever it used of ours would be tested with itself.
    Rule { package: "longhaul-pgtest", may_use: &[], never: &[AXUM, TONIC, PROST, REQWEST] },
    Rule {
        package: "longhaul",
        may_use: &[
            "longhaul-protocol",
            "longhaul-lifecycle",
            "longhaul-protobuf",
            "longhaul-store",
            "longhaul-store-sqlite",
            "longhaul-store-postgres",
            "longhaul-engine",
            "longhaul-push",
            "longhaul-server",
            "longhaul-client",
        ],
        never: &[&["longhaul-testkit"]],
    },
];

const STORE_AND_ITS_OWN: &[&str] = &["longhaul-store", "longhaul-protocol", "longhaul-lifecycle"];

/// Packages of tests and tools, which no rule binds and none of the others may use.
const TOOLS: &[&str] = &[
    "longhaul-testkit",
    "longhaul-tests",
    "longhaul-model-tests",
    "longhaul-simulation",
    "longhaul-bench",
    "longhaul-codegen",
    "xtask",
];

/// Every edge and path that a rule forbids, as a sentence.
pub fn check(graph: &Graph) -> Vec<String> {
    let mut breaches = Vec::new();
    for member in &graph.members {
        if TOOLS.contains(&member.as_str()) {
            continue;
        }
        let Some(rule) = RULES.iter().find(|rule| rule.package == member) else {
            breaches.push(format!("{member} has no rule: add it to the table in xtask/src/check/directions.rs"));
            continue;
        };
        for used in graph.direct(member) {
            if graph.members.contains(used) && !rule.may_use.contains(&used) {
                breaches.push(format!("{member} may not use {used}"));
            }
        }
        for (used, through) in graph.reached(member) {
            if rule.never.iter().copied().flatten().any(|pattern| matches(pattern, &used)) {
                breaches.push(format!("{member} may never reach {used}, and does through {through}"));
            }
        }
    }
    breaches
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(members: &[&str], edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        graph.members.extend(members.iter().map(|member| (*member).to_owned()));
        for (user, used) in edges {
            graph.add(user, used);
        }
        graph
    }

    const ENGINE: &[&str] = &["longhaul-engine", "longhaul-store", "longhaul-protocol"];

    #[test]
    fn a_graph_that_keeps_the_rules_has_no_breach() {
        let edges = [
            ("longhaul-engine", "longhaul-store"),
            ("longhaul-store", "longhaul-protocol"),
            ("longhaul-engine", "tokio"),
        ];
        assert_eq!(check(&graph(ENGINE, &edges)), Vec::<String>::new());
    }

    #[test]
    fn an_edge_against_the_direction_is_found() {
        let edges = [("longhaul-store", "longhaul-engine")];
        assert_eq!(check(&graph(ENGINE, &edges)), ["longhaul-store may not use longhaul-engine"]);
    }

    #[test]
    fn a_banned_package_behind_another_is_found() {
        let edges = [("longhaul-engine", "harmless"), ("harmless", "rusqlite")];
        assert_eq!(
            check(&graph(ENGINE, &edges)),
            ["longhaul-engine may never reach rusqlite, and does through harmless"]
        );
    }

    #[test]
    fn a_star_bans_the_family_and_not_its_namesake() {
        let edges = [("longhaul-engine", "tonic-types"), ("longhaul-engine", "tonical")];
        assert_eq!(
            check(&graph(ENGINE, &edges)),
            ["longhaul-engine may never reach tonic-types, and does through longhaul-engine"]
        );
    }

    #[test]
    fn a_new_package_needs_a_rule() {
        assert_eq!(check(&graph(&["longhaul-new"], &[])).len(), 1);
    }

    #[test]
    fn no_package_of_ours_may_use_a_tool() {
        let members = ["longhaul-server", "longhaul-testkit"];
        let edges = [("longhaul-server", "longhaul-testkit")];
        assert_eq!(check(&graph(&members, &edges)), ["longhaul-server may not use longhaul-testkit"]);
    }
}
