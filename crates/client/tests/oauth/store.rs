//! The file of tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use longhaul_client::oauth::{StoreError, StoredToken, TokenStore};
use tokio::task::JoinSet;

use super::support::*;

/// Tells a child where the file is, and its number.
const FILE: &str = "LONGHAUL_OAUTH_FILE";
const NUMBER: &str = "LONGHAUL_OAUTH_NUMBER";
/// How many logins each child makes.
const LOGINS: usize = 20;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A login for an agent at this path.
async fn login_for(path: &str, asked: &str) -> StoredToken {
    let server = Server::new(|_, _| token("s3cret-access", 3600, Some("s3cret-refresh"))).await;
    let mut card = client_credentials_card(&server);
    let text = serde_json::to_vec(card.document.members()).unwrap();
    let url = format!("http://127.0.0.1:1{path}");
    card.document = std::sync::Arc::new(longhaul_client::card::CardDocument::parse(&text, &url).unwrap());
    let mut token = login(&authorizer(&ManualClock::new()), &card, asked).await;
    // Which server it was is not what these tests are about.
    token.key.token_url = "https://login.example/token".to_owned();
    token
}

#[tokio::test]
async fn logins_are_kept_and_read_as_they_were() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(store.tokens().await.unwrap(), []);
    let (one, two) = (login_for("/1", "a").await, login_for("/2", "b a").await);
    store.put(one.clone()).await.unwrap();
    store.put(two.clone()).await.unwrap();
    assert_eq!(store.tokens().await.unwrap(), [one.clone(), two.clone()]);
    // The same again takes its place; another scope is another login.
    let mut newer = one.clone();
    newer.access_token = longhaul_client::Secret::new("newer");
    let other = login_for("/1", "a c").await;
    store.put(newer.clone()).await.unwrap();
    store.put(other.clone()).await.unwrap();
    assert_eq!(TokenStore::new(store.path()).tokens().await.unwrap(), [two, newer, other]);
}

#[tokio::test]
async fn only_its_owner_can_read_the_file_and_its_folder() {
    let folder = Folder::new();
    let store = folder.store();
    store.put(login_for("/1", "a").await).await.unwrap();
    store.put(login_for("/2", "a").await).await.unwrap();
    let inside = store.path().parent().unwrap();
    assert_eq!((mode(inside), mode(store.path())), (0o700, 0o600));
    let names: Vec<_> = fs::read_dir(inside).unwrap().map(|entry| entry.unwrap()).collect();
    for entry in &names {
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
    }
    assert_eq!(names.len(), 2, "the file and its lock");
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let store = folder.store();
    store.put(login_for("/1", "a").await).await.unwrap();
    for bits in [0o640, 0o604, 0o620] {
        set_mode(store.path(), bits);
        let before = fs::read(store.path()).unwrap();
        let error = store.tokens().await.unwrap_err();
        assert!(matches!(error, StoreError::Open { is_folder: false, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("chmod 600 {}", store.path().display())), "{text}");
        assert!(store.put(login_for("/2", "a").await).await.is_err());
        assert!(store.remove_all().await.is_err());
        assert_eq!(fs::read(store.path()).unwrap(), before);
    }
    set_mode(store.path(), 0o600);
    set_mode(store.path().parent().unwrap(), 0o703);
    let error = store.tokens().await.unwrap_err();
    assert!(matches!(error, StoreError::Open { is_folder: true, .. }), "{error}");
    set_mode(store.path().parent().unwrap(), 0o755);
    assert_eq!(store.tokens().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_is_not_understood_is_named_and_left_alone() {
    let folder = Folder::new();
    let store = folder.store();
    let login = login_for("/1", "a").await;
    store.put(login.clone()).await.unwrap();
    let good = fs::read_to_string(store.path()).unwrap();
    for text in [
        String::new(),
        "[]".to_owned(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"version\": 1", "\"version\": 2"),
        good.replace("\"expires_at\": ", "\"expires_at\": \"s3cret-access\", \"x\": "),
        good.replace("client-credentials", "s3cret-grant"),
        good.replace("http://127.0.0.1:1/1", "s3cret-agent"),
        good.replace("\"scopes\": [", "\"scopes\": [\"s3cret scope\","),
        good.replace("\"scheme\"", "\"schema\""),
    ] {
        assert_ne!(text, good);
        fs::write(store.path(), &text).unwrap();
        let error = store.tokens().await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        let said = format!("{error} {error:?}");
        assert!(said.contains("tokens.json") && !said.contains("s3cret"), "{said}");
        assert!(store.put(login.clone()).await.is_err());
        assert!(store.remove_all().await.is_err());
        assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
    }
}

#[tokio::test]
async fn a_logout_removes_the_logins_of_one_agent_alone() {
    let folder = Folder::new();
    let store = folder.store();
    let (one, two) = (login_for("/1", "a").await, login_for("/2", "a").await);
    for login in [&one, &login_for("/1", "b").await, &two] {
        store.put(login.clone()).await.unwrap();
    }
    assert_eq!(store.remove(&one.key.agent).await.unwrap().len(), 2);
    assert_eq!(store.tokens().await.unwrap(), [two]);
    assert!(store.remove(&one.key.agent).await.unwrap().is_empty());
    assert_eq!(store.remove_all().await.unwrap().len(), 1);
    assert!(!fs::read_to_string(store.path()).unwrap().contains("s3cret"));
}

#[tokio::test]
async fn a_write_that_was_cut_off_leaves_the_file_and_the_next_write_in_peace() {
    let folder = Folder::new();
    let store = folder.store();
    let login = login_for("/1", "a").await;
    store.put(login.clone()).await.unwrap();
    let left = store.path().with_extension("json.new");
    fs::write(&left, "{\"vers").unwrap();
    set_mode(&left, 0o666);
    assert_eq!(store.tokens().await.unwrap(), [login]);
    store.put(login_for("/2", "a").await).await.unwrap();
    assert_eq!((store.tokens().await.unwrap().len(), left.exists(), mode(store.path())), (2, false, 0o600));
}

#[tokio::test]
async fn logins_print_no_token() {
    let login = login_for("/1", "a").await;
    assert!(!format!("{login:?}").contains("s3cret"));
}

#[tokio::test]
#[ignore = "the child of the test below, which starts it"]
async fn logs_in_many_times() {
    let store = TokenStore::new(std::env::var_os(FILE).unwrap());
    let number = std::env::var(NUMBER).unwrap();
    let login = login_for("/x", "a").await;
    let mut writers = JoinSet::new();
    for time in 0..LOGINS {
        let (store, mut login) = (store.clone(), login.clone());
        login.key.client_id = format!("{number}-{time}");
        writers.spawn(async move { store.put(login).await.unwrap() });
    }
    writers.join_all().await;
}

#[tokio::test]
async fn processes_that_log_in_at_once_lose_no_login() {
    let folder = Folder::new();
    let store = folder.store();
    let child = |number: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "store::logs_in_many_times"])
            .env(FILE, store.path())
            .env(NUMBER, number.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..3).map(child).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(store.tokens().await.unwrap().len(), 3 * LOGINS);
}
