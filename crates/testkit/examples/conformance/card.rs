use clap::ValueEnum;
use longhaul_protocol::wire::{AgentCapabilities, AgentCard, AgentExtension, AgentSkill};

/// The extension that the kit never names, to see that a server insists on it.
const REQUIRED_EXTENSION: &str = "urn:a2a:tck:required-extension";

/// Which capabilities the card declares.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Profile {
    /// Streams.
    Plain,
    /// Streams, and push notifications.
    Full,
    /// Nothing optional.
    Nostream,
    /// Streams, and an extension that every caller has to know.
    Ext,
}

/// The card, without its interfaces.
pub fn card(profile: Profile) -> AgentCard {
    let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    let required = AgentExtension {
        uri: REQUIRED_EXTENSION.to_owned(),
        description: "Has to be named by every caller".to_owned(),
        required: true,
        ..AgentExtension::default()
    };
    AgentCard {
        name: "Longhaul conformance agent".to_owned(),
        description: "Shows the behaviours that conformance kits ask for".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: Some(AgentCapabilities {
            streaming: Some(profile != Profile::Nostream),
            push_notifications: Some(profile == Profile::Full),
            extensions: if profile == Profile::Ext { vec![required] } else { Vec::new() },
            extended_agent_card: Some(false),
        }),
        default_input_modes: texts(&["text/plain", "application/json"]),
        default_output_modes: texts(&["text/plain", "application/json"]),
        skills: vec![AgentSkill {
            id: "conformance".to_owned(),
            name: "Conformance".to_owned(),
            description: "Does what the prefix of the message's id or text stands for".to_owned(),
            tags: texts(&["conformance", "test"]),
            examples: texts(&["tck-complete-task", "tck-stream-basic"]),
            ..AgentSkill::default()
        }],
        ..AgentCard::default()
    }
}
