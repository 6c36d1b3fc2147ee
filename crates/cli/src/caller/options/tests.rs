use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A home, and a folder deep below another one.
struct World {
    root: PathBuf,
    surroundings: Surroundings,
}

impl World {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("longhaul-options-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(name);
        let folder = root.join("project/deep/down");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(root.join("home/.config/a2a-cli")).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let home = Some(root.join("home"));
        Self { surroundings: Surroundings { variables: Default::default(), folder, home, state: None, user }, root }
    }

    fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn variable(&mut self, name: &str, value: &str) {
        self.surroundings.variables.insert(name.to_owned(), value.to_owned());
    }

    fn gather(&self, flags: &[(&'static str, &str)]) -> Result<Sources, Failure> {
        self.gather_with(flags, None)
    }

    fn gather_with(&self, flags: &[(&'static str, &str)], config: Option<&Path>) -> Result<Sources, Failure> {
        let values = flags.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect();
        Sources::gather(&Given { config: config.map(Path::to_owned), values }, &self.surroundings)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const GLOBAL: &str = "home/.config/a2a-cli/.env";

#[test]
fn the_highest_source_wins_and_is_remembered() {
    let mut world = World::new();
    let mut seen = Vec::new();
    let mut look = |world: &World, flags: &[(&'static str, &str)]| {
        let sources = world.gather(flags).unwrap();
        let (_, origin) = sources.of(Setting::PollInterval);
        seen.push((Options::resolve(&sources).unwrap().poll_interval.as_secs(), origin.to_string()));
    };
    look(&world, &[]);
    let global = world.file(GLOBAL, "A2ACLI_POLL_INTERVAL=3s\n");
    look(&world, &[]);
    let local = world.file("project/.env", "# of the project\nOTHER=x\nexport A2ACLI_POLL_INTERVAL=\"4s\"\n");
    look(&world, &[]);
    world.variable("A2ACLI_POLL_INTERVAL", "5s");
    look(&world, &[]);
    look(&world, &[("poll-interval", "6s")]);
    let wanted = [
        (2, "default".to_owned()),
        (3, format!("A2ACLI_POLL_INTERVAL in {}", global.display())),
        (4, format!("A2ACLI_POLL_INTERVAL in {}", local.display())),
        (5, "A2ACLI_POLL_INTERVAL".to_owned()),
        (6, "--poll-interval".to_owned()),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_named_file_stands_in_for_the_local_one() {
    let mut world = World::new();
    world.file("project/.env", "A2ACLI_AGENT_CARD=http://local\nA2ACLI_TIMEOUT=9s\n");
    let named = world.file("agent.env", "A2ACLI_AGENT_CARD=http://named\n");
    for flag in [true, false] {
        let config = flag.then_some(named.as_path());
        if !flag {
            world.variable("A2ACLI_CONFIG", named.to_str().unwrap());
        }
        let options = Options::resolve(&world.gather_with(&[], config).unwrap()).unwrap();
        assert_eq!((options.agent().unwrap(), options.timeout), ("http://named", None));
    }
    let failure = world.gather_with(&[], Some(Path::new("/nowhere"))).unwrap_err();
    assert_eq!(failure.exit.code(), 2);
}

#[test]
fn a_wrong_value_names_its_source() {
    let mut world = World::new();
    let path = world.file("project/.env", "A2ACLI_TIMEOUT=soon\n");
    let wrong = |world: &World, flags: &[(&'static str, &str)]| {
        let failure = Options::resolve(&world.gather(flags).unwrap()).unwrap_err();
        assert_eq!(failure.code, "A2ACLI_ERR_USAGE");
        failure.message
    };
    assert!(wrong(&world, &[]).starts_with(&format!("A2ACLI_TIMEOUT in {}: \"soon\" is not a time", path.display())));
    world.variable("A2ACLI_TIMEOUT", "later");
    assert!(wrong(&world, &[]).starts_with("A2ACLI_TIMEOUT: \"later\""));
    assert!(wrong(&world, &[("timeout", "never")]).starts_with("--timeout: \"never\""));
}

#[test]
fn waiting_can_be_turned_off_and_on_again() {
    let mut world = World::new();
    let waiting = |world: &World, flags: &[(&'static str, &str)]| {
        SendOptions::resolve(&world.gather(flags)?).map(|options| options.waiting)
    };
    assert_eq!(waiting(&world, &[]), Ok(Waiting::UntilRest));
    world.variable("A2ACLI_ASYNC", "true");
    assert_eq!(waiting(&world, &[]), Ok(Waiting::No));
    assert_eq!(waiting(&world, &[("wait", "true")]), Ok(Waiting::UntilRest));
    assert_eq!(waiting(&world, &[("async", "false")]), Ok(Waiting::UntilRest));
    world.variable("A2ACLI_WAIT", "true");
    assert_eq!(waiting(&world, &[]).unwrap_err().message, "A2ACLI_ASYNC and A2ACLI_WAIT exclude each other");
}

#[test]
fn a_stream_is_only_ever_asked_for_by_its_flag() {
    let mut world = World::new();
    world.variable("A2ACLI_STREAM", "true");
    let sources = world.gather(&[]).unwrap();
    assert_eq!(sources.warnings, ["A2ACLI_STREAM is no setting"]);
    assert!(!show(&sources, OutputForm::Text).contains("stream"));
}

#[test]
fn names_that_are_none_are_told() {
    let mut world = World::new();
    world.variable("A2ACLI_TIMEOT", "1s");
    let warnings = world.gather(&[]).unwrap().warnings;
    assert_eq!(warnings, ["A2ACLI_TIMEOT is no setting; A2ACLI_TIMEOUT is one"]);
}

#[test]
fn secrets_that_others_can_read_are_told() {
    let world = World::new();
    let path = world.file(GLOBAL, "A2ACLI_BEARER=s3cret\n");
    assert!(world.gather(&[]).unwrap().warnings.is_empty());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = world.gather(&[]).unwrap().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("chmod 600") && !warnings[0].contains("s3cret"),
        "{warnings:?}"
    );
}

#[test]
fn a_file_of_somebody_else_is_not_read() {
    let mut world = World::new();
    world.file("project/.env", "A2ACLI_AGENT_CARD=http://evil\n");
    // Whoever runs the tests owns the file: it is somebody else's for another user, unless it is root's.
    if world.surroundings.user == 0 {
        rustix::fs::chown(world.root.join("project/.env"), Some(rustix::fs::Uid::from_raw(12345)), None).unwrap();
    } else {
        world.surroundings.user += 1;
    }
    let sources = world.gather(&[]).unwrap();
    assert_eq!(sources.of(Setting::AgentCard).0, None);
    assert!(sources.warnings[0].contains("belongs to another user"), "{:?}", sources.warnings);
}

#[test]
fn a_broken_file_is_refused_without_showing_its_line() {
    let world = World::new();
    world.file("project/.env", "A=b\nA2ACLI_BEARER='s3cret\n");
    let failure = world.gather(&[]).unwrap_err();
    assert!(failure.exit.code() == 2 && !failure.message.contains("s3cret"), "{}", failure.message);
    world.file("project/.env", "not ours, and no such file {\n");
    assert!(world.gather(&[]).is_ok());
}

#[test]
fn what_is_shown_has_sources_and_no_secrets() {
    let mut world = World::new();
    world.variable("A2ACLI_API_KEY", "s3cret");
    let path = world.file("project/.env", "A2ACLI_SVC_PARAM=x-trace:s3cret\nA2ACLI_TRANSPORT=grpc\n");
    let sources = world.gather(&[("bearer", "s3cret"), ("agent-card", "http://a")]).unwrap();
    let text = show(&sources, OutputForm::Text);
    let json = show(&sources, OutputForm::Json);
    assert!(!text.contains("s3cret") && !json.contains("s3cret"), "{text}{json}");
    assert!(!format!("{:?}", Options::resolve(&sources).unwrap()).contains("s3cret"));
    for line in [
        "agent-card: http://a (--agent-card)".to_owned(),
        format!("transport: grpc (A2ACLI_TRANSPORT in {})", path.display()),
        "bearer: (hidden) (--bearer)".to_owned(),
        "api-key: (hidden) (A2ACLI_API_KEY)".to_owned(),
        format!("svc-param: x-trace:(hidden) (A2ACLI_SVC_PARAM in {})", path.display()),
        "timeout: none (default)".to_owned(),
        "task-id: - (not set)".to_owned(),
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let settings = json["settings"].as_array().unwrap();
    assert_eq!(settings.len(), Setting::ALL.len());
    assert_eq!(settings[0]["source"], "flag");
    assert_eq!(settings[1]["path"], path.to_str().unwrap());
}

#[test]
fn a_hint_carries_what_only_this_command_line_says() {
    let mut world = World::new();
    let sources = world.gather(&[("agent-card", "http://a"), ("bearer", "s3cret")]).unwrap();
    assert_eq!(sources.carried(), [("--agent-card", "http://a".to_owned())]);
    world.variable("A2ACLI_AGENT_CARD", "http://a");
    assert_eq!(world.gather(&[]).unwrap().carried(), []);
}

#[test]
fn a_default_that_is_shown_is_the_one_that_holds() {
    let world = World::new();
    let options = Options::resolve(&world.gather(&[]).unwrap()).unwrap();
    assert_eq!(value::poll_interval(Setting::PollInterval.default_words()), Ok(options.poll_interval));
    assert_eq!(value::timeout(Setting::Timeout.default_words()), Ok(options.timeout));
    assert_eq!(value::output(Setting::Output.default_words()), Ok(options.output));
    assert_eq!((options.verification, options.detail), (Verification::Full, Detail::Concise));
    assert_eq!(options.agent().unwrap_err().exit.code(), 2);
}

#[test]
fn a_certificate_needs_its_key() {
    let world = World::new();
    let resolve = |flags: &[(&'static str, &str)]| Options::resolve(&world.gather(flags).unwrap());
    assert_eq!(resolve(&[("client-cert", "c.pem")]).unwrap_err().exit.code(), 2);
    assert_eq!(resolve(&[("client-key", "k.pem")]).unwrap_err().exit.code(), 2);
    let identity = resolve(&[("client-cert", "c.pem"), ("client-key", "k.pem")]).unwrap().identity.unwrap();
    assert_eq!((identity.certificates, identity.key), ("c.pem".into(), "k.pem".into()));
}

#[test]
fn a_file_without_end_is_refused() {
    let world = World::new();
    // It says of itself that it is empty.
    let failure = world.gather_with(&[], Some(Path::new("/dev/zero"))).unwrap_err();
    assert!(failure.exit.code() == 2 && failure.message.contains("larger than 1048576 bytes"), "{}", failure.message);
    let line = "A2ACLI_TIMEOUT=9s\n";
    let full = format!("{line}{}", "#".repeat(1024 * 1024 - line.len()));
    world.file("project/.env", &full);
    assert!(world.gather(&[]).is_ok());
    world.file("project/.env", &(full + "#"));
    assert!(world.gather(&[]).unwrap_err().message.contains("larger than"));
}

#[test]
fn a_client_secret_is_a_secret_that_is_sent() {
    let world = World::new();
    let holds =
        |flags: &[(&'static str, &str)]| Options::resolve(&world.gather(flags).unwrap()).unwrap().holds_secrets();
    assert!(!holds(&[]) && !holds(&[("client-id", "me")]));
    for flag in [("bearer", "b"), ("api-key", "k"), ("client-secret", "s"), ("svc-param", "x-key:v")] {
        assert!(holds(&[flag]), "{flag:?}");
    }
}
