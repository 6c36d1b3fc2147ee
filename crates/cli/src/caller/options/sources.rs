//! Where the values of settings come from, highest first.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::arguments::OutputForm;
use crate::caller::failure::Failure;

use super::dotenv::{self, DotEnv, PREFIX};
use super::setting::{Secrecy, Setting, WAIT, variable};
use super::value;

/// The variable for `--config`, which no file can hold.
const CONFIG: &str = "A2ACLI_CONFIG";
/// Variables that single commands read, which no file can hold.
const OF_COMMANDS: [&str; 2] = ["A2ACLI_PUSH_TOKEN", "A2ACLI_PUSH_CREDENTIALS"];
/// The file of logins, below the home.
const TOKENS: &str = ".config/a2a-cli/tokens.json";
/// The ledger, below the folder for state.
const LEDGER: &str = "longhaul/ledger.db";
/// How many letters a misspelled name may have wrong, to be recognised.
const LETTERS_WRONG_MAX: usize = 2;

/// What the command line says, by flag without its dashes.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--config`
    pub config: Option<PathBuf>,
    /// The others, each at most once.
    pub values: Vec<(&'static str, String)>,
}

/// What is around a process.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The environment, as far as it is about us.
    pub variables: BTreeMap<String, String>,
    /// The working directory.
    pub folder: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Where programs keep what they have to remember, if that is said.
    pub state: Option<PathBuf>,
    /// The user's number.
    pub user: u32,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            // A value that is no text is as good as any other wrong value, and is shown as such.
            Some((name, value.to_string_lossy().into_owned()))
        });
        Self {
            variables: ours.collect(),
            folder: std::env::current_dir().unwrap_or_default(),
            home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            // What is not absolute is to be ignored, says the specification of these variables.
            state: std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()),
            user: rustix::process::geteuid().as_raw(),
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// The environment.
    Variable(String),
    /// A file.
    File {
        /// The variable in it.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Nowhere: nothing says it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Variable(name) => f.write_str(name),
            Self::File { name, path } => write!(f, "{name} in {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// What is said about settings, and by whom.
#[derive(Debug, Default)]
pub struct Sources {
    found: BTreeMap<Setting, (String, Origin)>,
    config: Option<PathBuf>,
    /// The file of logins, where there is a home.
    pub tokens: Option<PathBuf>,
    /// The ledger, where nothing says another one and there is a place for it.
    pub ledger: Option<PathBuf>,
    /// What a person should know, for stderr.
    pub warnings: Vec<String>,
}

impl Sources {
    /// Asks all of them.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when a file can't be read, or a source says two things that exclude each other.
    pub fn gather(given: &Given, surroundings: &Surroundings) -> Result<Self, Failure> {
        let home = surroundings.home.as_deref();
        let state = surroundings.state.clone().or_else(|| Some(home?.join(".local/state")));
        let mut sources = Self {
            config: given.config.clone(),
            tokens: home.map(|home| home.join(TOKENS)),
            ledger: state.map(|state| state.join(LEDGER)),
            ..Self::default()
        };
        sources.layer(|flag| {
            let (flag, value) = given.values.iter().find(|(name, _)| *name == flag)?;
            Some((value.clone(), Origin::Flag(flag)))
        })?;
        let variables = &surroundings.variables;
        sources.layer(|flag| {
            let name = variable(flag);
            Some((variables.get(&name)?.clone(), Origin::Variable(name)))
        })?;
        let elsewhere = |name: &str| name == CONFIG || OF_COMMANDS.contains(&name);
        sources.note_unknown(variables.keys().filter(|name| !elsewhere(name)), "");
        let config = given.config.as_deref().or_else(|| Some(Path::new(variables.get(CONFIG)?)));
        let local = match config.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Some(dotenv::named(path)?),
            None => dotenv::local(&surroundings.folder, surroundings.user)?,
        };
        let global = home.map(|home| dotenv::global(home, surroundings.user)).transpose()?.flatten();
        for file in local.into_iter().chain(global) {
            sources.file(file)?;
        }
        Ok(sources)
    }

    fn file(&mut self, file: DotEnv) -> Result<(), Failure> {
        let DotEnv { path, values, warnings } = file;
        self.warnings.extend(warnings);
        self.note_unknown(values.keys(), &format!(" in {}", path.display()));
        self.layer(|flag| {
            let name = variable(flag);
            Some((values.get(&name)?.clone(), Origin::File { name, path: path.clone() }))
        })
    }

    /// Puts a layer below those that are there. An empty value says nothing.
    fn layer(&mut self, said: impl Fn(&'static str) -> Option<(String, Origin)>) -> Result<(), Failure> {
        let said = |flag| said(flag).filter(|(value, _)| !value.is_empty());
        for key in Setting::ALL {
            let value = match key {
                Setting::Async => Self::patience(said(key.flag()), said(WAIT))?,
                key => said(key.flag()),
            };
            if let Some(value) = value {
                self.found.entry(*key).or_insert(value);
            }
        }
        Ok(())
    }

    /// `wait` is `async` turned round; one source can't say both.
    fn patience(
        asynchronous: Option<(String, Origin)>,
        wait: Option<(String, Origin)>,
    ) -> Result<Option<(String, Origin)>, Failure> {
        let Some((value, origin)) = wait else { return Ok(asynchronous) };
        let wait = value::switch(&value).map_err(|problem| wrong(&origin, &problem))?;
        match asynchronous {
            Some((_, other)) => {
                Err(Failure::usage(format!("{other} and {origin} exclude each other")).hint("leave out one"))
            }
            None => Ok(Some(((!wait).to_string(), origin))),
        }
    }

    fn note_unknown<'a>(&mut self, names: impl Iterator<Item = &'a String>, place: &str) {
        let known: Vec<String> = Setting::ALL.iter().map(|key| variable(key.flag())).chain([variable(WAIT)]).collect();
        for name in names.filter(|name| !known.contains(name)) {
            let wrong = known.iter().map(|other| (strsim::osa_distance(name, other), other));
            let nearest = wrong.filter(|(letters, _)| *letters <= LETTERS_WRONG_MAX).min();
            let meant = nearest.map(|(_, other)| format!("; {other} is one")).unwrap_or_default();
            self.warnings.push(format!("{name}{place} is no setting{meant}"));
        }
    }

    /// What is said about a setting, and by whom.
    pub fn of(&self, key: Setting) -> (Option<&str>, &Origin) {
        match self.found.get(&key) {
            Some((value, origin)) => (Some(value), origin),
            None => (None, &Origin::Default),
        }
    }

    /// The same, read.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] that names the source when the value is wrong.
    pub fn typed<T>(&self, key: Setting, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Failure> {
        let (value, origin) = self.of(key);
        value.map(|value| read(value).map_err(|problem| wrong(origin, &problem))).transpose()
    }

    /// What stdout is for, before anything else is known to be right.
    pub fn output(&self) -> OutputForm {
        self.typed(Setting::Output, value::output).ok().flatten().unwrap_or(OutputForm::Text)
    }

    /// The flags that the next command has to be given too: what says which agent it is, unless it is secret.
    pub fn carried(&self) -> Vec<(&'static str, String)> {
        let mut carried: Vec<(&'static str, String)> = Vec::new();
        if let (Some(value), Origin::Flag(_)) = self.of(Setting::AgentCard) {
            carried.push(("--agent-card", value.to_owned()));
        }
        if let Some(config) = self.config.as_ref().and_then(|path| path.to_str()) {
            carried.push(("--config", config.to_owned()));
        }
        carried
    }

    /// The ledger, if a flag says it: the next command needs it too.
    pub fn carried_ledger(&self) -> Option<String> {
        match self.of(Setting::Ledger) {
            (Some(value), Origin::Flag(_)) => Some(value.to_owned()),
            _ => None,
        }
    }
}

/// What stdout is for, where the sources could not even be gathered: as the flag, else the variable says.
pub fn output_before(given: &Given, surroundings: &Surroundings) -> OutputForm {
    let flag = given.values.iter().find(|(flag, _)| *flag == Setting::Output.flag()).map(|(_, value)| value);
    let said = flag.or_else(|| surroundings.variables.get(&variable(Setting::Output.flag())));
    said.and_then(|value| parse_output(value)).unwrap_or(OutputForm::Text)
}

/// What the variable for `--output` says.
pub fn output_variable() -> Option<String> {
    std::env::var(variable(Setting::Output.flag())).ok()
}

/// What stdout is for, if it is one of the forms.
pub fn parse_output(text: &str) -> Option<OutputForm> {
    value::output(text).ok()
}

fn wrong(origin: &Origin, problem: &str) -> Failure {
    Failure::usage(format!("{origin}: {problem}")).hint("longhaul config show lists what is set, and where")
}

/// A value as it may be shown.
pub fn shown(key: Setting, value: &str) -> String {
    const HIDDEN: &str = "(hidden)";
    match key.secrecy() {
        Secrecy::Open => value.to_owned(),
        Secrecy::Secret => HIDDEN.to_owned(),
        Secrecy::SecretValue => {
            let names = value.lines().map(|line| match line.split_once(':') {
                Some((name, _)) => format!("{}:{HIDDEN}", name.trim()),
                None => HIDDEN.to_owned(),
            });
            names.collect::<Vec<_>>().join(", ")
        }
    }
}
