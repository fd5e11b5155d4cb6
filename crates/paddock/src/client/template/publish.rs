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
A directory contains template.yaml at its root and the files that its resources need; files of git,
Terraform and editors are excluded. Published versions are immutable: publishing the same content
again has no effect, and different content under the same version is rejected.

Example:
  paddock template publish examples/web-shop
  paddock template publish template.yaml --commit \"$CI_COMMIT_SHA\"")]
pub(crate) struct Args {
    /// Template: a YAML or JSON file, or a directory
    #[arg(value_name = "DIR-OR-FILE")]
    path: PathBuf,
    /// Share with all organizations; requires the platform administrator
    #[arg(long)]
    shared: bool,
    /// Source commit [default: the current git commit of the directory]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

/// Publishes a template.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let package = pack::read(&args.path)?;
    let commit = args.commit.or_else(|| commit::head(folder(&args.path)));
    let call = Call::upload(&["templates"], package.media_type, package.bytes)
        .query("commit", commit)
        .query("shared", args.shared.then_some(true));
    let response = api.send(&call).await.map_err(Error::in_document)?;
    printer.response(&response, || {
        let Template { reference, .. } = api.read(&response)?;
        Ok(if response.is_new {
            format!("published {reference}")
        } else {
            format!("{reference} is already published with the same content")
        })
    })
}

fn folder(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_file_is_its_parent() {
        for (path, want) in [("template.yaml", "."), ("a/template.yaml", "a"), ("/", "/")] {
            assert_eq!(folder(Path::new(path)), Path::new(want));
        }
    }
}
