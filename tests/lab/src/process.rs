//! Runs programs: output to a log and to the progress line, with a time limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{fs, path::Path, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};
use crate::progress::Step;

/// Lines of output that an error carries.
const TAIL: usize = 40;

/// What a program left behind.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote, both streams in order.
    pub text: String,
}

impl Output {
    /// The last lines.
    pub fn tail(&self) -> String {
        tail(&self.text)
    }
}

/// The last lines of a text.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or(&[]).join("\n")
}

/// A command as one would type it.
pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The program `name` is in the search path.
pub fn found(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|dir| dir.join(name).is_file())
}

/// Runs `command` to its end, whatever that is.
///
/// # Errors
/// It could not be started, ran longer than `limit`, or the log could not be written.
pub fn run(command: &mut Command, log: &Path, step: &mut Step, limit: Duration) -> Result<Output> {
    let words = spelled(command);
    let mut file = File::options().create(true).append(true).open(log).map_err(Error::file(log))?;
    writeln!(file, "$ {words}").map_err(Error::file(log))?;

    let start = |source| Error::Start { program: words.clone(), source };
    let (reader, writer) = io::pipe().map_err(start)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(start)?).stderr(writer);
    let mut child = command.spawn().map_err(start)?;
    // The command holds the pipe's writing end; without this the reader would never see its end.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let text = gather(lines(reader), &mut file, step, limit);
    let status = match &text {
        Gathered::All(_) => child.wait().map_err(start)?,
        Gathered::TooLong(_) => {
            end_tree(child.id());
            child.wait().map_err(start)?
        }
    };
    match text {
        Gathered::All(text) => Ok(Output { status, text }),
        Gathered::TooLong(text) => {
            let last = text.lines().last().unwrap_or_default().to_owned();
            Err(Error::TimeOut { command: words, limit, last })
        }
    }
}

/// Runs `command` and wants it to succeed.
///
/// # Errors
/// As [`run`], or it failed.
pub fn succeed(command: &mut Command, log: &Path, step: &mut Step, limit: Duration) -> Result<String> {
    let output = run(command, log, step, limit)?;
    if output.status.success() {
        Ok(output.text)
    } else {
        Err(Error::Failed { command: spelled(command), status: output.status, tail: output.tail() })
    }
}

enum Gathered {
    All(String),
    TooLong(String),
}

fn lines(reader: io::PipeReader) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
            line.clear();
        }
    });
    receiver
}

fn gather(lines: Receiver<String>, log: &mut File, step: &mut Step, limit: Duration) -> Gathered {
    let started = Instant::now();
    let (mut text, mut last) = (String::new(), String::new());
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                // A log that cannot be written is no reason to lose the result.
                let _ = log.write_all(line.as_bytes());
                if !line.trim().is_empty() {
                    last.clone_from(&line);
                }
                text.push_str(&line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Gathered::All(text),
        }
        step.at(&last);
        if started.elapsed() > limit {
            return Gathered::TooLong(text);
        }
    }
}

/// Ends a process and all that descend from it: a test binary outlives the cargo that started it.
fn end_tree(id: u32) {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended by itself in the meantime.
        let _ = kill_process(pid, Signal::KILL);
    }
    children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(end_tree);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (Command, std::path::PathBuf) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let name: String = script.chars().filter(char::is_ascii_alphanumeric).collect();
        (command, std::env::temp_dir().join(format!("lab-test-{}-{name}.log", std::process::id())))
    }

    #[test]
    fn both_streams_are_gathered_and_logged() {
        let (mut command, log) = shell("echo out; echo err >&2; exit 3");
        let output = run(&mut command, &log, &mut Step::new("test"), Duration::from_secs(20)).unwrap();
        assert_eq!((output.status.code(), output.text.as_str()), (Some(3), "out\nerr\n"));
        assert!(fs::read_to_string(&log).unwrap().ends_with("out\nerr\n"));
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_program_that_hangs_is_stopped_with_its_children() {
        let (mut command, log) = shell("echo begun; sleep 600 | sleep 601");
        let error = run(&mut command, &log, &mut Step::new("test"), Duration::from_secs(1)).unwrap_err();
        assert!(matches!(&error, Error::TimeOut { last, .. } if last == "begun"), "{error}");
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_failure_carries_the_last_lines() {
        let (mut command, log) = shell("seq 1000; false");
        let error = succeed(&mut command, &log, &mut Step::new("test"), Duration::from_secs(20)).unwrap_err();
        assert!(error.to_string().ends_with("999\n1000"), "{error}");
        fs::remove_file(log).unwrap();
    }
}
