//! Code made by `cargo xtask codegen` from `proto/`; never edited by hand.
//!
//! The modules are nested as the packages are, since generated code of one package reaches for
//! another by `super`.

/// Package `a2a`.
pub mod a2a {
    /// Package `a2a.v1`: the messages and the service of A2A v0.3.
    pub mod v1 {
        include!("generated/a2a.v1.rs");
    }
}

/// Package `google`.
pub mod google {
    /// Package `google.rpc`: errors with details.
    pub mod rpc {
        include!("generated/google.rpc.rs");
    }
}

/// Package `lf`.
pub mod lf {
    /// Package `lf.a2a`.
    pub mod a2a {
        /// Package `lf.a2a.v1`: the messages and the service of A2A v1.0.
        pub mod v1 {
            include!("generated/lf.a2a.v1.rs");
        }
    }
}

/// Package `longhaul`.
pub mod longhaul {
    /// Package `longhaul.v1`: artifact versions.
    pub mod v1 {
        include!("generated/longhaul.v1.rs");
    }
}

/// The compiled descriptors of all packages and what they import: an encoded
/// `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor.bin");
