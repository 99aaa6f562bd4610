//! What a template uses, read off its syntax tree: for the checks at validate time.
//!
//! Only here, in `path` and in `size` is the engine's tree known (its `unstable_machinery`).

use super::engine::Syntax;
use super::path::{Scope, at, callee, path, targets};
use super::size;
use minijinja::machinery::ast::{CallArg, Expr, Stmt};
use minijinja::machinery::{parse, parse_expr};

/// What a template uses of its surroundings.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) uses: Vec<Use>,
    /// Filters and tests with their places.
    pub(crate) filters: Vec<(String, usize)>,
    pub(crate) tests: Vec<(String, usize)>,
}

/// A name that is not the template's own, with the attributes that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// `["outputs", "extract", "rows"]`.
    pub(crate) path: Vec<String>,
    /// Bytes from the start of the template.
    pub(crate) offset: usize,
    /// Its value ends up in the text as it is, not through `sh`, a comparison or the like.
    pub(crate) is_pasted: bool,
}

/// A template that is no template.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl SyntaxError {
    fn shifted(mut self, by: usize) -> Self {
        self.offset += by;
        self
    }
}

/// What the template of a field uses; with `is_condition` it is an expression.
pub(crate) fn analyse(
    field: &str,
    template: &str,
    is_condition: bool,
) -> Result<Analysis, SyntaxError> {
    let mut walk = Walk::default();
    if is_condition {
        let (expression, start) = expression_of(template);
        size::check(expression, None).map_err(|error| error.shifted(start))?;
        let tree = parse_expr(expression).map_err(|error| syntax_error(&error, start))?;
        walk.expression(&tree, false);
        walk.shift(start);
    } else {
        let config = Syntax::of_field(field).config();
        size::check(template, Some(&config))?;
        let tree = parse(template, field, config).map_err(|error| syntax_error(&error, 0))?;
        walk.statement(&tree);
    }
    Ok(walk.found)
}

/// Whether a text is one expression within `{{ }}` and nothing else.
pub(crate) fn is_expression(text: &str) -> bool {
    text.trim().starts_with("{{") && expression_of(text).0 != text.trim()
}

/// The expression within `{{ }}`, or the text itself; with the byte at which it begins.
pub(crate) fn expression_of(text: &str) -> (&str, usize) {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let inner = inner.filter(|inner| !inner.contains("}}"));
    let inner = inner.map(|inner| inner.strip_prefix('-').unwrap_or(inner));
    let inner = inner.map(|inner| inner.strip_suffix('-').unwrap_or(inner));
    let expression = inner.unwrap_or(trimmed);
    (expression, expression.as_ptr() as usize - text.as_ptr() as usize)
}

fn syntax_error(error: &minijinja::Error, shift: usize) -> SyntaxError {
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    SyntaxError { offset: shift + error.range().map_or(0, |range| range.start), message }
}

#[derive(Default)]
struct Walk {
    found: Analysis,
    scope: Scope,
}

/// Filters whose result cannot carry shell code whatever goes in.
const HARMLESS: [&str; 6] = ["sh", "length", "count", "int", "float", "bool"];

impl Walk {
    fn shift(&mut self, by: usize) {
        let found = &mut self.found;
        found.uses.iter_mut().for_each(|used| used.offset += by);
        found.filters.iter_mut().chain(&mut found.tests).for_each(|(_, offset)| *offset += by);
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn scoped(&mut self, body: &[Stmt<'_>], names: Scope) {
        let depth = self.scope.len();
        self.scope.extend(names);
        self.statements(body);
        self.scope.truncate(depth);
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr, true),
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(each) => {
                self.expression(&each.iter, false);
                let origin = self.origin(&each.iter);
                let mut names: Scope = targets(&each.target, origin.as_deref());
                names.push(("loop".into(), None));
                let depth = self.scope.len();
                self.scope.extend(names.clone());
                each.filter_expr.iter().for_each(|filter| self.expression(filter, false));
                self.scope.truncate(depth);
                self.scoped(&each.body, names);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr, false);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                let mut names = Scope::new();
                for (target, value) in &with.assignments {
                    self.expression(value, false);
                    names.extend(targets(target, self.origin(value).as_deref()));
                }
                self.scoped(&with.body, names);
            }
            Stmt::Set(set) => {
                self.expression(&set.expr, false);
                let names = targets(&set.target, self.origin(&set.expr).as_deref());
                self.scope.extend(names);
            }
            Stmt::SetBlock(set) => {
                self.statements(&set.body);
                set.filter.iter().for_each(|filter| self.expression(filter, false));
                self.scope.extend(targets(&set.target, None));
            }
            Stmt::AutoEscape(block) => self.statements(&block.body),
            Stmt::FilterBlock(block) => {
                self.expression(&block.filter, false);
                self.statements(&block.body);
            }
            Stmt::Macro(declared) => {
                let names = declared.args.iter().flat_map(|arg| targets(arg, None)).collect();
                declared.defaults.iter().for_each(|value| self.expression(value, false));
                self.scope.push((declared.name.into(), None));
                self.scoped(&declared.body, names);
            }
            Stmt::CallBlock(block) => {
                self.expression(&block.call.expr, false);
                self.arguments(&block.call.args, true);
                self.statements(&block.macro_decl.body);
            }
            Stmt::Do(call) => self.arguments(&call.call.args, false),
            #[expect(unreachable_patterns, reason = "features of the engine add statements")]
            _ => {}
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>], is_pasted: bool) {
        for argument in arguments {
            match argument {
                CallArg::Pos(expr)
                | CallArg::Kwarg(_, expr)
                | CallArg::PosSplat(expr)
                | CallArg::KwargSplat(expr) => self.expression(expr, is_pasted),
            }
        }
    }

    fn expression(&mut self, expression: &Expr<'_>, is_pasted: bool) {
        if self.record(expression, is_pasted) {
            return;
        }
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr, is_pasted);
                let bounds = [&slice.start, &slice.stop, &slice.step];
                bounds.into_iter().flatten().for_each(|bound| self.expression(bound, false));
            }
            Expr::UnaryOp(op) => self.expression(&op.expr, false),
            Expr::BinOp(op) => {
                self.expression(&op.left, is_pasted);
                self.expression(&op.right, is_pasted);
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr, false);
                compare.ops.iter().for_each(|op| self.expression(&op.expr, false));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr, false);
                self.expression(&choice.true_expr, is_pasted);
                choice.false_expr.iter().for_each(|other| self.expression(other, is_pasted));
            }
            Expr::Filter(filter) => {
                self.found.filters.push((filter.name.into(), at(filter.span())));
                let is_pasted = is_pasted && !HARMLESS.contains(&filter.name);
                filter.expr.iter().for_each(|input| self.expression(input, is_pasted));
                self.arguments(&filter.args, is_pasted);
            }
            Expr::Test(test) => {
                self.found.tests.push((test.name.into(), at(test.span())));
                self.expression(&test.expr, false);
                self.arguments(&test.args, false);
            }
            Expr::GetAttr(attribute) => self.expression(&attribute.expr, is_pasted),
            Expr::GetItem(item) => {
                self.expression(&item.expr, is_pasted);
                self.expression(&item.subscript_expr, false);
            }
            Expr::Call(call) => {
                // Of a method, what it belongs to is what is used.
                self.expression(callee(&call.expr), is_pasted);
                self.arguments(&call.args, is_pasted);
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item, is_pasted)),
            Expr::Tuple(tuple) => {
                tuple.items.iter().for_each(|item| self.expression(item, is_pasted));
            }
            Expr::Map(map) => {
                map.keys.iter().for_each(|key| self.expression(key, false));
                map.values.iter().for_each(|value| self.expression(value, is_pasted));
            }
        }
    }

    /// Records `name.attribute...` as one use; false if the expression is something else.
    fn record(&mut self, expression: &Expr<'_>, is_pasted: bool) -> bool {
        let Some((own, offset)) = path(expression) else { return false };
        let known = self.scope.iter().rev().find(|(name, _)| *name == own[0]);
        match known {
            None => self.found.uses.push(Use { path: own, offset, is_pasted }),
            // A name of the template's own that carries something from outside into the text.
            Some((_, Some(origin))) if is_pasted => {
                self.found.uses.push(Use { path: origin.clone(), offset, is_pasted });
            }
            Some(_) => {}
        }
        true
    }

    /// The path of what an expression takes from outside, if it is that simple.
    fn origin(&self, expression: &Expr<'_>) -> Option<Vec<String>> {
        let (own, _) = path(expression)?;
        match self.scope.iter().rev().find(|(name, _)| *name == own[0]) {
            Some((_, origin)) => origin.clone(),
            None => Some(own),
        }
    }
}
