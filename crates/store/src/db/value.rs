//! Values of statements and rows, the same for both engines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::reason::StatusReason;
use model::{
    ClusterId, DeploymentId, EnvironmentId, InstanceId, InviteId, OrganizationId, Quantity,
    ResourceId, TemplateId, Time, TokenId, UserId, Xid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// A value. Times, quantities and counts are integers; ids, enums and documents are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// Text.
    Text(Cow<'a, str>),
}

/// A type that can be bound to a statement.
pub trait Param {
    /// Converts to a value.
    fn value(&self) -> Value<'_>;
}

/// A type that can be read from a row.
pub trait Column: Sized {
    /// Converts from a value; the error says what was expected.
    fn read(value: Value<'static>) -> Result<Self>;
}

/// A row, read from left to right.
#[derive(Debug)]
pub struct Row(pub(crate) std::vec::IntoIter<Value<'static>>);

impl Row {
    /// Reads the next column, in the order of the `SELECT`.
    pub fn take<T: Column>(&mut self) -> Result<T> {
        let value =
            self.0.next().ok_or_else(|| Error::Database("row has too few columns".into()))?;
        T::read(value)
    }
}

/// Reads the rows of a list, whose first column is an id. An unreadable row is logged and skipped.
pub(crate) fn readable<T>(rows: Vec<Row>, read: impl Fn(Row) -> Result<T>) -> Vec<T> {
    let read = |row: Row| {
        let id = row.0.as_slice().first().cloned();
        read(row).inspect_err(|error| tracing::error!(?id, %error, "unreadable row skipped")).ok()
    };
    rows.into_iter().filter_map(read).collect()
}

/// A document, stored as JSON text.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> Param for Json<&T> {
    fn value(&self) -> Value<'_> {
        json(self.0)
    }
}

/// Converts a document to a value.
pub(crate) fn json(document: &impl Serialize) -> Value<'static> {
    Value::Text(serde_json::to_string(document).expect("documents are plain data").into())
}

impl<T: DeserializeOwned> Column for Json<T> {
    fn read(value: Value<'static>) -> Result<Self> {
        let text = String::read(value)?;
        serde_json::from_str(&text).map(Json).map_err(|e| Error::Database(format!("document: {e}")))
    }
}

impl Param for i64 {
    fn value(&self) -> Value<'_> {
        Value::Int(*self)
    }
}

impl Param for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self.into())
    }
}

impl Param for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str().into())
    }
}

impl<T: Param + ?Sized> Param for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Param> Param for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Param::value)
    }
}

impl Param for BTreeMap<String, String> {
    fn value(&self) -> Value<'_> {
        Value::Text(serde_json::to_string(self).expect("text to text").into())
    }
}

impl Param for model::operation::Subject {
    fn value(&self) -> Value<'_> {
        Value::Text(self.to_string().into())
    }
}

impl Column for i64 {
    fn read(value: Value<'static>) -> Result<Self> {
        match value {
            Value::Int(n) => Ok(n),
            other => Err(Error::Database(format!("expected a number, got {other:?}"))),
        }
    }
}

impl Column for String {
    fn read(value: Value<'static>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text.into_owned()),
            other => Err(Error::Database(format!("expected text, got {other:?}"))),
        }
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value<'static>) -> Result<Self> {
        if value == Value::Null { Ok(None) } else { T::read(value).map(Some) }
    }
}

macro_rules! integer_columns {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Int($to(*self))
            }
        }
        impl Column for $type {
            fn read(value: Value<'static>) -> Result<Self> {
                i64::read(value).map($from)
            }
        }
    )*};
}
integer_columns! {
    Time: |t: Time| t.0, Time;
    Quantity: Quantity::milli, Quantity::from_milli;
}

impl Param for bool {
    fn value(&self) -> Value<'_> {
        Value::Int(i64::from(*self))
    }
}

impl Column for bool {
    fn read(value: Value<'static>) -> Result<Self> {
        i64::read(value).map(|n| n != 0)
    }
}

macro_rules! reasons {
    ($($type:ty),* $(,)?) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                json(self)
            }
        }
        impl Column for $type {
            fn read(value: Value<'static>) -> Result<Self> {
                String::read(value).map(|text| StatusReason::parse(&text))
            }
        }
    )*};
}
reasons!(
    model::cluster::Reason,
    model::deployment::Reason,
    model::instance::Reason,
    model::environment::Reason,
    model::resource::Reason,
);

macro_rules! text_columns {
    ($($type:ty),* $(,)?) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Text(self.to_string().into())
            }
        }
        impl Column for $type {
            fn read(value: Value<'static>) -> Result<Self> {
                let text = String::read(value)?;
                text.parse().map_err(|e| Error::Database(format!("invalid value {text:?}: {e}")))
            }
        }
    )*};
}
text_columns!(
    Xid,
    OrganizationId,
    UserId,
    InviteId,
    TokenId,
    ClusterId,
    DeploymentId,
    InstanceId,
    TemplateId,
    EnvironmentId,
    ResourceId,
    model::user::Role,
    model::user::Access,
    model::user::Kind,
    model::token::Kind,
    model::cluster::Status,
    model::cluster::Provider,
    model::deployment::Status,
    model::instance::Status,
    model::environment::Status,
    model::environment::OnDrift,
    model::resource::Status,
    model::template::Executor,
    model::template::Act,
    model::event::Kind,
    model::scaling::ScaleUpCause,
);

/// The parameters of a statement, in the order of their numbers.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::db::Param::value(&$value)),*] };
}
pub(crate) use params;
