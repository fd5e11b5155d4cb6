//! Templates: publishing, reading and deprecating them. Published content never changes.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use model::event::Kind;
use model::organization::quota::Subject as Counted;
use model::template::{Template, files_fingerprint};
use model::{OrganizationId, Quantity, TemplateId};
use serde_json::{Value, json};

use crate::db::{Json, Row, Select, params, sql};
use crate::subject::{self, Filter as _, Subject};
use crate::{Error, Read, Result, Scope, Tx, event, organization, organization_quota};

pub use crate::subject::list;

macro_rules! columns {
    () => {
        "id, organization_id, body, hash, files_print, deprecated_at, deprecated_why, created_by, \
         created_at"
    };
}

pub use model::template::Published;

impl Subject for Published {
    type Id = TemplateId;
    const KIND: Kind = Kind::Template;
    const TABLE: &'static str = "template";
    const COLUMNS: &'static str = columns!();
    const VISIBLE: &'static str = "(organization_id = ? OR organization_id IS NULL)";

    fn from_row(row: Row) -> Result<Self> {
        from_row(row)
    }
}

/// Files of a template, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A template to publish.
#[derive(Debug)]
pub struct NewTemplate<'a> {
    /// Owner; `None` if it is shared.
    pub organization_id: Option<OrganizationId>,
    /// The parsed template.
    pub template: &'a Template,
    /// The source text.
    pub source: &'a str,
    /// The files.
    pub files: &'a Files,
    /// Hash of the content and files.
    pub hash: &'a str,
}

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Name.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
}

/// Publishes a template; the second value says whether it is new. Publishing the same content again
/// changes nothing; other content under the same name and version is refused.
pub async fn publish(tx: &mut Tx, new: &NewTemplate<'_>) -> Result<(Published, bool)> {
    let (id, now, by) = (tx.id::<TemplateId>(), tx.now(), tx.actor().to_string());
    let of = new.template;
    let made = tx
        .first(
            sql!(
                "INSERT INTO template (id, organization_id, name, version, description, tags, git_commit, ",
                "body, source, hash, files_print, created_by, created_at, updated_at) ",
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13) ",
                "ON CONFLICT DO NOTHING RETURNING ",
                columns!()
            ),
            params![
                id,
                new.organization_id,
                of.name,
                of.version,
                of.description,
                of.tags,
                of.commit,
                Json(of),
                new.source,
                new.hash,
                files_fingerprint(new.files),
                by,
                now
            ],
        )
        .await?;
    let Some(row) = made else {
        let existing = find_exact(tx, new.organization_id, &of.name, &of.version).await?;
        return match existing {
            Some(existing) if existing.hash == new.hash => Ok((existing, false)),
            _ => Err(Error::Conflict(format!(
                "template {}@{} is already published with other content: publish a new version",
                of.name, of.version
            ))),
        };
    };
    organization::ensure_exists(tx, new.organization_id).await?;
    for (path, content) in new.files {
        let sql = sql!(
            "INSERT INTO template_file (template_id, path, content, size_bytes) VALUES ($1, $2, $3, $4)"
        );
        let size = i64::try_from(content.len()).unwrap_or(i64::MAX);
        tx.run(sql, params![id, path, BASE64.encode(content), size]).await?;
    }
    let made = from_row(row)?;
    if let Some(owner) = new.organization_id {
        organization_quota::charge(tx, owner, Counted::Templates, Quantity::whole(1));
    }
    record_event(tx, &made, "published").await?;
    Ok((made, true))
}

async fn find_exact(
    read: &mut Read,
    organization: Option<OrganizationId>,
    name: &str,
    version: &str,
) -> Result<Option<Published>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM template WHERE name = $2 AND version = $3 AND deleted_at IS NULL ",
        "AND COALESCE(organization_id, '') = COALESCE($1, '')"
    );
    let row = read.first(sql, params![organization, name, version]).await?;
    row.map(from_row).transpose()
}

/// One template: the organization's own, or the shared one.
pub async fn get(read: &mut Read, scope: Scope, name: &str, version: &str) -> Result<Published> {
    let filter = Filter { name: Some(name.to_owned()), version: Some(version.to_owned()) };
    let own = scope.organization();
    let select =
        Select::new(concat!("SELECT ", columns!(), " FROM template WHERE deleted_at IS NULL"));
    let rows = filter
        .restrict(select.and(Published::VISIBLE, own.as_ref()), own.as_ref())
        // An organization's own template takes precedence.
        .text(" ORDER BY CASE WHEN organization_id IS NULL THEN 1 ELSE 0 END, id LIMIT 1")
        .all(read)
        .await?;
    let found = rows.into_iter().next();
    let reference = format!("{name}@{version}");
    from_row(found.ok_or_else(|| Error::not_found("template", reference))?)
}

/// The template with this id.
pub async fn by_id(read: &mut Read, id: TemplateId) -> Result<Published> {
    let sql = sql!("SELECT ", columns!(), " FROM template WHERE id = $1");
    let row = read.first(sql, params![id]).await?;
    from_row(row.ok_or_else(|| Error::not_found("template", id))?)
}

/// A version of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The template's id.
    pub id: TemplateId,
    /// The version.
    pub version: String,
    /// Whether new uses are refused.
    pub is_deprecated: bool,
}

/// All visible versions of a template. An own version follows a shared one.
pub async fn versions(read: &mut Read, scope: Scope, name: &str) -> Result<Vec<Version>> {
    let own = scope.organization();
    let sql = sql!(
        "SELECT id, version, CASE WHEN deprecated_at IS NULL THEN 0 ELSE 1 END FROM template ",
        "WHERE name = $1 AND deleted_at IS NULL ",
        "AND (organization_id = COALESCE($2, organization_id) OR organization_id IS NULL) ",
        "ORDER BY CASE WHEN organization_id IS NULL THEN 0 ELSE 1 END, id"
    );
    let rows = read.all(sql, params![name, own]).await?;
    let read = |mut row: Row| {
        let (id, version) = (row.take()?, row.take()?);
        Ok(Version { id, version, is_deprecated: row.take::<i64>()? == 1 })
    };
    rows.into_iter().map(read).collect()
}

impl subject::Filter for Filter {
    type Subject = Published;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        select.and("name = ?", self.name.as_ref()).and("version = ?", self.version.as_ref())
    }
}

/// The files of a template.
pub async fn files(read: &mut Read, id: TemplateId) -> Result<Files> {
    let sql = sql!("SELECT path, content FROM template_file WHERE template_id = $1 ORDER BY path");
    let rows = read.all(sql, params![id]).await?;
    let read = |mut row: Row| {
        let (path, content) = (row.take()?, row.take::<String>()?);
        let content = BASE64.decode(content.as_bytes());
        Ok((
            path,
            content.map_err(|error| Error::Database(format!("invalid file content: {error}")))?,
        ))
    };
    rows.into_iter().map(read).collect()
}

/// The paths and sizes of a template's files.
pub async fn file_sizes(read: &mut Read, id: TemplateId) -> Result<Vec<(String, i64)>> {
    let sql =
        sql!("SELECT path, size_bytes FROM template_file WHERE template_id = $1 ORDER BY path");
    let rows = read.all(sql, params![id]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// The source text of a template.
pub async fn source(read: &mut Read, id: TemplateId) -> Result<String> {
    let row = read.first(sql!("SELECT source FROM template WHERE id = $1"), params![id]).await?;
    row.ok_or_else(|| Error::not_found("template", id))?.take()
}

/// Deprecates a template with a reason, or reverts that.
pub async fn set_deprecated(
    tx: &mut Tx,
    mut template: Published,
    why: Option<&str>,
) -> Result<Published> {
    let now = tx.now();
    let at = why.map(|_| template.deprecated_at.unwrap_or(now));
    let sql = sql!(
        "UPDATE template SET deprecated_at = $2, deprecated_why = $3, updated_at = $4 ",
        "WHERE id = $1 AND deleted_at IS NULL"
    );
    if tx.run(sql, params![template.id, at, why, now]).await? == 0 {
        return Err(Error::not_found("template", template.reference()));
    }
    (template.deprecated_at, template.deprecated_why) = (at, why.map(str::to_owned));
    record_event(tx, &template, if at.is_some() { "deprecated" } else { "restored" }).await?;
    Ok(template)
}

/// Serialises the use of a template by an environment with its deletion.
pub(crate) async fn lock(tx: &mut Tx, id: TemplateId) -> Result<()> {
    tx.lock(&format!("template/{id}")).await
}

/// Deletes a template that no environment uses.
pub async fn delete(tx: &mut Tx, template: &Published) -> Result<()> {
    lock(tx, template.id).await?;
    let now = tx.now();
    let sql = sql!(
        "UPDATE template SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL ",
        "AND NOT EXISTS (SELECT 1 FROM environment_template u WHERE u.template_id = template.id)"
    );
    if tx.run(sql, params![template.id, now]).await? == 0 {
        return Err(Error::Conflict(format!(
            "template {} is used by environments: destroy them or change their version first",
            template.reference()
        )));
    }
    if let Some(owner) = template.organization_id {
        organization_quota::release(tx, owner, Counted::Templates, Quantity::whole(1));
    }
    record_event(tx, template, "deleted").await
}

/// Deletes all templates of an organization that is deleted and has no environments.
pub(crate) async fn delete_all_in(tx: &mut Tx, organization: OrganizationId) -> Result<()> {
    let now = tx.now();
    let sql = sql!(
        "UPDATE template SET deleted_at = $2, updated_at = $2 WHERE organization_id = $1 ",
        "AND deleted_at IS NULL RETURNING ",
        columns!()
    );
    for row in tx.all(sql, params![organization, now]).await? {
        record_event(tx, &from_row(row)?, "deleted").await?;
    }
    Ok(())
}

async fn record_event(tx: &mut Tx, template: &Published, change: &str) -> Result<()> {
    event::append(
        tx,
        Kind::Template,
        template.id,
        template.organization_id,
        change,
        &event_data(template),
    )
    .await
}

/// Event data of a template, without the configuration of resources, which may be secret.
fn event_data(template: &Published) -> Value {
    json!({
        "id": template.id,
        "organization_id": template.organization_id,
        "name": template.template.name,
        "version": template.template.version,
        "description": template.template.description,
        "tags": template.template.tags,
        "commit": template.template.commit,
        "hash": template.hash,
        "deprecated_at": template.deprecated_at,
        "deprecated_why": template.deprecated_why,
        "created_by": template.created_by,
        "created_at": template.created_at,
    })
}

fn from_row(mut row: Row) -> Result<Published> {
    Ok(Published {
        id: row.take()?,
        organization_id: row.take()?,
        template: row.take::<Json<_>>()?.0,
        hash: row.take()?,
        files_print: row.take()?,
        deprecated_at: row.take()?,
        deprecated_why: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
    })
}
