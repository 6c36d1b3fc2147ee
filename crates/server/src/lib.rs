//! The bindings of A2A: JSON-RPC, HTTP+JSON and gRPC on one port
