//! The part flags of `send`: repeatable, and read in the order in which they stand on the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// One of the flags, or a word without a flag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PartFlag {
    /// A word without a flag: a text part.
    Words(String),
    /// `--text`
    Text(String),
    /// `--file`
    File(String),
    /// `--data`
    Data(String),
    /// `--media-type`, about the flag before it.
    MediaType(String),
}

/// All of them, in their order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PartFlags(pub Vec<PartFlag>);

/// Makes a flag of what was given.
type Make = fn(String) -> PartFlag;

const FLAGS: [(&str, Make); 5] = [
    ("words", PartFlag::Words),
    ("text", PartFlag::Text),
    ("file", PartFlag::File),
    ("data", PartFlag::Data),
    ("media-type", PartFlag::MediaType),
];

impl FromArgMatches for PartFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut placed: Vec<(usize, PartFlag)> = Vec::new();
        for (name, make) in FLAGS {
            let values = matches.get_many::<String>(name).unwrap_or_default();
            let places = matches.indices_of(name).into_iter().flatten();
            placed.extend(places.zip(values).map(|(place, value)| (place, make(value.clone()))));
        }
        placed.sort_by_key(|(place, _)| *place);
        Ok(Self(placed.into_iter().map(|(_, flag)| flag).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PartFlags {
    fn augment_args(command: Command) -> Command {
        let repeated = |name: &'static str, value: &'static str| {
            Arg::new(name).long(name).value_name(value).action(ArgAction::Append)
        };
        command
            .arg(
                Arg::new("words")
                    .value_name("TEXT")
                    .action(ArgAction::Append)
                    .num_args(0..)
                    .help("What to say; each TEXT is a text part, as with --text"),
            )
            .arg(repeated("text", "TEXT").allow_hyphen_values(true).help("A text part"))
            .arg(repeated("file", "PATH|URL").help(
                "A file part: a file of this machine goes along, that of a URL is fetched by the agent; - reads stdin",
            ))
            .arg(repeated("data", "PATH").help("A data part from a file with JSON; - reads stdin"))
            .arg(
                repeated("media-type", "TYPE")
                    .help("What the part of the flag right before it is [default: by its name]"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
