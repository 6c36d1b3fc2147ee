//! What the environment and the flags say.

use std::fmt;
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use super::file::a_command;
use super::section::nearest;
use super::{AgentCommand, ConfigError, LogFormat, PushLayer, Settings, StoreKind};

/// One value, and where it was said: `--listen` or `LONGHAUL_LISTEN`. Its `Debug` form shows no value: it may be a secret.
#[derive(Clone, Eq, PartialEq)]
pub struct Said {
    place: &'static str,
    value: String,
}

/// The main settings, as one place says them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    listen: Option<Said>,
    public_url: Option<Said>,
    data: Option<Said>,
    store: Option<Said>,
    worker_name: Option<Said>,
    exec: Option<Said>,
    exec_jsonl: Option<Said>,
    push: PushLayer,
    log: Option<Said>,
    log_format: Option<Said>,
}

impl Layer {
    /// The layer of a place; `ask` is given the setting's name as a flag and as a variable, and answers with the one of
    /// them that is meant, and its value.
    pub fn of(ask: impl Fn(&'static str, &'static str) -> Option<(&'static str, String)>) -> Self {
        let said = |flag, variable| ask(flag, variable).map(|(place, value)| Said { place, value });
        Self {
            listen: said("--listen", "LONGHAUL_LISTEN"),
            public_url: said("--public-url", "LONGHAUL_PUBLIC_URL"),
            data: said("--data", "LONGHAUL_DATA"),
            store: said("--store", "LONGHAUL_STORE"),
            worker_name: said("--worker-name", "LONGHAUL_WORKER_NAME"),
            exec: said("--exec", "LONGHAUL_EXEC"),
            exec_jsonl: said("--exec-jsonl", "LONGHAUL_EXEC_JSONL"),
            push: PushLayer::of(said),
            log: said("--log", "LONGHAUL_LOG"),
            log_format: said("--log-format", "LONGHAUL_LOG_FORMAT"),
        }
    }

    /// What the environment says. A variable that is empty says nothing; `RUST_LOG` is heard when `LONGHAUL_LOG` is not
    /// set, and ignored when it makes no sense to us: it is not ours alone.
    pub fn of_environment(get: impl Fn(&str) -> Option<String>) -> Self {
        let set =
            |variable: &'static str| get(variable).filter(|value| !value.is_empty()).map(|value| (variable, value));
        Self::of(|_, variable| match variable {
            "LONGHAUL_LOG" => {
                set(variable).or_else(|| set("RUST_LOG").filter(|(_, filter)| check_filter(filter).is_ok()))
            }
            _ => set(variable),
        })
    }

    /// Puts it on the settings.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), ConfigError> {
        if let Some(said) = &self.listen {
            settings.server.listen = said.checked(check_listen)?;
        }
        if let Some(said) = &self.public_url {
            settings.server.public_url = Some(said.checked(check_public_url)?);
        }
        if let Some(said) = &self.data {
            settings.store.data = PathBuf::from(&said.value);
        }
        if let Some(said) = &self.store {
            settings.store.kind = StoreKind::parse(said.place, &said.value)?;
        }
        if let Some(said) = &self.worker_name {
            settings.agent.worker_name = Some(said.checked(check_worker_name)?);
        }
        if let Some(command) = self.command()? {
            settings.agent.command = Some(command);
        }
        self.push.apply(&mut settings.push)?;
        if let Some(said) = &self.log {
            settings.log.level = said.checked(check_filter)?;
        }
        if let Some(said) = &self.log_format {
            settings.log.format = said.choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)])?;
        }
        Ok(())
    }

    /// Where it names the folder of the SQLite file, if it does.
    pub fn says_data(&self) -> Option<String> {
        self.data.as_ref().map(|said| said.place.to_owned())
    }

    /// Either command replaces whichever a lower layer named.
    fn command(&self) -> Result<Option<AgentCommand>, ConfigError> {
        match (&self.exec, &self.exec_jsonl) {
            (Some(exec), Some(jsonl)) => {
                let message = format!("cannot be used together with {}: one server has one agent", exec.place);
                Err(ConfigError::new(jsonl.place, message, "leave one of them out"))
            }
            (Some(said), None) => Ok(Some(AgentCommand::Exec(said.checked(a_command)?))),
            (None, Some(said)) => Ok(Some(AgentCommand::ExecJsonl(said.checked(a_command)?))),
            (None, None) => Ok(None),
        }
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Said({})", self.place)
    }
}

impl Said {
    /// The flag or the variable.
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// What it says.
    pub fn value(&self) -> &str {
        &self.value
    }

    fn checked(&self, check: impl Fn(&str) -> Result<(), String>) -> Result<String, ConfigError> {
        let Self { place, value } = self;
        check(value).map_err(|wanted| {
            ConfigError::new(*place, format!("is {value:?}, and must be {wanted}"), format!("change {place}"))
        })?;
        Ok(value.clone())
    }

    /// One of several choices.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        let Self { place, value } = self;
        let found = choices.iter().find(|(name, _)| name == value);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let near = nearest(value, names.iter().copied()).or(names.first().copied()).unwrap_or_default();
            ConfigError::new(
                *place,
                format!("is {value:?}, and must be one of {}", names.join(", ")),
                format!("write {place} {near}"),
            )
        })
    }
}

/// Whether something can be listened on.
pub fn check_listen(listen: &str) -> Result<(), String> {
    let wanted = || "an address and a port like \"127.0.0.1:4100\" or \"[::1]:4100\"".to_owned();
    let (host, port) = listen.rsplit_once(':').ok_or_else(wanted)?;
    let bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if host.is_empty() || bare_ipv6 || port.parse::<u16>().is_err() {
        return Err(wanted());
    }
    Ok(())
}

/// The address of a checked `listen`.
pub fn resolve(listen: &str) -> std::io::Result<std::net::SocketAddr> {
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    listen.to_socket_addrs()?.next().ok_or_else(none)
}

/// Whether a URL can stand in the card.
pub fn check_public_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    match authority {
        Some(authority) if !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ', '\\']) => Ok(()),
        _ => Err("http:// or https:// and a host, without a path (for a path, set server.prefix)".to_owned()),
    }
}

/// A log filter, such as `info` or `warn,longhaul_engine=debug`.
pub fn check_filter(filter: &str) -> Result<(), String> {
    let wanted = "error, warn, info, debug, trace, or a filter like \"warn,longhaul_engine=debug\"";
    // A word that is no level would be taken for the name of a crate, and silence all others.
    let bare = filter.split(',').find(|part| !part.contains(['=', '[']));
    let level = |word: &str| {
        ["off", "error", "warn", "info", "debug", "trace"].contains(&word.trim().to_ascii_lowercase().as_str())
    };
    match EnvFilter::try_new(filter) {
        Ok(_) if bare.is_none_or(level) => Ok(()),
        _ => Err(wanted.to_owned()),
    }
}

/// What leases say who holds them: it stands in logs and in the database.
pub fn check_worker_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > WORKER_NAME_MAX || !name.bytes().all(plain) {
        return Err(format!("1 to {WORKER_NAME_MAX} letters, digits, '-', '_' or '.'"));
    }
    Ok(())
}

/// How long the name of a worker may be, in bytes.
pub const WORKER_NAME_MAX: usize = 64;
