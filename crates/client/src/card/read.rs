//! A card as it came, and what it says.

use longhaul_protocol::json::object_from_json;
use longhaul_protocol::v0_3::card::card_from_json;
use longhaul_protocol::wire::AgentCard;
use longhaul_protocol::{JsonError, JsonObject, from_json};

use crate::CardError;

use super::choose::{Chosen, Preference, choose};
use super::origin::{CardOrigin, OriginPolicy};
use super::validate::{Problem, validate};

/// The largest card that is read, in bytes: of its text, and for a verifier of its names and strings.
pub const CARD_BYTES_MAX: usize = 1024 * 1024;

/// The version in which a card is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Written {
    /// v1.0.
    V1_0,
    /// v0.3, or a draft before it.
    V0_3,
    /// v1.0, with v0.3's members beside.
    Both,
}

/// A card as it came.
#[derive(Clone, Debug)]
pub struct CardDocument {
    place: String,
    members: JsonObject,
    written: Written,
    card: AgentCard,
    /// What v0.3's members say where they stand beside v1.0's; or what is wrong with them.
    older: Option<Result<AgentCard, JsonError>>,
}

impl CardDocument {
    /// Reads a card. `place` is the URL or the path that it came from, for messages.
    ///
    /// A document with `supportedInterfaces` is a card of v1.0, whatever else it holds. Members that nobody knows are passed over,
    /// and required ones may be absent: [`validate`](Self::validate) tells of those.
    ///
    /// # Errors
    ///
    /// [`CardError::Invalid`] if it is larger than [`CARD_BYTES_MAX`], no JSON object, no card, or a member is of another type
    /// than it must be.
    pub fn parse(json: &[u8], place: &str) -> Result<Self, CardError> {
        let invalid = |problem: String| CardError::Invalid { place: place.to_owned(), problem };
        if json.len() > CARD_BYTES_MAX {
            return Err(invalid(format!("it has {} bytes, and {CARD_BYTES_MAX} are allowed", json.len())));
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let told = |error: JsonError| invalid(error.to_string());
        let members = object_from_json(json).map_err(told)?;
        let written = written(&members).ok_or_else(|| {
            invalid("it has neither supportedInterfaces, as a card of v1.0, nor url, as one of v0.3".to_owned())
        })?;
        let card = match written {
            Written::V1_0 | Written::Both => from_json(json).map_err(told)?,
            Written::V0_3 => card_from_json(json).map_err(told)?,
        };
        let older = (written == Written::Both).then(|| card_from_json(json));
        Ok(Self { place: place.to_owned(), members, written, card, older })
    }

    /// The URL or the path that it came from.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The JSON as it came, which is what is signed; of a member given twice the last one.
    #[must_use]
    pub fn members(&self) -> &JsonObject {
        &self.members
    }

    /// The version in which it is written.
    #[must_use]
    pub fn written(&self) -> Written {
        self.written
    }

    /// What it says, in the form of v1.0.
    #[must_use]
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    pub(super) fn older(&self) -> Option<&Result<AgentCard, JsonError>> {
        self.older.as_ref()
    }

    /// Chooses the interface to call, as [`choose`](super::choose()) does. Where none of v1.0's members can be used, v0.3's beside
    /// them may.
    ///
    /// [`Chosen::index`] is then one of the interfaces that those name, `url` first.
    ///
    /// # Errors
    ///
    /// [`CardError::NoInterface`] with a reason for each interface.
    pub fn choose(
        &self,
        preference: &Preference,
        policy: &OriginPolicy,
        origin: &CardOrigin,
    ) -> Result<Chosen, CardError> {
        let chosen = choose(&self.card, preference, policy, origin);
        match (&chosen, &self.older) {
            (Err(_), Some(Ok(older))) => choose(older, preference, policy, origin).or(chosen),
            _ => chosen,
        }
    }

    /// What is wrong with it, as far as that can be seen from the card alone; empty if nothing is.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        validate(self)
    }
}

/// By the members that only one of the versions has; a name alone is enough for a card whose printer left empty lists out.
fn written(members: &JsonObject) -> Option<Written> {
    let has = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
    let is_v1_0 = has("supportedInterfaces") || has("supported_interfaces");
    let is_v0_3 = has("url") || has("additionalInterfaces") || has("preferredTransport");
    match (is_v1_0, is_v0_3) {
        (true, true) => Some(Written::Both),
        (true, false) => Some(Written::V1_0),
        (false, true) => Some(Written::V0_3),
        (false, false) if has("protocolVersion") => Some(Written::V0_3),
        (false, false) => (has("name") && (has("skills") || has("capabilities"))).then_some(Written::V1_0),
    }
}

#[cfg(test)]
mod tests;
