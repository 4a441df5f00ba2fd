//! What refers to what in an archive of relocatable objects.
//!
//! A section is the unit: the compiler puts every function, and every piece of constant data, into one of its own.

use std::collections::{HashMap, HashSet, VecDeque};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolIndex, SymbolKind};

/// A section, by its place in [`Objects::sections`].
type Id = usize;

/// What a section refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reference {
    /// A section of the same object.
    Section(Id),
    /// A symbol that another object defines, or none.
    Symbol(String),
}

#[derive(Debug, Default)]
struct Section {
    /// Its first symbol, or its own name.
    name: String,
    references: HashSet<Reference>,
}

/// The sections of all objects of an archive.
#[derive(Debug, Default)]
pub struct Objects {
    sections: Vec<Section>,
    /// Where a global symbol is defined.
    defined: HashMap<String, Id>,
}

impl Objects {
    /// Reads an archive.
    ///
    /// # Errors
    /// It is no archive of objects.
    pub fn read(archive: &[u8]) -> object::read::Result<Self> {
        let mut all = Self::default();
        for member in ArchiveFile::parse(archive)?.members() {
            let data = member?.data(archive)?;
            // An archive may hold other things, such as metadata.
            if let Ok(file) = object::File::parse(data) {
                all.add(&file)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, file: &object::File<'_>) -> object::read::Result<()> {
        let mut ids = HashMap::new();
        for section in file.sections() {
            ids.insert(section.index(), self.sections.len());
            self.sections.push(Section { name: section.name()?.to_owned(), ..Section::default() });
        }
        for symbol in file.symbols() {
            let Some(&id) = symbol.section_index().and_then(|index| ids.get(&index)) else { continue };
            if !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) {
                continue;
            }
            let name = symbol.name()?;
            if symbol.is_global() {
                self.defined.insert(name.to_owned(), id);
            }
            if let Some(section) = self.sections.get_mut(id).filter(|s| s.name.starts_with('.')) {
                section.name = demangled(name);
            }
        }
        for section in file.sections() {
            let references: HashSet<Reference> = section
                .relocations()
                .filter_map(|(_, relocation)| match relocation.target() {
                    RelocationTarget::Symbol(index) => reference(file, &ids, index),
                    RelocationTarget::Section(index) => ids.get(&index).copied().map(Reference::Section),
                    _ => None,
                })
                .collect();
            if let Some(own) = ids.get(&section.index()).and_then(|&id| self.sections.get_mut(id)) {
                own.references = references;
            }
        }
        Ok(())
    }

    /// Global symbols that begin with `prefix`, in order.
    pub fn entries(&self, prefix: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.defined.keys().map(String::as_str).filter(|name| name.starts_with(prefix)).collect();
        names.sort_unstable();
        names
    }

    /// The shortest way from the symbol `entry` to a name that `forbidden` holds for, given the name and whether it is
    /// defined in the archive.
    pub fn path_to(&self, entry: &str, forbidden: fn(&str, bool) -> bool) -> Option<Vec<String>> {
        let start = *self.defined.get(entry)?;
        let mut came_from: HashMap<Id, Id> = HashMap::new();
        let mut seen = HashSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            for reference in &self.sections.get(id)?.references {
                let (to, name) = match reference {
                    Reference::Section(to) => (Some(*to), self.name(*to)),
                    Reference::Symbol(name) => (self.defined.get(name).copied(), demangled(name)),
                };
                if forbidden(&name, to.is_some()) {
                    let mut path = vec![name];
                    let mut at = Some(id);
                    while let Some(id) = at {
                        path.push(self.name(id));
                        at = came_from.get(&id).copied();
                    }
                    path.reverse();
                    return Some(path);
                }
                if let Some(to) = to.filter(|to| seen.insert(*to)) {
                    came_from.insert(to, id);
                    queue.push_back(to);
                }
            }
        }
        None
    }

    fn name(&self, id: Id) -> String {
        self.sections.get(id).map(|section| section.name.clone()).unwrap_or_default()
    }
}

fn reference(
    file: &object::File<'_>,
    ids: &HashMap<object::SectionIndex, Id>,
    index: SymbolIndex,
) -> Option<Reference> {
    let symbol = file.symbol_by_index(index).ok()?;
    match symbol.section_index().and_then(|index| ids.get(&index)) {
        Some(&id) => Some(Reference::Section(id)),
        // Absolute symbols and the place of the global offset table have no name that anything defines.
        None => symbol
            .name()
            .ok()
            .filter(|name| !name.is_empty() && !name.starts_with("_GLOBAL_OFFSET"))
            .map(|name| Reference::Symbol(name.to_owned())),
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
