//! The machine's own package sources: which mirror it uses.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// The mirror that this machine takes its distribution's main packages from.
///
/// # Errors
/// No source of that suite, or this is not Debian.
pub fn mirror() -> Result<String> {
    let release = Path::new("/etc/os-release");
    let text = fs::read_to_string(release).map_err(Error::file(release))?;
    let value = |key| text.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("").trim_matches('"');
    let (id, suite) = (value("ID="), value("VERSION_CODENAME="));
    if id != "debian" {
        return Err(Error::Unexpected(format!("the lab needs Debian, this is {id:?}")));
    }
    let mut files = vec![Path::new("/etc/apt/sources.list").to_owned()];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|e| e.path()));
    }
    files.sort();
    let of_file = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        if path.extension().is_some_and(|e| e == "sources") {
            deb822(&text, suite)
        } else {
            one_line(&text, suite)
        }
    };
    files
        .iter()
        .find_map(|path| of_file(path))
        .ok_or_else(|| Error::Unexpected(format!("no package source for {suite} in /etc/apt/sources.list*")))
}

/// The first URI of a stanza that serves `suite`.
fn deb822(text: &str, suite: &str) -> Option<String> {
    text.split("\n\n").find_map(|stanza| {
        let field = |name: &str| stanza.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        let has =
            |name: &str, word: &str| field(name).is_some_and(|v| v.split_whitespace().any(|w| w == word));
        let on = field("Enabled").is_none_or(|v| v.trim() != "no");
        let uri = field("URIs")?.split_whitespace().next()?;
        (on && has("Types", "deb") && has("Suites", suite) && has("Components", "main"))
            .then(|| uri.to_owned())
    })
}

/// The URI of a line `deb [options] URI suite components` that serves `suite`.
fn one_line(text: &str, suite: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = rest.strip_prefix('[').map_or(Some(rest), |r| r.split_once(']').map(|(_, r)| r))?;
        let mut words = rest.split_whitespace();
        let (uri, of) = (words.next()?, words.next()?);
        (of == suite && words.any(|w| w == "main")).then(|| uri.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deb822_stanza_gives_its_mirror() {
        let text = "Types: deb\n# a comment\nURIs: http://a.example/debian\nSuites: x x-updates\nComponents: main\n\n\
                    Types: deb\nURIs: http://b.example/sec\nSuites: x-security\nComponents: main\n";
        assert_eq!(deb822(text, "x").as_deref(), Some("http://a.example/debian"));
        assert_eq!(deb822(text, "x-security").as_deref(), Some("http://b.example/sec"));
        assert_eq!(deb822(text, "y"), None);
    }

    #[test]
    fn a_one_line_source_gives_its_mirror() {
        let text = "# deb http://no.example x main\ndeb-src http://src.example x main\n\
                    deb [arch=amd64 trusted=yes] http://a.example/debian x main contrib\n";
        assert_eq!(one_line(text, "x").as_deref(), Some("http://a.example/debian"));
        assert_eq!(one_line(text, "y"), None);
    }
}
