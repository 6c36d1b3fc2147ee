//! Protobuf messages and gRPC services of A2A v1.0 and v0.3, and conversions to the data model.
//!
//! - [`a2a`], [`a2a_v0_3`], [`artifact`] and [`rpc`] are generated from `proto/` by `cargo xtask codegen`: messages,
//!   and for each service a server trait and a client without a transport.
//! - [`json_value`] holds what stands for `google.protobuf.Value` and `Struct`.
//! - [`codec`] puts them on the wire of gRPC.
//! - [`convert`] turns the messages into those of `longhaul_protocol::wire` and back, those of v0.3 through
//!   `longhaul_protocol::v0_3`.
//! - [`status`] turns an A2A error into a gRPC status with details and back.
//!
//! Nothing here decides anything: rules are in `longhaul-protocol`, behaviour is in the engine.

pub mod codec;
pub mod convert;
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated code is as the generators make it"
)]
mod generated;
pub mod json_value;
pub mod status;

pub use convert::ConvertError;
pub use generated::FILE_DESCRIPTOR_SET;
pub use generated::a2a::v1 as a2a_v0_3;
pub use generated::google::rpc;
pub use generated::lf::a2a::v1 as a2a;
pub use generated::longhaul::v1 as artifact;
pub use json_value::{JsonStruct, JsonValue};
