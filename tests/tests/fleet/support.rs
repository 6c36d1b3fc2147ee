//! What these tests ask again and again.

use std::time::Duration;

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::server::readiness;
use longhaul_tests::steps::{client, lines};
use longhaul_tests::task::say;
use longhaul_tests::{Binding, Call, CallError, Client, Fleet, Operation, Server, until};
use tokio::time::Instant;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What an instance leaves behind goes on soon, however often it is left behind.
pub const SHORT_LEASES: &str = "\
[agent]
lease_duration = \"1s\"
attempts_max = 100
backoff_min = \"50ms\"
backoff_max = \"200ms\"
";

/// A database that does not answer is given up soon.
pub const SHORT_STATEMENTS: &str = "\
[store.postgres]
connect_timeout = \"1s\"
statement_timeout = \"1s\"
";

/// The command of an agent has written a line with this in it to the file `attempts`: the number of its instance, and the
/// line.
pub async fn runs(servers: &[Server], word: &str) -> (usize, String) {
    until(PATIENCE, &format!("the command of {word:?} runs"), async || {
        servers.iter().enumerate().find_map(|(number, server)| {
            let lines = lines(&server.folder().join("attempts"));
            let line = lines.into_iter().find(|line| line.split(' ').any(|part| part == word));
            line.map(|line| (number, line))
        })
    })
    .await
}

/// Waits until each instance says so of itself, and answers how long that took.
pub async fn all_say(servers: &[Server], status: u16) -> Duration {
    let begun = Instant::now();
    for server in servers {
        let what = format!("/readyz says {status}");
        until(PATIENCE, &what, async || (readiness(server.addr()).await == Some(status)).then_some(())).await;
    }
    begun.elapsed()
}

/// A send is refused for now through each binding, and says when to come again.
pub async fn refused_for_now(server: &Server) {
    let addr = server.addr();
    let through = async |binding| {
        let call = Call::new(Operation::SendMessage, say("echo"));
        let refusal = Client::new(binding, addr).refused(&call, "UNAVAILABLE").await;
        let details = format!("{:?}", refusal.details);
        assert!(details.contains("retryDelay"), "{binding:?} does not say when to come again: {refusal:?}");
    };
    let with_header = async {
        let mut connection = Connection::open(addr).await.unwrap();
        let request = Request::new("POST", "/message:send").v1().json(&say("echo"));
        let answer = connection.exchange(&request).await.unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
        assert!(seconds.is_some(), "{answer:?}");
    };
    let begun = Instant::now();
    let [one, two, three] = Binding::ALL.map(through);
    tokio::join!(one, two, three, with_header);
    assert!(begun.elapsed() < Duration::from_secs(10), "refused after {:?}", begun.elapsed());
}

/// Waits until a send is accepted, which is refused at first, and answers how long that took.
pub async fn accepts_again(fleet: &Fleet) -> Duration {
    let begun = Instant::now();
    for server in fleet.servers() {
        until(PATIENCE, "a send is accepted", async || {
            match client(server.addr()).call(&Call::new(Operation::SendMessage, say("echo"))).await {
                Ok(_) => Some(()),
                Err(CallError::Refused(refusal)) if refusal.reason == "UNAVAILABLE" => None,
                Err(error) => panic!("{error:?}"),
            }
        })
        .await;
    }
    begun.elapsed()
}
