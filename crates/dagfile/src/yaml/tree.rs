//! Parser events to a tree: budgets, anchors, merge keys, repeated keys. No recursion.

use super::entries::{Key, add_entry, merge};
use super::locate::Source;
use super::scalar::{Kind, resolve};
use super::{Content, DEPTH_MAX, Entry, LEAF, NODES_MAX, Node, Scalar, Size, TEXT_MAX};
use crate::diagnostic::{Findings, Place, quoted};
use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, Span, Tag};
use std::collections::BTreeMap;

/// Reads one document (null if there is none); `None` after an error that ends the reading.
pub(crate) fn read(text: &str, findings: &mut Findings) -> Option<Node> {
    let limit = usize::try_from(DEPTH_MAX).unwrap_or(usize::MAX);
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: limit,
        block_nesting_limit: limit,
    };
    let mut builder = Builder::new(text, findings);
    for event in Parser::new_from_str_with_options(text, options) {
        let accepted = match event {
            Ok((event, span)) => builder.accept(event, span),
            Err(error) if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) => {
                Err(Stop::too_deep(place(error.marker())))
            }
            Err(error) => {
                let line = text.lines().nth(error.marker().line().saturating_sub(1));
                let has_template = line.is_some_and(|line| line.contains("{{"));
                let hint = if has_template { QUOTE_IT } else { "" };
                Err(Stop::at(error.marker(), "yaml-syntax", error.info(), hint))
            }
        };
        if let Err(stop) = accepted {
            // What trips the parser on a line with an unquoted template is that template.
            if stop.hint != QUOTE_IT || !builder.findings.is_on_line(stop.place.line) {
                builder.findings.error(stop.place, stop.code, stop.message, stop.hint);
            }
            return None;
        }
    }
    Some(builder.root.unwrap_or_else(nothing))
}

const QUOTE_IT: &str = "a value that begins with `{{` must be quoted: \"{{ ... }}\"";

/// What a file without a document holds.
fn nothing() -> Node {
    let scalar = Scalar { text: String::new(), kind: Kind::Null, source: Source::NOWHERE };
    Node { place: Place::FILE, content: Content::Scalar(scalar), size: LEAF }
}

/// A mistake that ends the reading.
struct Stop {
    place: Place,
    code: &'static str,
    message: String,
    hint: String,
}

impl Stop {
    fn new(place: Place, code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self { place, code, message: message.into(), hint: hint.into() }
    }
    fn at(marker: &Marker, code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self::new(place(marker), code, message, hint)
    }
    fn too_deep(place: Place) -> Self {
        Self::new(place, "too-deep", format!("nested more than {DEPTH_MAX} deep"), "")
    }
    fn too_large(place: Place) -> Self {
        let message = format!("the document has more than {NODES_MAX} values or 4 MiB of text");
        Self::new(place, "too-large", message, "aliases count with all that they stand for")
    }
}

struct Builder<'a> {
    file: &'a str,
    findings: &'a mut Findings,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    root: Option<Node>,
    documents: u32,
    spent: Size,
}

/// A list or mapping whose end has not come yet.
struct Open {
    place: Place,
    anchor: usize,
    items: Items,
    size: Size,
    /// Where it begins in the file, in bytes.
    start: usize,
}

enum Items {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, lines: BTreeMap<String, u32>, key: Option<Key>, is_braced: bool },
}

impl<'a> Builder<'a> {
    fn new(file: &'a str, findings: &'a mut Findings) -> Self {
        let spent = Size { nodes: 0, text: 0, depth: 0 };
        let (open, anchors) = (Vec::new(), BTreeMap::new());
        Self { file, findings, open, anchors, root: None, documents: 0, spent }
    }

    fn accept(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        match event {
            Event::DocumentStart(..) => self.documents += 1,
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar(text.into_owned(), style, tag.as_deref(), span)?;
                return self.finish(node, anchor);
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq", &span)?;
                return self.start(Items::List(Vec::new()), anchor, &span);
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", &span)?;
                let (entries, lines) = (Vec::new(), BTreeMap::new());
                let map = Items::Map { entries, lines, key: None, is_braced: false };
                return self.start(map, anchor, &span);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(&span),
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::UnresolvedAlias(name) => {
                let message = format!("there is no anchor `&{name}` before this alias");
                return Err(Stop::at(&span.start, "yaml-syntax", message, ""));
            }
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Anchor(..) | _ => {}
        }
        if self.documents > 1 {
            let message = "a second document begins here; a file holds one DAG";
            return Err(Stop::at(&span.start, "one-document", message, "move it to its own file"));
        }
        Ok(())
    }

    fn start(&mut self, items: Items, anchor: usize, span: &Span) -> Result<(), Stop> {
        let (place, start) = (place(&span.start), span.start.byte_offset().unwrap_or(0));
        self.open.push(Open { place, anchor, items, size: LEAF, start });
        self.check_depth(0)
    }

    fn end(&mut self, span: &Span) -> Result<(), Stop> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let content = match open.items {
            Items::List(items) => Content::List(items),
            Items::Map { is_braced: true, .. } => {
                let message = "`{{` begins a YAML mapping here";
                self.findings.error(open.place, "unquoted-template", message, QUOTE_IT);
                let end = span.end.byte_offset().unwrap_or(open.start);
                // Taken for the text that was meant, so that nothing follows from the mistake.
                let text = self.file.get(open.start..end).unwrap_or_default().to_owned();
                let source = Source { start: open.start, end, is_literal: false };
                Content::Scalar(Scalar { text, kind: Kind::Text, source })
            }
            Items::Map { entries, .. } => Content::Map(merge(entries, self.findings)),
        };
        self.finish(Node { place: open.place, content, size: open.size }, open.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some(target) = self.anchors.get(&anchor) else {
            let message = "this alias stands within what it stands for";
            return Err(Stop::at(&span.start, "yaml-syntax", message, ""));
        };
        let size = target.size;
        let is_affordable = self.spent.nodes.saturating_add(size.nodes) <= NODES_MAX
            && self.spent.text.saturating_add(size.text) <= TEXT_MAX;
        if !is_affordable {
            return Err(Stop::too_large(place(&span.start)));
        }
        let node = target.clone();
        self.charge(size, place(&span.start))?;
        self.check_depth(size.depth)?;
        self.attach(node);
        Ok(())
    }

    /// Keeps a copy for its aliases, then puts it where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        if matches!(node.content, Content::Scalar(_)) {
            self.charge(node.size, node.place)?;
            self.check_depth(1)?;
        } else {
            self.charge(LEAF, node.place)?;
        }
        if anchor != 0 {
            self.charge(node.size, node.place)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.attach(node);
        Ok(())
    }

    fn attach(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.size.nodes = open.size.nodes.saturating_add(node.size.nodes);
        open.size.text = open.size.text.saturating_add(node.size.text);
        open.size.depth = open.size.depth.max(node.size.depth + 1);
        match &mut open.items {
            Items::List(items) => items.push(node),
            Items::Map { entries, lines, key, is_braced } => match key.take() {
                None => {
                    *is_braced |= matches!(node.content, Content::Map(_));
                    *key = Some(Key::of(node, self.file));
                }
                Some(key) => add_entry(entries, lines, (key, node), self.findings),
            },
        }
    }

    fn charge(&mut self, size: Size, place: Place) -> Result<(), Stop> {
        self.spent.nodes = self.spent.nodes.saturating_add(size.nodes);
        self.spent.text = self.spent.text.saturating_add(size.text);
        let is_over = self.spent.nodes > NODES_MAX || self.spent.text > TEXT_MAX;
        if is_over { Err(Stop::too_large(place)) } else { Ok(()) }
    }

    fn check_depth(&self, below: u32) -> Result<(), Stop> {
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX).saturating_add(below);
        match self.open.last() {
            Some(open) if depth > DEPTH_MAX => Err(Stop::too_deep(open.place)),
            _ => Ok(()),
        }
    }
}

fn place(marker: &Marker) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { line: number(marker.line()), column: number(marker.col()).saturating_add(1) }
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Node, Stop> {
    let is_plain = style == ScalarStyle::Plain;
    let kind = match tag.map(|tag| (tag, tag.core_suffix())) {
        None if is_plain => resolve(&text),
        None | Some((_, Some("str"))) => Kind::Text,
        Some((tag, suffix)) => {
            let kind = resolve(&text);
            let fits = match suffix {
                Some("int") => matches!(&kind, Kind::Number(n) if !n.is_f64()),
                Some("float") => matches!(kind, Kind::Number(_)),
                Some("bool") => matches!(kind, Kind::Flag(_)),
                Some("null") => kind == Kind::Null,
                _ => false,
            };
            if !fits {
                return Err(unfit_tag(tag, &span));
            }
            kind
        }
    };
    let (start, end) = match span.byte_range() {
        Some(range) => (range.start, range.end),
        None => (0, 0),
    };
    // The parser says `~` for a value that is not there.
    let text = if is_plain && start == end { String::new() } else { text };
    let source = Source { start, end, is_literal: style == ScalarStyle::Literal };
    let size = Size { text: text.len(), ..LEAF };
    let content = Content::Scalar(Scalar { text, kind, source });
    Ok(Node { place: place(&span.start), content, size })
}

fn check_tag(tag: Option<&Tag>, own: &str, span: &Span) -> Result<(), Stop> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(own) => Err(unfit_tag(tag, span)),
        _ => Ok(()),
    }
}

fn unfit_tag(tag: &Tag, span: &Span) -> Stop {
    let marker = span.tag_start().unwrap_or(span.start);
    let message = format!("the tag {} does not fit here", quoted(&tag.original()));
    Stop::at(&marker, "yaml-tag", message, "leave the tag out, or quote the text")
}
