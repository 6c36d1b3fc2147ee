//! A command line that means nothing, in the form that the caller asked for.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::arguments::OutputForm;

use super::failure::{Exit, Failure};
use super::options::{output_variable, parse_output};
use super::run::tell;

/// Says what is wrong with the command line, and answers with the exit code; help and version are no faults.
pub fn refuse(error: &clap::Error, words: &[String]) -> ExitCode {
    let is_fault = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_fault || form(words) == OutputForm::Text {
        // Where help goes can't be written to, nobody reads it.
        let _ = error.print();
        return if is_fault { ExitCode::from(Exit::Usage.code()) } else { ExitCode::SUCCESS };
    }
    tell(&failure(error), OutputForm::Json)
}

/// What stdout is for, as far as words tell that could not be read.
fn form(words: &[String]) -> OutputForm {
    let mut said = None;
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "-o" | "--output" => words.next().map(String::as_str),
            word => word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o")),
        };
        said = value.map(|value| value.trim_start_matches('=').to_owned()).or(said);
    }
    let said = said.or_else(output_variable);
    said.and_then(|value| parse_output(&value)).unwrap_or(OutputForm::Text)
}

/// The library's text has the fault first, then how it is used.
fn failure(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let fault = text.split("\n\n").next().unwrap_or_default();
    let fault = fault.strip_prefix("error: ").unwrap_or(fault);
    let words: Vec<&str> = fault.split_whitespace().collect();
    Failure::usage(words.join(" ")).hint("--help after a command says what it takes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_of(line: &str) -> OutputForm {
        form(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_form_is_seen_even_where_the_rest_means_nothing() {
        for line in ["send --nonsense -o json", "send -ojson", "send -o=json", "task --output json", "--output=json x"]
        {
            assert_eq!(form_of(line), OutputForm::Json, "{line}");
        }
        for line in ["send", "send -o text", "send -o json -o text", "send -- -o json", "send -o"] {
            assert_eq!(form_of(line), OutputForm::Text, "{line}");
        }
    }
}
