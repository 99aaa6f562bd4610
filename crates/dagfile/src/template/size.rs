//! How large a tag of a template may be.
//!
//! The engine recurses over an expression when it compiles, folds and drops it, and it bounds the
//! nesting of brackets but not the length of `a.b.b.b...` or `1 + 1 + 1...`, nor the branches of
//! one `if`. A bound on their number keeps any template within a small stack.

use super::analysis::SyntaxError;
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Most tokens in one `{{ }}` or `{% %}`.
const TAG_MAX: usize = 250;
/// Most `{% %}` in one template.
const BLOCKS_MAX: usize = 200;

/// Checks a template, or an expression if there is no syntax for tags.
pub(super) fn check(text: &str, tags: Option<&SyntaxConfig>) -> Result<(), SyntaxError> {
    let is_expression = tags.is_none();
    let (mut in_tag, mut blocks) = (0, 0);
    for token in tokenize(text, is_expression, tags.cloned().unwrap_or_default()) {
        // What is no token is reported by the parser.
        let Ok((token, span)) = token else { return Ok(()) };
        let offset = usize::try_from(span.start_offset).unwrap_or(0);
        let too_much = |what: String| Err(SyntaxError { offset, message: what });
        let is_start = matches!(token, Token::VariableStart | Token::BlockStart);
        blocks += usize::from(matches!(token, Token::BlockStart));
        in_tag = if is_start { 0 } else { in_tag + 1 };
        if in_tag > TAG_MAX {
            return too_much(format!("more than {TAG_MAX} words and signs in one expression"));
        }
        if blocks > BLOCKS_MAX {
            return too_much(format!("more than {BLOCKS_MAX} blocks in one template"));
        }
    }
    Ok(())
}
