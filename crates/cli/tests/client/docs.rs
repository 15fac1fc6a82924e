//! Every public item of the client has an example, which the doc tests compile.
//!
//! A type, trait, function or macro has one in its own docs. A method or constant may do with being used in the example of
//! its type or its neighbours: the reader finds it there, and an example for each accessor would drown the useful ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A public item, as it stands in the source.
struct Item {
    file: String,
    owner: Option<String>,
    name: String,
    is_constant: bool,
    /// The examples in its docs.
    examples: String,
}

#[test]
fn every_public_item_has_an_example() {
    let mut items = Vec::new();
    for file in source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../client/src")) {
        // What the macros expand to is public and meant for nobody.
        if !file.ends_with("src/macros.rs") {
            let text = std::fs::read_to_string(&file).unwrap();
            items.extend(public_items(&file.display().to_string(), &text));
        }
    }
    // The async and the blocking clients have the same names; their examples are taken together.
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    for item in items.iter().filter(|item| item.owner.is_none()) {
        types.entry(item.name.clone()).or_default().push_str(&item.examples);
    }
    assert!(types.len() > 80, "the source has been read: {}", types.len());
    let is_shown = |item: &Item| match &item.owner {
        Some(owner) => {
            // Methods of types that are not public are nobody's to call.
            let Some(examples) = types.get(owner) else { return true };
            let is_used = item.is_constant && names(examples, &item.name);
            is_used || names(&item.examples, &item.name) || calls(examples, &item.name)
        }
        None if item.is_constant => {
            items.iter().any(|other| other.file == item.file && names(&other.examples, &item.name))
        }
        None => names(&item.examples, &item.name),
    };
    let missing: Vec<_> = items
        .iter()
        .filter(|item| !is_shown(item))
        .map(|Item { file, owner, name, .. }| {
            format!("{file}: {}{name}", owner.as_ref().map_or(String::new(), |o| format!("{o}::")))
        })
        .collect();
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
}

/// The scanner is what the test above stands on.
#[test]
fn items_without_an_example_are_seen() {
    let source = "/// Docs.\n///\n/// ```\n/// Shown::new().used();\n/// ```\n#[derive(Debug)]\n\
                  pub struct Shown;\n\nimpl<T> Shown<T> {\n    /// Docs.\n    pub fn new() {}\n\n    \
                  #[doc(hidden)]\n    pub fn hidden() {}\n    fn private() {}\n}\n\npub trait Bare {\n    \
                  fn method();\n}\n\npub use tavola_wire::{\n    One, Two,\n};\n";
    let found: Vec<_> = public_items("file", source)
        .into_iter()
        .map(|item| (item.owner.unwrap_or_default(), item.name, item.examples.len() > 1))
        .collect();
    let expected = [
        ("", "Shown", true),
        ("Shown", "new", false),
        ("", "Bare", false),
        ("Bare", "method", false),
        ("", "One", false),
        ("", "Two", false),
    ];
    assert_eq!(found, expected.map(|(owner, name, shown)| (owner.into(), name.into(), shown)));
    assert!(names("let a = Shown;", "Shown") && !names("Showns", "Shown"));
    assert!(calls("a.used::<u8>()", "used") && !calls("// used", "used"));
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(source_files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// The public items before the tests. The formatter's layout is relied on: the items of a file stand at its margin, those
/// of an `impl` or a trait four blanks in.
fn public_items(file: &str, text: &str) -> Vec<Item> {
    let source = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut items, mut scope) = (Vec::new(), Scope::default());
    let (mut docs, mut is_hidden) = (String::new(), false);
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push_str(doc.strip_prefix(' ').unwrap_or(doc));
            docs.push('\n');
            continue;
        }
        if code.starts_with("#[") {
            is_hidden |= code == "#[doc(hidden)]";
            // One of several lines ends at the margin where it began.
            if !code.ends_with(']') {
                lines.by_ref().find(|line| line.trim_start() == ")]");
            }
            continue;
        }
        let is_member = line.len() == code.len() + 4;
        if line.len() == code.len() {
            scope.enter(code);
        }
        let names = match code.strip_prefix("pub use tavola_") {
            Some(path) => imported(path, &mut lines),
            None => declared(code, is_member && scope.is_trait).into_iter().collect(),
        };
        let examples = examples(&std::mem::take(&mut docs));
        // Members of a module, such as serde's functions, are shown by its example.
        let is_listed = !std::mem::take(&mut is_hidden) && (!is_member || scope.owner.is_some());
        items.extend(names.into_iter().filter(|_| is_listed).map(|name| Item {
            file: file.to_owned(),
            owner: scope.owner.clone().filter(|_| is_member),
            is_constant: code.starts_with(&format!("pub const {name}")),
            name,
            examples: examples.clone(),
        }));
    }
    items
}

/// Whose members come next.
#[derive(Default)]
struct Scope {
    owner: Option<String>,
    is_trait: bool,
}

impl Scope {
    /// Reads a line at the margin.
    fn enter(&mut self, code: &str) {
        if code.is_empty() || code.starts_with(['}', ')', '/']) || code.starts_with("where") {
            return;
        }
        self.is_trait = code.starts_with("pub trait ");
        self.owner = match code.strip_prefix("impl") {
            Some(rest) if !rest.contains(" for ") => Some(word(after_generics(rest).trim_start())),
            Some(_) => None,
            None => declared(code, false).filter(|_| self.is_trait),
        };
    }
}

fn after_generics(text: &str) -> &str {
    let mut depth = 0_i32;
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => return &text[at..],
            _ => {}
        }
    }
    ""
}

/// The name that a line declares in public; in a trait, everything is.
fn declared(code: &str, in_trait: bool) -> Option<String> {
    let code = match code.strip_prefix("pub ") {
        Some(code) => code,
        None if in_trait => code,
        None => return None,
    };
    let code = code.strip_prefix("async ").unwrap_or(code);
    let code = code.strip_prefix("const fn ").map_or(code, |_| &code["const ".len()..]);
    let kinds = ["struct ", "enum ", "trait ", "type ", "fn ", "const ", "mod "];
    let rest = kinds.iter().find_map(|kind| code.strip_prefix(kind))?;
    // A module in a file of its own is its items; a macro's `$name` is none yet.
    let is_elsewhere = code.starts_with("mod ") && code.ends_with(';');
    (!is_elsewhere && !rest.starts_with('$')).then(|| word(rest))
}

/// The names that a `pub use` takes from our other crates.
fn imported<'t>(path: &str, lines: &mut impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut path = path.to_owned();
    while !path.contains(';') {
        path.push_str(lines.next().unwrap_or(";"));
    }
    let path = path.replace(['{', '}', ';'], "");
    let (_, names) = path.rsplit_once("::").unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    // The name that it gets here.
    names.map(|name| word(name.rsplit(' ').next().unwrap_or_default())).collect()
}

fn word(text: &str) -> String {
    text.chars().take_while(|character| is_word(*character)).collect()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The fenced parts of docs.
fn examples(docs: &str) -> String {
    docs.split("```").skip(1).step_by(2).collect()
}

fn names(examples: &str, name: &str) -> bool {
    uses(examples, name).next().is_some()
}

/// As [`names`], and with parentheses.
fn calls(examples: &str, name: &str) -> bool {
    uses(examples, name).any(|rest| rest.starts_with('(') || rest.starts_with("::<"))
}

/// What follows each use of a name.
fn uses<'t>(examples: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    examples.match_indices(name).filter_map(move |(at, _)| {
        let rest = &examples[at + name.len()..];
        let is_whole = !examples[..at].ends_with(is_word) && !rest.starts_with(is_word);
        is_whole.then_some(rest)
    })
}
