//! Which members of an agent card stand for nothing when they hold a default value (§5.7, §8.4.1).
//!
//! A table of the messages below `AgentCard`, held to the descriptor of the protocol by a test.

/// A message of the protocol.
#[derive(Debug)]
pub(super) struct Message {
    #[cfg_attr(not(test), expect(dead_code, reason = "the test against the descriptor finds the message by it"))]
    pub(super) name: &'static str,
    pub(super) members: &'static [Member],
}

/// A member of a message.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    pub(super) shape: Shape,
}

/// What it means that a member is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// It always is there.
    Required,
    /// It was set, even if to a default value.
    Optional,
    /// A default value is the same as no member.
    Implicit,
}

/// What a member holds.
#[derive(Debug)]
pub(super) enum Shape {
    Text,
    Flag,
    Struct,
    One(&'static Message),
    TextList,
    List(&'static Message),
    TextMap,
    Map(&'static Message),
}

impl Message {
    pub(super) fn member(&self, name: &str) -> Option<&'static Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The member that this is the other spelling of: `icon_url` of `iconUrl`.
    pub(super) fn other_spelling(&self, name: &str) -> Option<&'static Member> {
        self.members.iter().find(|member| name.contains('_') && is_camel_case_of(member.name, name))
    }
}

/// Whether `json` is the JSON name of the field `proto`: without underscores, the letter after each in upper case.
fn is_camel_case_of(json: &str, proto: &str) -> bool {
    let mut after_underscore = false;
    let camel_case = proto.chars().filter_map(|character| {
        if character == '_' {
            after_underscore = true;
            return None;
        }
        Some(if std::mem::take(&mut after_underscore) { character.to_ascii_uppercase() } else { character })
    });
    camel_case.eq(json.chars())
}

const fn required(name: &'static str, shape: Shape) -> Member {
    Member { name, presence: Presence::Required, shape }
}

const fn optional(name: &'static str, shape: Shape) -> Member {
    Member { name, presence: Presence::Optional, shape }
}

const fn implicit(name: &'static str, shape: Shape) -> Member {
    Member { name, presence: Presence::Implicit, shape }
}

pub(super) static AGENT_CARD: Message = Message {
    name: "AgentCard",
    members: &[
        required("name", Shape::Text),
        required("description", Shape::Text),
        required("supportedInterfaces", Shape::List(&AGENT_INTERFACE)),
        optional("provider", Shape::One(&AGENT_PROVIDER)),
        required("version", Shape::Text),
        optional("documentationUrl", Shape::Text),
        required("capabilities", Shape::One(&AGENT_CAPABILITIES)),
        implicit("securitySchemes", Shape::Map(&SECURITY_SCHEME)),
        implicit("securityRequirements", Shape::List(&SECURITY_REQUIREMENT)),
        required("defaultInputModes", Shape::TextList),
        required("defaultOutputModes", Shape::TextList),
        required("skills", Shape::List(&AGENT_SKILL)),
        implicit("signatures", Shape::List(&AGENT_CARD_SIGNATURE)),
        optional("iconUrl", Shape::Text),
    ],
};

static AGENT_CARD_SIGNATURE: Message = Message {
    name: "AgentCardSignature",
    members: &[
        required("protected", Shape::Text),
        required("signature", Shape::Text),
        optional("header", Shape::Struct),
    ],
};

static AGENT_INTERFACE: Message = Message {
    name: "AgentInterface",
    members: &[
        required("url", Shape::Text),
        required("protocolBinding", Shape::Text),
        implicit("tenant", Shape::Text),
        required("protocolVersion", Shape::Text),
    ],
};

static AGENT_PROVIDER: Message =
    Message { name: "AgentProvider", members: &[required("url", Shape::Text), required("organization", Shape::Text)] };

static AGENT_CAPABILITIES: Message = Message {
    name: "AgentCapabilities",
    members: &[
        optional("streaming", Shape::Flag),
        optional("pushNotifications", Shape::Flag),
        implicit("extensions", Shape::List(&AGENT_EXTENSION)),
        optional("extendedAgentCard", Shape::Flag),
    ],
};

static AGENT_EXTENSION: Message = Message {
    name: "AgentExtension",
    members: &[
        implicit("uri", Shape::Text),
        implicit("description", Shape::Text),
        implicit("required", Shape::Flag),
        optional("params", Shape::Struct),
    ],
};

static AGENT_SKILL: Message = Message {
    name: "AgentSkill",
    members: &[
        required("id", Shape::Text),
        required("name", Shape::Text),
        required("description", Shape::Text),
        required("tags", Shape::TextList),
        implicit("examples", Shape::TextList),
        implicit("inputModes", Shape::TextList),
        implicit("outputModes", Shape::TextList),
        implicit("securityRequirements", Shape::List(&SECURITY_REQUIREMENT)),
    ],
};

static SECURITY_REQUIREMENT: Message =
    Message { name: "SecurityRequirement", members: &[implicit("schemes", Shape::Map(&STRING_LIST))] };

static STRING_LIST: Message = Message { name: "StringList", members: &[implicit("list", Shape::TextList)] };

static SECURITY_SCHEME: Message = Message {
    name: "SecurityScheme",
    members: &[
        optional("apiKeySecurityScheme", Shape::One(&API_KEY)),
        optional("httpAuthSecurityScheme", Shape::One(&HTTP_AUTH)),
        optional("oauth2SecurityScheme", Shape::One(&OAUTH2)),
        optional("openIdConnectSecurityScheme", Shape::One(&OPEN_ID_CONNECT)),
        optional("mtlsSecurityScheme", Shape::One(&MUTUAL_TLS)),
    ],
};

static API_KEY: Message = Message {
    name: "APIKeySecurityScheme",
    members: &[implicit("description", Shape::Text), required("location", Shape::Text), required("name", Shape::Text)],
};

static HTTP_AUTH: Message = Message {
    name: "HTTPAuthSecurityScheme",
    members: &[
        implicit("description", Shape::Text),
        required("scheme", Shape::Text),
        implicit("bearerFormat", Shape::Text),
    ],
};

static OAUTH2: Message = Message {
    name: "OAuth2SecurityScheme",
    members: &[
        implicit("description", Shape::Text),
        required("flows", Shape::One(&OAUTH_FLOWS)),
        implicit("oauth2MetadataUrl", Shape::Text),
    ],
};

static OPEN_ID_CONNECT: Message = Message {
    name: "OpenIdConnectSecurityScheme",
    members: &[implicit("description", Shape::Text), required("openIdConnectUrl", Shape::Text)],
};

static MUTUAL_TLS: Message =
    Message { name: "MutualTlsSecurityScheme", members: &[implicit("description", Shape::Text)] };

static OAUTH_FLOWS: Message = Message {
    name: "OAuthFlows",
    members: &[
        optional("authorizationCode", Shape::One(&AUTHORIZATION_CODE)),
        optional("clientCredentials", Shape::One(&CLIENT_CREDENTIALS)),
        optional("implicit", Shape::One(&IMPLICIT)),
        optional("password", Shape::One(&PASSWORD)),
        optional("deviceCode", Shape::One(&DEVICE_CODE)),
    ],
};

static AUTHORIZATION_CODE: Message = Message {
    name: "AuthorizationCodeOAuthFlow",
    members: &[
        required("authorizationUrl", Shape::Text),
        required("tokenUrl", Shape::Text),
        implicit("refreshUrl", Shape::Text),
        required("scopes", Shape::TextMap),
        implicit("pkceRequired", Shape::Flag),
    ],
};

static CLIENT_CREDENTIALS: Message = Message {
    name: "ClientCredentialsOAuthFlow",
    members: &[
        required("tokenUrl", Shape::Text),
        implicit("refreshUrl", Shape::Text),
        required("scopes", Shape::TextMap),
    ],
};

static IMPLICIT: Message = Message {
    name: "ImplicitOAuthFlow",
    members: &[
        implicit("authorizationUrl", Shape::Text),
        implicit("refreshUrl", Shape::Text),
        implicit("scopes", Shape::TextMap),
    ],
};

static PASSWORD: Message = Message {
    name: "PasswordOAuthFlow",
    members: &[
        implicit("tokenUrl", Shape::Text),
        implicit("refreshUrl", Shape::Text),
        implicit("scopes", Shape::TextMap),
    ],
};

static DEVICE_CODE: Message = Message {
    name: "DeviceCodeOAuthFlow",
    members: &[
        required("deviceAuthorizationUrl", Shape::Text),
        required("tokenUrl", Shape::Text),
        implicit("refreshUrl", Shape::Text),
        required("scopes", Shape::TextMap),
    ],
};

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    /// What the table says of a member, in the words of the descriptor.
    fn words(member: &Member) -> (&'static str, bool, Option<&'static str>) {
        match &member.shape {
            Shape::Text => ("string", false, None),
            Shape::Flag => ("bool", false, None),
            Shape::Struct => ("message", false, Some("google.protobuf.Struct")),
            Shape::One(message) => ("message", false, Some(message.name)),
            Shape::TextList => ("string", true, None),
            Shape::List(message) => ("message", true, Some(message.name)),
            Shape::TextMap => ("map", false, Some("string")),
            Shape::Map(message) => ("map", false, Some(message.name)),
        }
    }

    fn presence(field: &Value) -> Presence {
        if field["required"] == true {
            return Presence::Required;
        }
        let is_single_message = field["type"] == "message" && field["repeated"] != true;
        if field["optional"] == true || is_single_message { Presence::Optional } else { Presence::Implicit }
    }

    /// Compares `message` and what is below it; adds the names it went through to `seen`.
    fn compare(message: &'static Message, descriptor: &Map<String, Value>, seen: &mut Vec<&'static str>) {
        if seen.contains(&message.name) {
            return;
        }
        seen.push(message.name);
        let fields = descriptor[message.name].as_object().unwrap();
        assert_eq!(fields.len(), message.members.len(), "{}", message.name);
        for (proto, field) in fields {
            let name = field["json"].as_str().unwrap();
            let member = message.member(name).unwrap_or_else(|| panic!("{} lacks {name}", message.name));
            let spelled = message.other_spelling(proto).map(|member| member.name);
            assert_eq!(spelled, proto.contains('_').then_some(name), "{}.{proto}", message.name);
            let of = field["of"].as_str().or_else(|| field["value"].as_str());
            let of = of.map(|of| of.strip_prefix("lf.a2a.v1.").unwrap_or(of));
            let wanted = (field["type"].as_str().unwrap(), field["repeated"] == true, of);
            assert_eq!((words(member), member.presence), (wanted, presence(field)), "{}.{name}", message.name);
            match member.shape {
                Shape::One(inner) | Shape::List(inner) | Shape::Map(inner) => compare(inner, descriptor, seen),
                Shape::Text | Shape::Flag | Shape::Struct | Shape::TextList | Shape::TextMap => {}
            }
        }
    }

    #[test]
    fn the_table_is_the_descriptor_of_the_protocol() {
        let text = include_str!("../../../protocol/tests/data/descriptor.json");
        let descriptor: Value = serde_json::from_str(text).unwrap();
        let mut seen = Vec::new();
        compare(&AGENT_CARD, descriptor["v1.0"]["messages"].as_object().unwrap(), &mut seen);
        assert_eq!(seen.len(), 21, "{seen:?}");
    }
}
