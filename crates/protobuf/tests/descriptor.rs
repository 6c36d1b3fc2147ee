//! The protos of this crate against the facts of the normative ones (A2A §1.4).

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "what a test cannot read or find is its failure")]

use std::collections::BTreeMap;

use longhaul_protobuf::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};
use serde_json::{Map, Value, json};

/// The facts of the normative proto of A2A v1.0.
const NORMATIVE: &str = include_str!("data/descriptor.json");

/// The facts of the proto of v0.3's SDKs.
const V0_3: &str = include_str!("data/descriptor_v0_3.json");

#[test]
fn every_message_field_enum_and_method_is_that_of_the_normative_proto() {
    check("lf/a2a/v1/a2a.proto", NORMATIVE);
}

#[test]
fn every_message_field_enum_and_method_of_v0_3_is_that_of_its_sdks() {
    check("a2a/v1/a2a.proto", V0_3);
}

#[track_caller]
fn check(name: &str, normative: &str) {
    let mut normative: Value = serde_json::from_str(normative).unwrap();
    leave_out_required(&mut normative);
    let ours = file(name);

    assert_eq!(ours.package(), normative["package"]);
    assert_same(&messages(&ours), &normative["messages"]);
    assert_same(&enums(&ours), &normative["enums"]);
    assert_same(&services(&ours), &normative["services"]);
}

#[test]
fn artifact_versions_are_a_service_of_their_own() {
    let ours = file("longhaul/v1/artifact.proto");
    assert_eq!(ours.package(), "longhaul.v1");
    assert_same(
        &services(&ours),
        &json!({"ArtifactService": {
            "ListArtifactVersions": {
                "request": "longhaul.v1.ListArtifactVersionsRequest",
                "response": "longhaul.v1.ListArtifactVersionsResponse",
                "server_streaming": false,
            },
            "GetArtifact": {
                "request": "longhaul.v1.GetArtifactRequest",
                "response": "longhaul.v1.GetArtifactResponse",
                "server_streaming": false,
            },
        }}),
    );
}

/// Compares member by member, so that a failure names the message that differs.
#[track_caller]
fn assert_same(ours: &Value, normative: &Value) {
    let (ours, normative) = (ours.as_object().unwrap(), normative.as_object().unwrap());
    for (name, facts) in normative {
        assert_eq!(ours.get(name), Some(facts), "{name}");
    }
    for name in ours.keys() {
        assert!(normative.contains_key(name), "{name} is not in the proto");
    }
}

/// Which fields are required is no fact of the wire; the field rules of the data model hold it.
fn leave_out_required(normative: &mut Value) {
    for message in normative["messages"].as_object_mut().unwrap().values_mut() {
        for field in message.as_object_mut().unwrap().values_mut() {
            field.as_object_mut().unwrap().remove("required");
        }
    }
}

fn file(name: &str) -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut files = set.file.into_iter();
    files.find(|file| file.name() == name).unwrap()
}

fn messages(file: &FileDescriptorProto) -> Value {
    let messages = file.message_type.iter();
    messages.map(|message| (message.name().to_owned(), fields(message))).collect::<Map<_, _>>().into()
}

fn fields(message: &DescriptorProto) -> Value {
    let maps: BTreeMap<&str, &DescriptorProto> = message
        .nested_type
        .iter()
        .filter(|nested| nested.options.as_ref().is_some_and(|it| it.map_entry()))
        .map(|nested| (nested.name(), nested))
        .collect();
    let fields = message.field.iter();
    fields
        .map(|field| {
            let entry = maps.get(last(field.type_name())).copied();
            (field.name().to_owned(), facts(message, field, entry))
        })
        .collect::<Map<_, _>>()
        .into()
}

fn facts(message: &DescriptorProto, field: &FieldDescriptorProto, entry: Option<&DescriptorProto>) -> Value {
    let mut facts = json!({"number": field.number(), "json": field.json_name()});
    if let Some(entry) = entry {
        assert_eq!(entry.field[0].r#type(), Type::String);
        let value = &entry.field[1];
        let value = match value.r#type() {
            Type::Message => value.type_name().trim_start_matches('.').to_owned(),
            scalar => name(scalar),
        };
        facts["type"] = "map".into();
        facts["value"] = value.into();
        return facts;
    }
    facts["type"] = name(field.r#type()).into();
    if !field.type_name().is_empty() {
        facts["of"] = field.type_name().trim_start_matches('.').into();
    }
    if field.label() == Label::Repeated {
        facts["repeated"] = true.into();
    }
    if field.proto3_optional() {
        facts["optional"] = true.into();
    } else if let Some(oneof) = field.oneof_index {
        let oneof = &message.oneof_decl[usize::try_from(oneof).unwrap()];
        facts["oneof"] = oneof.name().into();
    }
    facts
}

fn name(scalar: Type) -> String {
    let name = scalar.as_str_name().trim_start_matches("TYPE_");
    name.to_lowercase()
}

fn last(type_name: &str) -> &str {
    type_name.rsplit('.').next().unwrap_or_default()
}

fn enums(file: &FileDescriptorProto) -> Value {
    fn values(of: &EnumDescriptorProto) -> Value {
        let values = of.value.iter();
        values.map(|value| (value.name().to_owned(), value.number().into())).collect::<Map<_, _>>().into()
    }
    let enums = file.enum_type.iter();
    enums.map(|of| (of.name().to_owned(), values(of))).collect::<Map<_, _>>().into()
}

fn services(file: &FileDescriptorProto) -> Value {
    fn methods(of: &ServiceDescriptorProto) -> Value {
        let methods = of.method.iter();
        methods
            .map(|method| {
                assert!(!method.client_streaming());
                let facts = json!({
                    "request": method.input_type().trim_start_matches('.'),
                    "response": method.output_type().trim_start_matches('.'),
                    "server_streaming": method.server_streaming(),
                });
                (method.name().to_owned(), facts)
            })
            .collect::<Map<_, _>>()
            .into()
    }
    let services = file.service.iter();
    services.map(|of| (of.name().to_owned(), methods(of))).collect::<Map<_, _>>().into()
}
