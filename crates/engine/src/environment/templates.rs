//! The templates of an environment.

use model::environment::Environment;
use model::template::Source;
use store::Read;
use store::template::Published;

/// All templates in the given order: the first one with a default sets it.
pub(crate) async fn templates(
    read: &mut Read,
    environment: &Environment,
) -> store::Result<Vec<Published>> {
    let mut found = Vec::new();
    for id in store::environment::templates(read, environment.id).await? {
        found.push(store::template::by_id(read, id).await?);
    }
    found.sort_by_key(|template| {
        environment.templates.iter().position(|name| *name == template.reference())
    });
    Ok(found)
}

/// The sources of templates, for callers that don't need their files.
pub(crate) fn sources(templates: &[Published]) -> Vec<Source<'_>> {
    templates
        .iter()
        .map(|template| Source { template: &template.template, files_print: "" })
        .collect()
}
