//! Names with their attributes, and what assignments bind.

use minijinja::machinery::Span;
use minijinja::machinery::ast::Expr;

/// Names of enclosing scopes; a name that stands for a part of something outside has its path.
pub(super) type Scope = Vec<(String, Option<Vec<String>>)>;

/// Bytes from the start of the template.
pub(super) fn at(span: Span) -> usize {
    usize::try_from(span.start_offset).unwrap_or(0)
}

/// What a call uses: of a method, what it belongs to.
pub(super) fn callee<'a, 'b>(called: &'a Expr<'b>) -> &'a Expr<'b> {
    if let Expr::GetAttr(method) = called
        && !matches!(&method.expr, Expr::Var(var) if var.id == "macros")
    {
        return &method.expr;
    }
    called
}

/// `a.b["c"]` as `[a, b, c]` with the place of `a`. No recursion: chains may be long.
pub(super) fn path(expression: &Expr<'_>) -> Option<(Vec<String>, usize)> {
    let (mut names, mut rest) = (Vec::new(), expression);
    loop {
        match rest {
            Expr::Var(var) => {
                names.push(var.id.to_owned());
                names.reverse();
                return Some((names, at(var.span())));
            }
            Expr::GetAttr(attribute) => {
                names.push(attribute.name.to_owned());
                rest = &attribute.expr;
            }
            Expr::GetItem(item) => {
                let Expr::Const(constant) = &item.subscript_expr else { return None };
                names.push(constant.value.as_str()?.to_owned());
                rest = &item.expr;
            }
            Expr::Const(_)
            | Expr::Slice(_)
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Filter(_)
            | Expr::Test(_)
            | Expr::Call(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Map(_) => return None,
        }
    }
}

/// The names that an assignment target binds.
pub(super) fn targets(target: &Expr<'_>, origin: Option<&[String]>) -> Scope {
    match target {
        Expr::Var(var) => vec![(var.id.to_owned(), origin.map(<[String]>::to_vec))],
        Expr::List(list) => list.items.iter().flat_map(|item| targets(item, origin)).collect(),
        Expr::Tuple(tuple) => tuple.items.iter().flat_map(|item| targets(item, origin)).collect(),
        Expr::Const(_)
        | Expr::Slice(_)
        | Expr::UnaryOp(_)
        | Expr::BinOp(_)
        | Expr::Compare(_)
        | Expr::IfExpr(_)
        | Expr::Filter(_)
        | Expr::Test(_)
        | Expr::GetAttr(_)
        | Expr::GetItem(_)
        | Expr::Call(_)
        | Expr::Map(_) => Scope::new(),
    }
}
