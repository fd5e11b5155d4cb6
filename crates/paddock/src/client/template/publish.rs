//! `paddock template publish`.

use std::path::{Path, PathBuf};

use wire::template::Template;

use super::{commit, pack};
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;

/// `paddock template publish`.
#[derive(clap::Args)]
#[command(after_help = "\
A folder has template.yaml at its root, and beside it the files that its resources need. What git,
Terraform and editors keep in it stays out. A published version never changes: publishing the same
again does nothing, and other content under the same version is refused.

Example:
  paddock template publish examples/web-shop
  paddock template publish template.yaml --commit \"$CI_COMMIT_SHA\"")]
pub(crate) struct Args {
    /// The template: a file in YAML or JSON, or a folder
    #[arg(value_name = "DIR-OR-FILE")]
    path: PathBuf,
    /// For all organizations; only the platform administrator may
    #[arg(long)]
    shared: bool,
    /// The commit that it came from [default: the one that git is at in its folder]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

/// Publishes a template.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let parcel = pack::read(&args.path)?;
    let commit = args.commit.or_else(|| commit::of(folder_of(&args.path)));
    let call = Call::upload(&["templates"], parcel.media_type, parcel.bytes)
        .query("commit", commit)
        .query("shared", args.shared.then_some(true));
    let answer = api.send(&call).await.map_err(Error::of_document)?;
    printer.answer(&answer, || {
        let Template { reference, .. } = api.read(&answer)?;
        Ok(if answer.is_new {
            format!("published {reference}")
        } else {
            format!("{reference} is published already, with the same content")
        })
    })
}

fn folder_of(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_the_folder_that_git_is_asked_about() {
        for (path, folder) in [("template.yaml", "."), ("a/template.yaml", "a"), ("/", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder));
        }
    }
}
