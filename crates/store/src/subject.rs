//! Common operations on subjects: reading, listing, locking.
//!
//! A subject names its table and columns once ([`row`]); `get`, `list`, `count`, `lock` and
//! `resync` are generic. The id or filter type determines the subject.

use std::fmt::Display;
use std::marker::PhantomData;

use model::cluster::Cluster;
use model::deployment::Deployment;
use model::environment::Environment;
use model::event::Kind;
use model::instance::Instance;
use model::invite::Invite;
use model::organization::Organization;
use model::resource::Resource;
use model::user::User;
use model::work::{Key, Lane};
use model::{OrganizationId, Xid};

use crate::db::{Column, Param, Row, Select, params, readable};
use crate::status::Lifecycle;
use crate::template::Published;
use crate::{Error, Page, Read, Result, Scope, Tx, work};

/// A kind of row that users see.
pub trait Subject: Sized + Send + Sync {
    /// Id type.
    type Id: Param + Column + Display + Copy + Send + Sync;
    /// Name in the event log and in errors.
    const KIND: Kind;
    /// Table, as written in statements.
    const TABLE: &'static str;
    /// Columns to read, in the order of [`Subject::from_rows`].
    const COLUMNS: &'static str;
    /// Condition for rows that are not deleted.
    const LIVING: &'static str = "deleted_at IS NULL";
    /// Condition for rows that the organization `?` sees.
    const VISIBLE: &'static str = "organization_id = ?";
    /// Joined columns, as the end of a statement around the selected rows.
    const JOIN: &'static str = "";

    /// Reads one row.
    fn from_row(row: Row) -> Result<Self>;

    /// Reads the rows of a list. An unreadable row does not hide the others.
    fn from_rows(rows: Vec<Row>) -> Vec<Self> {
        readable(rows, Self::from_row)
    }
}

/// The id of a subject.
pub trait Id: Param + Display + Send + Sync {
    /// The subject.
    type Subject: Subject<Id = Self>;
}

/// Filter for lists.
pub trait Filter: Sync {
    /// The subject.
    type Subject: Subject;

    /// Adds the conditions; `own` is the caller's organization, if the scope has one.
    fn restrict<'a>(&'a self, select: Select<'a>, own: Option<&'a OrganizationId>) -> Select<'a>;
}

/// No filter.
#[derive(Debug)]
pub(crate) struct Any<T>(PhantomData<fn() -> T>);

impl<T> Any<T> {
    /// All subjects of that type.
    pub(crate) const ALL: Self = Self(PhantomData);
}

impl<T: Subject> Filter for Any<T> {
    type Subject = T;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        select
    }
}

fn select<'a, T: Subject>() -> Select<'a> {
    let from = if T::JOIN.is_empty() { "" } else { "(SELECT * FROM " };
    Select::new(&format!("SELECT {} FROM {from}{} WHERE {}", T::COLUMNS, T::TABLE, T::LIVING))
}

/// Reads one subject in scope.
pub async fn get<I: Id>(read: &mut Read, scope: Scope, id: I) -> Result<I::Subject> {
    let own = scope.organization();
    let rows = select::<I::Subject>()
        .and("id = ?", Some(&id))
        .and(I::Subject::VISIBLE, own.as_ref())
        .text(I::Subject::JOIN)
        .all(read)
        .await?;
    one(rows, &id)
}

fn one<T: Subject>(mut rows: Vec<Row>, id: &impl Display) -> Result<T> {
    match rows.len() {
        0 => Err(Error::not_found(T::KIND.as_str(), id)),
        1 => T::from_row(rows.swap_remove(0)),
        _ => T::from_rows(rows)
            .pop()
            .ok_or_else(|| Error::Database(format!("{} {id} is unreadable", T::KIND.as_str()))),
    }
}

/// A page of the subjects in scope, by id.
pub async fn list<F: Filter>(
    read: &mut Read,
    scope: Scope,
    filter: &F,
    page: &Page,
) -> Result<Vec<F::Subject>> {
    let own = scope.organization();
    let select = select::<F::Subject>().and(F::Subject::VISIBLE, own.as_ref());
    let rows = filter
        .restrict(select, own.as_ref())
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .text(F::Subject::JOIN)
        .all(read)
        .await?;
    Ok(F::Subject::from_rows(rows))
}

/// The number of subjects in scope.
pub async fn count<F: Filter>(read: &mut Read, scope: Scope, filter: &F) -> Result<i64> {
    let own = scope.organization();
    let (table, living) = (F::Subject::TABLE, F::Subject::LIVING);
    let select = Select::new(&format!("SELECT COUNT(*) FROM {table} WHERE {living}"));
    let select = select.and(F::Subject::VISIBLE, own.as_ref());
    let rows = filter.restrict(select, own.as_ref()).all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

/// Locks one subject in scope until the end of the transaction, and reads it.
pub async fn lock<I: Id>(tx: &mut Tx, scope: Scope, id: I) -> Result<I::Subject> {
    let own = scope.organization();
    let rows = locking::<I::Subject>(&id)
        .and(I::Subject::VISIBLE, own.as_ref())
        .text(" RETURNING ")
        .text(I::Subject::COLUMNS)
        .all(tx)
        .await?;
    one(rows, &id)
}

fn locking<T: Subject>(id: &T::Id) -> Select<'_> {
    let (table, living) = (T::TABLE, T::LIVING);
    Select::new(&format!("UPDATE {table} SET updated_at = updated_at WHERE {living}"))
        .and("id = ?", Some(id))
}

/// Wakes the workers of all subjects that are not idle: the periodic resync.
pub async fn resync<T: Lifecycle>(tx: &mut Tx) -> Result<()> {
    for mut row in tx.all(&restless::<T>(), params![]).await? {
        let id: T::Id = row.take()?;
        work::wake(tx, Lane::Background, Key::new(T::WORKER, id));
    }
    Ok(())
}

fn restless<T: Lifecycle>() -> String {
    let (table, living, restless) = (T::TABLE, T::LIVING, T::RESTLESS);
    format!("SELECT id FROM {table} WHERE {living} AND {restless} ORDER BY id")
}

/// The generated statements, so that a test prepares them on both engines.
pub fn statements() -> Vec<String> {
    let mut all = Vec::new();
    all.extend(reads::<Organization>());
    all.extend(reads::<User>());
    all.extend(reads::<Invite>());
    all.extend(reads::<Published>());
    all.extend(reads::<Deployment>());
    all.extend(of_lifecycle::<Cluster>());
    all.extend(of_lifecycle::<Instance>());
    all.extend(of_lifecycle::<Environment>());
    all.extend(of_lifecycle::<Resource>());
    all
}

fn reads<T: Subject<Id: From<Xid>>>() -> [String; 1] {
    let none = Xid::new(0, [0; 5], 0);
    let (id, own) = (T::Id::from(none), OrganizationId(none));
    [select::<T>().and("id = ?", Some(&id)).and(T::VISIBLE, Some(&own)).text(T::JOIN).sql()]
}

fn of_lifecycle<T: Lifecycle + Subject<Id: From<Xid>>>() -> [String; 3] {
    let [read] = reads::<T>();
    let id = T::Id::from(Xid::new(0, [0; 5], 0));
    [read, locking::<T>(&id).sql(), restless::<T>()]
}

/// Implements [`Subject`] for a struct: names its id, table and columns, which are named like the
/// fields unless `in` names them. Also defines `columns!()` for other statements of the module.
macro_rules! row {
    ($subject:ident($id:ident) in $table:literal:
     $first:ident $(, $field:ident $(in $column:literal)? $(as $json:ident)?)*; $($constants:tt)*) => {
        macro_rules! columns {
            () => { concat!(stringify!($first) $(, ", ", $crate::subject::column_name!($field $($column)?))*) };
        }
        impl $crate::subject::Subject for $subject {
            type Id = $id;
            const KIND: model::event::Kind = model::event::Kind::$subject;
            const TABLE: &'static str = $table;
            const COLUMNS: &'static str = columns!();
            $($constants)*

            fn from_row(mut row: $crate::db::Row) -> $crate::Result<Self> {
                read_row(&mut row)
            }
        }
        impl $crate::subject::Id for $id {
            type Subject = $subject;
        }
        /// Reads the columns and leaves the rest of the row.
        pub(crate) fn read_row(row: &mut $crate::db::Row) -> $crate::Result<$subject> {
            Ok($subject {
                $first: row.take()?,
                $($field: $crate::subject::column!(row $(, $json)?)),*
            })
        }
    };
}
pub(crate) use row;

/// Defines functions that look up a subject by id, so that callers need not name the type.
macro_rules! by_id {
    ($id:ident: $($name:ident($db:ident)),*) => {$(
        #[doc = concat!("As [`crate::", stringify!($name), "`] of this subject.")]
        pub async fn $name(
            db: &mut $crate::$db,
            scope: $crate::Scope,
            id: $id,
        ) -> $crate::Result<<$id as $crate::subject::Id>::Subject> {
            $crate::subject::$name(db, scope, id).await
        }
    )*};
}
pub(crate) use by_id;

/// The column name of a field.
macro_rules! column_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:literal) => {
        $column
    };
}
pub(crate) use column_name;

/// Reads the next column of a row; a JSON column as its content.
macro_rules! column {
    ($row:ident) => {
        $row.take()?
    };
    ($row:ident, json) => {
        $row.take::<$crate::db::Json<_>>()?.0
    };
}
pub(crate) use column;
