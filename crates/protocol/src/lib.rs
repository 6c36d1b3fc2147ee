//! The A2A data model, its ProtoJSON form, typed ids and the error table
