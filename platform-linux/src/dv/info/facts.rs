//! Facts about a device, as text and as JSON.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// A fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Count(u64),
    /// A number of something.
    Of(u64, &'static str),
    /// Words.
    Text(String),
    /// Several words.
    List(Vec<String>),
    /// Whether it is there, as the device says.
    Flag(bool),
    /// Whether it is there, as was tried; otherwise why not.
    Tried(Result<(), String>),
}

impl Value {
    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    /// Text, or a dash in place of none.
    pub fn optional(text: Option<impl ToString>) -> Self {
        Self::Text(text.map_or_else(|| "-".into(), |text| text.to_string()))
    }

    pub fn tried<T, E: ToString>(result: &Result<T, E>) -> Self {
        Self::Tried(result.as_ref().map(|_| ()).map_err(ToString::to_string))
    }

    /// For people.
    fn told(&self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Of(count, unit) => format!("{count} {unit}"),
            Self::Text(text) if text.is_empty() => "-".into(),
            Self::Text(text) => text.clone(),
            Self::List(list) if list.is_empty() => "none".into(),
            Self::List(list) => list.join(", "),
            Self::Flag(true) | Self::Tried(Ok(())) => "yes".into(),
            Self::Flag(false) => "no".into(),
            Self::Tried(Err(why)) => format!("no: {why}"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) | Self::Of(count, _) => serializer.serialize_u64(*count),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => list.serialize(serializer),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Tried(Ok(())) => serializer.serialize_bool(true),
            Self::Tried(Err(why)) => serializer.serialize_str(&format!("no: {why}")),
        }
    }
}

/// Facts that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(pub Vec<(&'static str, Value)>);

impl Facts {
    /// A line for each, behind `indent` blanks.
    pub fn text(&self, indent: usize) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line =
            |(name, value): &(&str, Value)| format!("{:indent$}{name:<width$}  {}\n", "", value.told());
        self.0.iter().map(line).collect()
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(&key(name), value)?;
        }
        map.end()
    }
}

/// The key that a name has in JSON.
fn key(name: &str) -> String {
    name.to_lowercase().replace([' ', '-', '/'], "_")
}

/// Named facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub name: &'static str,
    pub facts: Facts,
}

/// An entry of a port's GID table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Gid {
    pub index: u32,
    pub gid: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub netdev: Option<String>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Port {
    pub number: u8,
    #[serde(flatten)]
    pub facts: Facts,
    pub gids: Vec<Gid>,
}

/// All that is told of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    pub device: String,
    pub sections: Vec<Section>,
    pub ports: Vec<Port>,
}

impl Info {
    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.device);
        for section in &self.sections {
            out += &format!("  {}\n{}", section.name, section.facts.text(4));
        }
        for port in &self.ports {
            out += &format!("  port {}\n{}", port.number, port.facts.text(4));
            let rows: Vec<_> = port
                .gids
                .iter()
                .map(|gid| {
                    let netdev = gid.netdev.clone().unwrap_or_else(|| "-".into());
                    vec![gid.index.to_string(), gid.kind.clone(), netdev, gid.gid.clone()]
                })
                .collect();
            if !rows.is_empty() {
                let table = crate::table::table(&["GID>", "TYPE", "NETDEV", "ADDRESS"], &rows);
                table.lines().for_each(|line| out += &format!("    {line}\n"));
            }
        }
        out
    }
}

impl Serialize for Info {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.device)?;
        for section in &self.sections {
            map.serialize_entry(&key(section.name), &section.facts)?;
        }
        map.serialize_entry("ports", &self.ports)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_to_people_with_units_and_to_programs_without() {
        let facts = Facts(vec![
            ("queue pairs", Value::Count(7)),
            ("page", Value::Of(4096, "bytes")),
            ("firmware", Value::text("")),
            ("flags", Value::List(Vec::new())),
            ("push", Value::Flag(false)),
            ("region", Value::Tried(Err("too old".into()))),
        ]);
        assert_eq!(
            facts.text(1),
            " queue pairs  7\n page         4096 bytes\n firmware     -\n flags        none\n push         no\n \
             region       no: too old\n"
        );
        assert_eq!(
            serde_json::to_value(&facts).expect("JSON"),
            serde_json::json!({"queue_pairs": 7, "page": 4096, "firmware": "", "flags": [], "push": false, "region": "no: too old"})
        );
    }
}
