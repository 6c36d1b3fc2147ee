//! `[push]`: whether and how push notifications are sent.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use longhaul_push::guard::Allow;
use longhaul_push::schedule::Schedule;
use longhaul_push::seal::Keys;
use longhaul_push::sign::SigningSecret;
use longhaul_push::{Secret, SenderConfig};

use super::layer::Said;
use super::section::Section;
use super::{ConfigError, duration};

/// How many secrets may sign at once.
const SIGNING_MAX: usize = 4;
/// A file of secrets is a few lines; more than this is another file.
const SIGNING_FILE_BYTES_MAX: u64 = 16 * 1024;

/// Whether and how push notifications are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PushSettings {
    /// Whether they are sent where there is a key.
    pub enabled: bool,
    /// Hosts and networks that may be inside.
    pub allow: Vec<Allow>,
    /// Whether `http` is taken as well as `https`.
    pub allow_http: bool,
    /// The keys that seal the secrets of configs; `None`: one is made where that can be done.
    pub key: Option<Kept>,
    /// The secrets that sign requests; `None`: they are not signed.
    pub signing_secret: Option<Kept>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// From the first attempt at an event to the last.
    pub give_up_after: Duration,
    /// How long to wait between two attempts at least.
    pub delay_min: Duration,
    /// How long to wait between two attempts at the most, unless the receiver asks for more.
    pub delay_max: Duration,
    /// How many configs a task may have.
    pub configs_max: usize,
    /// How many requests are under way at once.
    pub in_flight_max: usize,
    /// How many of them go to one host.
    pub host_max: usize,
    /// How much of an answer's body is read, and thrown away, in bytes.
    pub answer_bytes_max: usize,
    /// A PEM file of authorities that are trusted besides the system's.
    pub roots_file: Option<PathBuf>,
}

impl Default for PushSettings {
    fn default() -> Self {
        let (engine, sender) = (longhaul_engine::Config::default(), SenderConfig::default());
        let schedule = Schedule::default();
        Self {
            enabled: true,
            allow: Vec::new(),
            allow_http: false,
            key: None,
            signing_secret: None,
            timeout: sender.timeout,
            give_up_after: schedule.window,
            delay_min: schedule.delay_min,
            delay_max: schedule.delay_max,
            configs_max: engine.push_configs_max,
            in_flight_max: engine.push_in_flight_max,
            host_max: engine.push_host_max,
            answer_bytes_max: sender.body_bytes_max,
            roots_file: None,
        }
    }
}

/// Where a secret is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kept {
    /// In a file.
    File(PathBuf),
    /// In a variable, one after the other with a comma between them.
    Variable(Secret),
}

/// What the environment and the flags say of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushLayer {
    enabled: Option<Said>,
    allow: Option<Said>,
    allow_http: Option<Said>,
    key: Option<Said>,
    key_file: Option<Said>,
    signing_secret: Option<Said>,
    signing_secret_file: Option<Said>,
}

impl PushLayer {
    /// The layer of a place. What has no flag is named by its variable alone.
    pub fn of(said: impl Fn(&'static str, &'static str) -> Option<Said>) -> Self {
        Self {
            enabled: said("", "LONGHAUL_PUSH_ENABLED"),
            allow: said("--push-allow", "LONGHAUL_PUSH_ALLOW"),
            allow_http: said("--push-allow-http", "LONGHAUL_PUSH_ALLOW_HTTP"),
            key: said("", "LONGHAUL_PUSH_KEY"),
            key_file: said("", "LONGHAUL_PUSH_KEY_FILE"),
            signing_secret: said("", "LONGHAUL_PUSH_SIGNING_SECRET"),
            signing_secret_file: said("", "LONGHAUL_PUSH_SIGNING_SECRET_FILE"),
        }
    }

    /// Puts it on the settings.
    pub fn apply(&self, push: &mut PushSettings) -> Result<(), ConfigError> {
        const FLAG: [(&str, bool); 2] = [("true", true), ("false", false)];
        if let Some(said) = &self.enabled {
            push.enabled = said.choice(&FLAG)?;
        }
        if let Some(said) = &self.allow {
            let entries = said.value().split(',').map(str::trim).filter(|entry| !entry.is_empty());
            push.allow = entries.map(|entry| allow(said.place(), entry)).collect::<Result<_, _>>()?;
        }
        if let Some(said) = &self.allow_http {
            push.allow_http = said.choice(&FLAG)?;
        }
        if let Some(kept) = kept(self.key.as_ref(), self.key_file.as_ref())? {
            if matches!(kept, Kept::Variable(_)) {
                kept.keys()?;
            }
            push.key = Some(kept);
        }
        if let Some(kept) = kept(self.signing_secret.as_ref(), self.signing_secret_file.as_ref())? {
            if matches!(kept, Kept::Variable(_)) {
                kept.signing_secrets()?;
            }
            push.signing_secret = Some(kept);
        }
        Ok(())
    }
}

/// A secret or the file that it is in. It is never repeated.
fn kept(text: Option<&Said>, file: Option<&Said>) -> Result<Option<Kept>, ConfigError> {
    match (text, file) {
        (Some(text), Some(file)) => {
            let message = format!("is set although {} is", text.place());
            Err(ConfigError::new(file.place(), message, "leave one of them out"))
        }
        (Some(text), None) => Ok(Some(Kept::Variable(Secret::new(text.value())))),
        (None, Some(file)) => Ok(Some(Kept::File(file.value().into()))),
        (None, None) => Ok(None),
    }
}

impl PushSettings {
    /// Puts what the file says on them.
    pub fn apply(&mut self, mut section: Section<'_>) -> Result<(), ConfigError> {
        let (millis, second) = (Duration::from_millis, Duration::from_secs(1));
        let (hour, day) = (second * 3600, second * 86_400);
        section.set_flag("enabled", &mut self.enabled)?;
        if let Some(entries) = section.list("allow")? {
            let place = section.place("allow");
            self.allow = entries.iter().map(|entry| allow(&place, entry)).collect::<Result<_, _>>()?;
        }
        section.set_flag("allow_http", &mut self.allow_http)?;
        if let Some(file) = section.checked("key_file", a_file)? {
            self.key = Some(Kept::File(file.into()));
        }
        if let Some(file) = section.checked("signing_secret_file", a_file)? {
            self.signing_secret = Some(Kept::File(file.into()));
        }
        section.set_duration("timeout", &mut self.timeout, millis(100)..=second * 120)?;
        section.set_duration("give_up_after", &mut self.give_up_after, second..=day * 30)?;
        section.set_duration("delay_min", &mut self.delay_min, millis(10)..=hour)?;
        section.set_duration("delay_max", &mut self.delay_max, millis(10)..=day)?;
        if self.delay_min > self.delay_max {
            let (min, max) = (duration::format(self.delay_min), duration::format(self.delay_max));
            let message = format_args!("is {min}, which is more than push.delay_max, {max}");
            return Err(section.error("delay_min", message, "lower delay_min, or raise delay_max"));
        }
        section.set_number("configs_max", &mut self.configs_max, 1..=1000)?;
        section.set_number("in_flight_max", &mut self.in_flight_max, 1..=100_000)?;
        section.set_number("host_max", &mut self.host_max, 1..=10_000)?;
        section.set_number("answer_bytes_max", &mut self.answer_bytes_max, 0..=16 * 1024 * 1024)?;
        if let Some(file) = section.checked("roots_file", a_file)? {
            self.roots_file = Some(file.into());
        }
        section.finish()
    }
}

impl Kept {
    /// Reads the keys that seal, the current one first.
    pub fn keys(&self) -> Result<Keys, ConfigError> {
        const HINT: &str = "write 32 bytes in base64, such as head -c 32 /dev/urandom | base64 makes";
        match self {
            Self::File(path) => Keys::read(path).map_err(|error| {
                let told = told(&error);
                ConfigError::new("push.key_file", told, "name a file of one key a line that its owner alone may read")
            }),
            Self::Variable(text) => text.reveal().replace(',', "\n").parse().map_err(|_| {
                let message = "holds what is no key: it must be 32 bytes in base64 or hex, the current key first";
                ConfigError::new("LONGHAUL_PUSH_KEY", message, HINT)
            }),
        }
    }

    /// Reads the secrets that sign.
    pub fn signing_secrets(&self) -> Result<Vec<SigningSecret>, ConfigError> {
        let (place, text) = match self {
            Self::File(path) => ("push.signing_secret_file", read_secrets(path)?),
            Self::Variable(text) => ("LONGHAUL_PUSH_SIGNING_SECRET", text.clone()),
        };
        let lines = text.reveal().lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let secrets: Result<Vec<SigningSecret>, _> = words.map(SigningSecret::from_str).collect();
        match secrets {
            Ok(secrets) if (1..=SIGNING_MAX).contains(&secrets.len()) => Ok(secrets),
            _ => {
                let message = format!(
                    "holds what is no signing secret, or not 1 to {SIGNING_MAX} of them: each is whsec_ and 24 to 64 bytes in base64"
                );
                Err(ConfigError::new(place, message, "make one: echo whsec_$(head -c 32 /dev/urandom | base64)"))
            }
        }
    }
}

fn read_secrets(path: &Path) -> Result<Secret, ConfigError> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(SIGNING_FILE_BYTES_MAX).read_to_string(&mut text));
    let text = Secret::new(text);
    read.map(|_| text).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        ConfigError::new("push.signing_secret_file", message, "name a file of one secret a line")
    })
}

fn allow(place: &str, entry: &str) -> Result<Allow, ConfigError> {
    entry.parse().map_err(|error| {
        let message = format!("holds what is not allowed there: {error}");
        ConfigError::new(place, message, "name hosts, addresses and networks: hooks.internal, 10.1.2.3, 127.0.0.0/8")
    })
}

fn a_file(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("the name of a file".to_owned()) } else { Ok(()) }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
