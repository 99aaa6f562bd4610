//! Values to and from the wire.

use crate::db::{Row, Value};
use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Wrong = Box<dyn Error + Sync + Send>;

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(n), &Type::INT8) => n.to_sql(ty, out),
            (Self::Int(n), &Type::INT4) => i32::try_from(*n)?.to_sql(ty, out),
            (Self::Text(text), &(Type::TEXT | Type::VARCHAR | Type::NAME)) => text.to_sql(ty, out),
            (Self::Int(_) | Self::Text(_), _) => {
                Err(format!("{self:?} was given where {ty} is wanted").into())
            }
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    to_sql_checked!();
}

/// One column of many sets of values.
#[derive(Debug)]
pub(super) struct Column<'a>(pub(super) Vec<&'a Value>);

impl ToSql for Column<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        self.0.to_sql(ty, out)
    }
    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), tokio_postgres::types::Kind::Array(_))
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Wrong> {
        match *ty {
            Type::INT8 => i64::from_sql(ty, raw).map(Self::Int),
            Type::INT4 => i32::from_sql(ty, raw).map(|n| Self::Int(n.into())),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => {
                String::from_utf8(raw.to_vec()).map(Self::Text).map_err(Into::into)
            }
            _ => Err(format!("{ty} is none of the types of this store").into()),
        }
    }
    fn from_sql_null(_: &Type) -> Result<Self, Wrong> {
        Ok(Self::Null)
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Reads a row of an answer.
pub(super) fn row(from: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    (0..from.len()).map(|column| from.try_get(column)).collect::<Result<_, _>>().map(Row)
}
