use async_trait::async_trait;

use super::*;
use crate::Client;

/// Nobody is connected to.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Connector for Nobody {
    async fn connect(&self, _: &Route) -> Result<Client, ClientError> {
        Err(nobody())
    }
}

fn nobody() -> ClientError {
    ClientError::Forbidden { what: "nobody is to be asked".to_owned() }
}

#[tokio::test]
async fn a_ledger_that_is_locked_for_long_ends_no_recovery_and_loses_no_entry() {
    let folder = std::env::temp_dir().join(format!("longhaul-recover-{}", std::process::id()));
    let ledger = Ledger::open(folder.join("ledger.db")).await.unwrap();
    let (findings, mut found) = mpsc::channel(8);
    let stop = CancellationToken::new();
    let mut run = Run::new(ledger.clone(), Arc::new(Nobody), RecoverOptions::default(), findings, stop);
    let id = EntryId::new(now());
    run.known.insert(id);
    let busy = LedgerError::Busy { after: Duration::from_secs(5) };
    run.given_up(id, Arc::new(nobody()), Err(busy)).await.unwrap();
    assert!(!run.known.contains(&id), "a scan would pass it over");
    assert!(!run.is_over(), "there would be no further scan");
    assert!(found.try_recv().is_err());
    // What is not there is an error.
    let error = run.unreachable(id, Arc::new(nobody())).await.unwrap_err();
    assert!(matches!(error, LedgerError::NotFound { .. }), "{error:?}");
    ledger.close().await.unwrap();
    let _ = std::fs::remove_dir_all(&folder);
}
