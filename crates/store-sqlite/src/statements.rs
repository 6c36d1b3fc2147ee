/// All statements of one connection by name, prepared once. Each opens with its name, so that it is found in traces.
macro_rules! statements {
    ($($(#[doc = $doc:literal])* $name:ident = $sql:expr;)*) => {
        /// All that is ever said on this connection, prepared once.
        pub(super) struct Statements<'c> {
            $($(#[doc = $doc])* pub(super) $name: rusqlite::Statement<'c>,)*
        }

        impl<'c> Statements<'c> {
            pub(super) fn prepare(connection: &'c rusqlite::Connection) -> rusqlite::Result<Self> {
                Ok(Self {
                    $($name: connection.prepare_with_flags(
                        concat!("/* ", stringify!($name), " */ ", $sql),
                        rusqlite::PrepFlags::SQLITE_PREPARE_PERSISTENT,
                    )?,)*
                })
            }

            /// Each statement with its name, so that a test can look at how it is worked out.
            #[cfg(test)]
            pub(super) fn texts() -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), $sql),)*]
            }
        }
    };
}

pub(crate) use statements;
