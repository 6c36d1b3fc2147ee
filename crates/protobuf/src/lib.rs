//! Protobuf messages and gRPC service of A2A v1.0, and conversions to the data model
