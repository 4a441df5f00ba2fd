//! What the user sees while something runs: on a terminal one moving line, elsewhere a line now and then.

use std::io::IsTerminal;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Without a terminal, a running step says so this often.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The moving lines of all steps under way, one below the other.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A step under way.
#[derive(Debug)]
pub struct Step {
    title: String,
    started: Instant,
    spoke: Instant,
    bar: Option<ProgressBar>,
    /// Standard output is for a result that a program reads: progress goes to standard error.
    aside: bool,
}

impl Step {
    /// Begins a step.
    pub fn new(title: impl Into<String>) -> Self {
        Self::begin(title.into(), false)
    }

    /// Begins a step that leaves standard output alone.
    pub fn aside(title: impl Into<String>) -> Self {
        Self::begin(title.into(), true)
    }

    fn begin(title: String, aside: bool) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = BARS.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed}  {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(title.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let now = Instant::now();
        let step = Self { title, started: now, spoke: now, bar, aside };
        if step.bar.is_none() {
            step.say(&format!("{} ...", step.title));
        }
        step
    }

    /// Shows what it is at.
    pub fn at(&mut self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.trim().to_owned());
        } else if self.spoke.elapsed() >= HEARTBEAT {
            self.spoke = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            self.say(&format!("{} ... {seconds} s: {}", self.title, what.trim()));
        }
    }

    /// Time since it began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends it with a word.
    pub fn end(self, word: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.say(&format!("{}: {word}, {:.1} s", self.title, self.started.elapsed().as_secs_f64()));
    }

    fn say(&self, line: &str) {
        if self.aside { warn(line) } else { say(line) }
    }
}

/// Prints a line above the moving ones.
pub fn say(line: &str) {
    BARS.suspend(|| println!("{line}"));
}

/// Prints a line above the moving ones, on standard error.
pub fn warn(line: &str) {
    BARS.suspend(|| eprintln!("{line}"));
}
