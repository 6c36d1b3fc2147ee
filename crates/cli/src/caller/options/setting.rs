//! The settings that can come from more than the command line.

/// Whether a value may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Secrecy {
    /// It may.
    Open,
    /// It may not.
    Secret,
    /// Its name may, what follows the colon may not.
    SecretValue,
}

macro_rules! settings {
    ($($key:ident = $flag:literal, $secrecy:ident, $default:literal;)+) => {
        /// A setting.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Setting {
            $(#[doc = $flag] $key,)+
        }

        impl Setting {
            /// Each once, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$key,)+];

            /// The long flag, without its dashes.
            pub fn flag(self) -> &'static str {
                match self {
                    $(Self::$key => $flag,)+
                }
            }

            /// Whether it may be shown.
            pub fn secrecy(self) -> Secrecy {
                match self {
                    $(Self::$key => Secrecy::$secrecy,)+
                }
            }

            /// What holds when nothing is said, for people.
            pub fn default_words(self) -> &'static str {
                match self {
                    $(Self::$key => $default,)+
                }
            }
        }
    };
}

// `--stream`, `--interactive` and `--save` are not among them: they are only ever asked for on the command line.
settings! {
    AgentCard = "agent-card", Open, "";
    Transport = "transport", Open, "the order of the card";
    A2aVersion = "a2a-version", Open, "the highest that both speak";
    Bearer = "bearer", Secret, "";
    ApiKey = "api-key", Secret, "";
    SvcParam = "svc-param", SecretValue, "";
    Insecure = "insecure", Open, "false";
    Ca = "ca", Open, "the certificates of the system";
    ClientCert = "client-cert", Open, "";
    ClientKey = "client-key", Open, "";
    AnyInterface = "any-interface", Open, "false";
    CardKeys = "card-keys", Open, "";
    JkuAllow = "jku-allow", Open, "none";
    RequireVerified = "require-verified", Open, "false";
    ClientId = "client-id", Open, "";
    ClientSecret = "client-secret", Secret, "";
    Ledger = "ledger", Open, "the usual place";
    Timeout = "timeout", Open, "none";
    PollInterval = "poll-interval", Open, "2s";
    Output = "output", Open, "text";
    Verbose = "verbose", Open, "false";
    Debug = "debug", Open, "false";
    Async = "async", Open, "false";
    ContextId = "context-id", Open, "";
    TaskId = "task-id", Open, "";
    Metadata = "metadata", Open, "";
    Accept = "accept", Open, "any";
}

/// The flag that says the opposite of [`Setting::Async`], and names a variable too.
pub const WAIT: &str = "wait";

/// The variable of a flag.
pub fn variable(flag: &str) -> String {
    format!("A2ACLI_{}", flag.replace('-', "_").to_ascii_uppercase())
}
