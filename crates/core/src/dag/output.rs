//! What a task declares of an output.

/// The declared type of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputType {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}
