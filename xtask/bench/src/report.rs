//! Figures, what they are judged by, and how both are shown.

use serde::Serialize;

/// One figure.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Unit of the figure.
    pub unit: &'static str,
    /// What the figure is judged by, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

/// A figure beside its target.
#[derive(Debug, Serialize)]
pub struct Judged {
    /// The number that is held against the target.
    pub measured: f64,
    /// What that number is.
    pub meaning: String,
    /// The target.
    pub target: f64,
    /// The side of the target that is good.
    pub bound: Bound,
    /// Whether the target is met.
    pub met: bool,
    /// Whether it is only an aim: missing it fails no run.
    pub aim: bool,
}

/// The side of a target that is good.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The target or more.
    AtLeast,
    /// The target or less.
    AtMost,
}

impl Figure {
    /// A figure without a target.
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, judged: None }
    }

    /// Judges the figure by its ratio to `base`.
    pub fn ratio(self, base: f64, of: &str, bound: Bound, target: f64) -> Self {
        let measured = if base > 0.0 { self.value / base } else { 0.0 };
        self.judged_by(measured, format!("of {of}"), bound, target)
    }

    /// Judges the figure itself; `rule` says where the limit comes from.
    pub fn limit(self, rule: &str, bound: Bound, limit: f64) -> Self {
        let measured = self.value;
        self.judged_by(measured, rule.to_owned(), bound, limit)
    }

    /// Makes the target an aim.
    pub fn aim(mut self) -> Self {
        if let Some(judged) = &mut self.judged {
            judged.aim = true;
        }
        self
    }

    fn judged_by(mut self, measured: f64, meaning: String, bound: Bound, target: f64) -> Self {
        let met = match bound {
            Bound::AtLeast => measured >= target,
            Bound::AtMost => measured <= target,
        };
        self.judged = Some(Judged { measured, meaning, target, bound, met, aim: false });
        self
    }
}

/// The figures of one section.
#[derive(Debug, Serialize)]
pub struct Section {
    /// Name of the section, as `--only` takes it.
    pub name: &'static str,
    /// What could not be measured, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// Where the run took place.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Version of the kernel.
    pub kernel: String,
    /// Processes that were running or waiting in the minute before the run; an idle machine has 0.
    pub load: f64,
    /// Version of SQLite in the bare loop.
    pub sqlite: &'static str,
}

/// All of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The flags of the run.
    pub command: String,
    /// Where it took place.
    pub machine: Machine,
    /// The sections, in the order in which they ran.
    pub sections: Vec<Section>,
}

impl Report {
    /// Whether everything was measured and every target met.
    pub fn all_met(&self) -> bool {
        self.sections.iter().all(|section| {
            let missed = |figure: &Figure| figure.judged.as_ref().is_some_and(|judged| !judged.met && !judged.aim);
            section.error.is_none() && !section.figures.iter().any(missed)
        })
    }
}

impl Machine {
    /// Asks this machine.
    pub fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: processor.unwrap_or_else(|| "unknown".to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            load: load.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0),
            sqlite: rusqlite::version(),
        }
    }
}

impl Machine {
    /// The machine as lines of plain text.
    pub fn to_text(&self) -> String {
        let Self { processor, processors, kernel, load, sqlite } = self;
        format!(
            "{processor}, {processors} processors, Linux {kernel}, load {load} before the run; \
             SQLite {sqlite} in the bare loop\n"
        )
    }
}

impl Section {
    /// The section as a table of plain text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.name);
        let width = self.figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or(0);
        for figure in &self.figures {
            let (value, unit) = (number(figure.value), figure.unit);
            let line = format!("  {:width$}  {value:>10} {unit:<4}", figure.what);
            let judged = figure.judged.as_ref().map(Judged::to_text).unwrap_or_default();
            text.push_str(format!("{line}  {judged}").trim_end());
            text.push('\n');
        }
        if let Some(error) = &self.error {
            text.push_str(&format!("  not measured: {error}\n"));
        }
        text
    }
}

impl Report {
    /// The report as tables for `docs/performance.md`.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("`longhaul-bench {}` on {}", self.command, self.machine.to_text());
        for section in &self.sections {
            text.push_str(&format!(
                "\n### {}\n\n| what | figure | beside | target | |\n| --- | ---: | --- | --- | --- |\n",
                section.name
            ));
            for figure in &section.figures {
                let judged = figure.judged.as_ref().map_or_else(|| "| |".to_owned(), Judged::to_cells);
                let (value, unit) = (number(figure.value), figure.unit);
                text.push_str(&format!("| {} | {value} {unit} | {judged} |\n", figure.what));
            }
            if let Some(error) = &section.error {
                text.push_str(&format!("\nNot measured: {error}.\n"));
            }
        }
        text
    }
}

impl Judged {
    fn to_cells(&self) -> String {
        let (sign, verdict) = self.words();
        let kind = if self.aim { " (aim)" } else { "" };
        format!("{} {} | {sign} {}{kind} | {verdict}", number(self.measured), self.meaning, number(self.target))
    }

    fn to_text(&self) -> String {
        let (sign, verdict) = self.words();
        let word = if self.aim { "aim" } else { "target" };
        format!("{} {} ({word} {sign} {}) {verdict}", number(self.measured), self.meaning, number(self.target))
    }

    fn words(&self) -> (&'static str, &'static str) {
        let sign = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        (sign, if self.met { "met" } else { "MISSED" })
    }
}

/// A number with about four digits.
fn number(value: f64) -> String {
    let decimals = if value.abs() >= 1000.0 {
        0
    } else if value.abs() >= 100.0 {
        1
    } else if value.abs() >= 10.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_held_against_its_target() {
        let met = Figure::new("sends", 60.0, "/s").ratio(100.0, "floor", Bound::AtLeast, 0.5);
        assert!(met.judged.unwrap().met);
        let missed = Figure::new("time", 130.0, "us").ratio(100.0, "one thread", Bound::AtMost, 1.2);
        assert!(!missed.judged.unwrap().met);
    }

    #[test]
    fn nothing_to_compare_with_meets_no_lower_bound() {
        let figure = Figure::new("sends", 60.0, "/s").ratio(0.0, "floor", Bound::AtLeast, 0.5);
        assert!(!figure.judged.unwrap().met);
    }

    #[test]
    fn the_table_shows_figure_ratio_target_and_verdict() {
        let figure = Figure::new("sends", 6000.0, "/s").ratio(30_000.0, "floor", Bound::AtLeast, 0.5);
        let section = Section { name: "sends", error: None, figures: vec![figure] };
        assert_eq!(section.to_text(), "sends\n  sends        6000 /s    0.200 of floor (target >= 0.500) MISSED\n");
    }

    #[test]
    fn an_aim_that_is_missed_fails_no_run() {
        let figure = Figure::new("sends", 10.0, "/s").ratio(100.0, "floor", Bound::AtLeast, 0.2).aim();
        let section = Section { name: "sends", error: None, figures: vec![figure] };
        let report = Report { command: String::new(), machine: nowhere(), sections: vec![section] };
        assert!(report.all_met());
        let row = "| sends | 10.00 /s | 0.100 of floor | >= 0.200 (aim) | MISSED |\n";
        assert!(report.to_markdown().ends_with(row), "{}", report.to_markdown());
    }

    fn nowhere() -> Machine {
        let (processor, kernel) = (String::new(), String::new());
        Machine { processor, processors: 1, kernel, load: 0.0, sqlite: "" }
    }

    #[test]
    fn a_section_that_failed_is_not_met() {
        let machine = nowhere();
        let section = Section { name: "list", error: Some("needs a fill".to_owned()), figures: Vec::new() };
        assert!(!Report { command: String::new(), machine, sections: vec![section] }.all_met());
    }
}
