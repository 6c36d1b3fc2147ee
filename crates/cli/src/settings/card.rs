//! The agent card (A2A §4.4): what the file says of it, and defaults for the rest.

use std::path::Path;

use longhaul_engine::{ARTIFACT_VERSIONS, IDEMPOTENT_SEND, STREAM_RESUME};
use longhaul_protocol::wire::{AgentCapabilities, AgentCard, AgentExtension, AgentProvider, AgentSkill};
use longhaul_protocol::{JsonObject, rules};
use serde_json::Value;

use super::ConfigError;
use super::section::Section;

/// What is served, which decides what the card says when nobody else does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServedAgent<'a> {
    /// A command, text in and lines out.
    Exec(&'a str),
    /// A command that speaks JSON lines.
    ExecJsonl(&'a str),
    /// The agent of `demo-server`.
    Demo,
}

/// Whether a server sends push notifications.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PushOffer {
    /// It does.
    Sent,
    /// It does not.
    Off,
}

/// What the card says. `None` and empty lists stand for the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct CardSettings {
    /// The agent's name.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// Who runs it.
    pub provider: Option<AgentProvider>,
    /// Where more is written.
    pub documentation_url: Option<String>,
    /// Where an icon is.
    pub icon_url: Option<String>,
    /// Media types that it takes.
    pub input_modes: Vec<String>,
    /// Media types that it gives.
    pub output_modes: Vec<String>,
    /// Whether streams are offered.
    pub streaming: bool,
    /// Whether the card says that push notifications are sent, where they are.
    pub push_notifications: bool,
    /// Whether the card lists the gRPC interface.
    pub grpc: bool,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Extensions beside our own.
    pub extensions: Vec<AgentExtension>,
}

impl Default for CardSettings {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            version: None,
            provider: None,
            documentation_url: None,
            icon_url: None,
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            streaming: true,
            push_notifications: true,
            grpc: true,
            skills: Vec::new(),
            extensions: Vec::new(),
        }
    }
}

impl CardSettings {
    pub(super) fn apply(&mut self, mut section: Section<'_>) -> Result<(), ConfigError> {
        for (key, to) in [
            ("name", &mut self.name),
            ("description", &mut self.description),
            ("version", &mut self.version),
            ("documentation_url", &mut self.documentation_url),
            ("icon_url", &mut self.icon_url),
        ] {
            if let Some(text) = section
                .checked(key, |text| if text.trim().is_empty() { Err("not empty".to_owned()) } else { Ok(()) })?
            {
                *to = Some(text);
            }
        }
        let given = section.has("provider");
        let provider = section.section("provider")?;
        if given {
            self.provider = Some(read_provider(provider)?);
        }
        set_modes(&mut section, "input_modes", &mut self.input_modes)?;
        set_modes(&mut section, "output_modes", &mut self.output_modes)?;
        section.set_flag("streaming", &mut self.streaming)?;
        section.set_flag("push_notifications", &mut self.push_notifications)?;
        section.set_flag("grpc", &mut self.grpc)?;
        let skills: Vec<AgentSkill> =
            section.sections("skills")?.into_iter().map(read_skill).collect::<Result<_, _>>()?;
        if !skills.is_empty() {
            self.skills = skills;
        }
        let extensions: Vec<AgentExtension> =
            section.sections("extensions")?.into_iter().map(read_extension).collect::<Result<_, _>>()?;
        if !extensions.is_empty() {
            self.extensions = extensions;
        }
        section.finish()
    }

    /// Fills in what nobody said, so that every list that the protocol requires has an item (A2A §5.7).
    #[must_use]
    pub fn with_defaults(mut self, served: ServedAgent<'_>) -> Self {
        let name = self.name.get_or_insert_with(|| default_name(served)).clone();
        let description = self.description.get_or_insert_with(|| default_description(served)).clone();
        self.version.get_or_insert_with(|| env!("CARGO_PKG_VERSION").to_owned());
        if self.input_modes.is_empty() {
            self.input_modes = texts(default_input_modes(served));
        }
        if self.output_modes.is_empty() {
            self.output_modes = texts(default_output_modes(served));
        }
        if self.skills.is_empty() {
            self.skills = vec![default_skill(served, name, description)];
        }
        self
    }

    /// The card, without its interfaces, of a server that sends push notifications or does not.
    pub fn to_card(&self, served: ServedAgent<'_>, push: PushOffer) -> AgentCard {
        let Self {
            name,
            description,
            version,
            provider,
            documentation_url,
            icon_url,
            input_modes,
            output_modes,
            skills,
            ..
        } = self.clone().with_defaults(served);
        AgentCard {
            name: name.unwrap_or_default(),
            description: description.unwrap_or_default(),
            version: version.unwrap_or_default(),
            provider,
            documentation_url,
            icon_url,
            capabilities: Some(AgentCapabilities {
                streaming: Some(self.streaming),
                push_notifications: Some(push == PushOffer::Sent && self.push_notifications),
                extensions: our_extensions().into_iter().chain(self.extensions.iter().cloned()).collect(),
                extended_agent_card: Some(false),
            }),
            default_input_modes: input_modes,
            default_output_modes: output_modes,
            skills,
            ..AgentCard::default()
        }
    }

    /// The media types of the card and of all skills: what a message's parts may be.
    pub fn all_input_modes(&self, served: ServedAgent<'_>) -> Vec<String> {
        let Self { input_modes, skills, .. } = self.clone().with_defaults(served);
        input_modes.into_iter().chain(skills.into_iter().flat_map(|skill| skill.input_modes)).collect()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn default_name(served: ServedAgent<'_>) -> String {
    match served {
        ServedAgent::Exec(command) | ServedAgent::ExecJsonl(command) => {
            program_of(command).unwrap_or("longhaul").to_owned()
        }
        ServedAgent::Demo => "Longhaul demo".to_owned(),
    }
}

/// The program of a command line, and nothing else of it: arguments may be secrets.
fn program_of(command: &str) -> Option<&str> {
    let word = command.split_whitespace().find(|word| !word.contains('='))?;
    let name = Path::new(word).file_name()?.to_str()?;
    let plain = name.chars().all(|character| character.is_alphanumeric() || "-_.+".contains(character));
    plain.then_some(name)
}

fn default_description(served: ServedAgent<'_>) -> String {
    match served {
        ServedAgent::Exec(command) | ServedAgent::ExecJsonl(command) => match program_of(command) {
            Some(program) => format!("Runs {program} for each task"),
            None => "Runs a command for each task".to_owned(),
        },
        ServedAgent::Demo => "Does what the words of a message say, for trying out and for tests".to_owned(),
    }
}

fn default_input_modes(served: ServedAgent<'_>) -> &'static [&'static str] {
    match served {
        ServedAgent::Exec(_) => &["text/plain"],
        ServedAgent::ExecJsonl(_) => &["text/plain", "application/json"],
        ServedAgent::Demo => &[
            "text/plain",
            "application/json",
            "application/octet-stream",
            "text/*",
            "application/*",
            "image/*",
            "audio/*",
        ],
    }
}

fn default_output_modes(served: ServedAgent<'_>) -> &'static [&'static str] {
    match served {
        ServedAgent::Exec(_) => &["text/plain"],
        ServedAgent::ExecJsonl(_) => &["text/plain", "application/json"],
        ServedAgent::Demo => default_input_modes(served),
    }
}

fn default_skill(served: ServedAgent<'_>, name: String, description: String) -> AgentSkill {
    let (id, tags, examples): (_, &[&str], &[&str]) = match served {
        ServedAgent::Exec(_) | ServedAgent::ExecJsonl(_) => ("run", &["command"], &[]),
        ServedAgent::Demo => ("demo", &["demo", "test"], &["echo hello", "slow 3", "chunks 200", "input"]),
    };
    AgentSkill {
        id: id.to_owned(),
        name,
        description,
        tags: texts(tags),
        examples: texts(examples),
        ..AgentSkill::default()
    }
}

/// What Longhaul offers beyond the protocol. A client that ignores it loses nothing, so none is required.
fn our_extensions() -> Vec<AgentExtension> {
    let offered = [
        (ARTIFACT_VERSIONS, "Earlier versions of an artifact can be listed and read"),
        (STREAM_RESUME, "A stream that was cut goes on behind the event named in Last-Event-ID"),
        (IDEMPOTENT_SEND, "A message sent again with the same messageId gives the same task"),
    ];
    let extension = |(uri, description): (&str, &str)| AgentExtension {
        uri: uri.to_owned(),
        description: description.to_owned(),
        ..AgentExtension::default()
    };
    offered.map(extension).to_vec()
}

fn set_modes(section: &mut Section<'_>, key: &'static str, to: &mut Vec<String>) -> Result<(), ConfigError> {
    section.set_list(key, to)?;
    let good = |mode: &String| {
        mode.is_ascii() && (mode == "*" || rules::media_type_matches("*/*", mode) && mode.contains('/'))
    };
    match to.iter().find(|mode| !good(mode)) {
        Some(bad) => Err(section.error(
            key,
            format_args!("holds {bad:?}, which is no media type"),
            "write \"text/plain\", \"image/*\" or \"*/*\"",
        )),
        None => Ok(()),
    }
}

fn read_provider(mut section: Section<'_>) -> Result<AgentProvider, ConfigError> {
    let provider = AgentProvider { organization: section.required("organization")?, url: section.required("url")? };
    section.finish()?;
    Ok(provider)
}

fn read_skill(mut section: Section<'_>) -> Result<AgentSkill, ConfigError> {
    let mut skill = AgentSkill {
        id: section.required("id")?,
        name: section.required("name")?,
        description: section.required("description")?,
        tags: texts(&["agent"]),
        ..AgentSkill::default()
    };
    section.set_list("tags", &mut skill.tags)?;
    section.set_list("examples", &mut skill.examples)?;
    set_modes(&mut section, "input_modes", &mut skill.input_modes)?;
    set_modes(&mut section, "output_modes", &mut skill.output_modes)?;
    if skill.tags.is_empty() {
        return Err(section.error("tags", "is empty, and the protocol requires a tag", "name one, or leave tags out"));
    }
    section.finish()?;
    Ok(skill)
}

fn read_extension(mut section: Section<'_>) -> Result<AgentExtension, ConfigError> {
    let mut extension = AgentExtension { uri: section.required("uri")?, ..AgentExtension::default() };
    section.set_text("description", &mut extension.description)?;
    section.set_flag("required", &mut extension.required)?;
    extension.params = section.free("params")?.map(json_object);
    section.finish()?;
    Ok(extension)
}

fn json_object(table: &toml::Table) -> JsonObject {
    table.iter().map(|(key, value)| (key.clone(), json(value))).collect()
}

fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => Value::Object(json_object(table)),
    }
}
