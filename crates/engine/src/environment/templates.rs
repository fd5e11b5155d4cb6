//! The templates that an environment is made from.

use model::environment::Environment;
use model::template::Source;
use store::Read;
use store::template::Published;

/// All of them, as their order was given: the first that has a default sets it.
pub(crate) async fn templates(read: &mut Read, of: &Environment) -> store::Result<Vec<Published>> {
    let mut found = Vec::new();
    for id in store::environment::templates(read, of.id).await? {
        found.push(store::template::by_id(read, id).await?);
    }
    found.sort_by_key(|one| of.templates.iter().position(|name| *name == one.reference()));
    Ok(found)
}

/// What they say, for whoever needs no files of theirs.
pub(crate) fn sources(templates: &[Published]) -> Vec<Source<'_>> {
    templates.iter().map(|one| Source { template: &one.template, files_print: "" }).collect()
}
