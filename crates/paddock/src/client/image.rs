//! `paddock image`: manages images of the server's machine that need no registry.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use futures_util::stream;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use wire::health::Info;
use wire::image::{Image, Images};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::prompt;
use super::table;

const MEDIA_TYPE: &str = "application/x-tar";
/// Size of a chunk of the archive.
const CHUNK: usize = 256 << 10;

/// `paddock image …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Load images from an archive into the image store of the server's machine
    #[command(after_help = "\
The archive is a tar or tar.gz of \"docker save\", \"podman save\" or an OCI layout. Its images get
the names localhost/NAME:TAG, belong to your organization, and run on the clusters of the server's
machine.

Example:
  docker save web:3 | paddock image load -
  paddock image load web.tar
  paddock image load layout.tar --name web:3")]
    Load {
        /// Image archive, or - for stdin
        file: PathBuf,
        /// Name instead of the one in the archive
        #[arg(long, value_name = "NAME:TAG")]
        name: Option<String>,
    },
    /// List the loaded images of your organization, and the built-in image
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock image list")]
    List,
    /// Delete a loaded image that no deployment uses
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  paddock image delete localhost/web:3 --yes"
    )]
    Delete {
        /// Name of the image
        name: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Load { file, name } => load(api, printer, &file, name).await,
        Command::List => {
            let response = api.send(&Call::get(&["images"])).await?;
            printer.response(&response, || Ok(view(&api.read::<Images>(&response)?.items)))
        }
        Command::Delete { name, yes } => {
            prompt::confirm(&format!("Delete image {name}?"), yes)?;
            let call = Call::delete(&["images"]).query("name", Some(&name));
            let deleted = api.send(&call).await;
            let response =
                deleted.map_err(|e| e.or_hint(r#"run "paddock image list" to see all"#))?;
            printer.response_or_note(&response, &format!("image {name} deleted"))
        }
    }
}

async fn load(
    api: &Api,
    printer: &mut Printer,
    file: &Path,
    name: Option<String>,
) -> Result<(), Error> {
    let (body, size) = open(file).await?;
    // Before the upload, which the server would refuse.
    require_store(api).await?;
    let is_named = name.is_some();
    let call = Call::post(&["images"], None).query("name", name);
    let response = api.upload(&call, MEDIA_TYPE, body, size).await;
    let response = response.map_err(|error| match error.status() {
        Some(400) if !is_named => error.or_hint(
            r#"create the archive with "docker save -o FILE NAME:TAG", or name its image with --name"#,
        ),
        _ => error,
    })?;
    printer.response(&response, || Ok(view(&api.read::<Images>(&response)?.items)))
}

/// Fails if the server cannot run images without a registry: it has not even the built-in one.
pub(crate) async fn require_store(api: &Api) -> Result<(), Error> {
    let images: Images = api.read(&api.send(&Call::get(&["images"])).await?)?;
    if images.items.iter().any(|image| image.is_builtin) {
        return Ok(());
    }
    let info: Info = api.read(&api.send(&Call::get(&["self", "info"]).without_token()).await?)?;
    Err(Error::failed_with_hint(
        format!("the server has no image store: its runtime is {}", info.runtime),
        "start the server with --runtime embedded or --runtime docker, or use a registry",
    ))
}

/// The archive as a request body, and its size if it is a file.
async fn open(file: &Path) -> Result<(reqwest::Body, Option<u64>), Error> {
    let failed = |error| Error::failed(format!("cannot read {}: {error}", file.display()));
    let opened = if file == Path::new("-") {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        File::from_std(stdin.into())
    } else {
        File::open(file).await.map_err(failed)?
    };
    let metadata = opened.metadata().await.map_err(failed)?;
    if metadata.is_dir() {
        return Err(Error::failed(format!("{} is a directory, not an archive", file.display())));
    }
    let size = metadata.is_file().then_some(metadata.len());
    Ok((body(opened), size))
}

fn body(file: File) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::try_unfold(file, async |mut file| {
        let mut chunk = vec![0; CHUNK];
        let size = file.read(&mut chunk).await?;
        chunk.truncate(size);
        Ok::<_, io::Error>((size > 0).then_some((chunk, file)))
    }))
}

fn view(images: &[Image]) -> String {
    table::render(
        images,
        &[
            ("NAME", |image| image.name.clone()),
            ("SIZE", |image| format::size_bytes(image.size_bytes)),
            ("DIGEST", |image| image.digest.clone()),
            ("BUILT IN", |image| format::yes_or_no(image.is_builtin)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_one_row_per_image() {
        let image = |name: &str, is_builtin| Image {
            name: name.into(),
            digest: "sha256:0a".into(),
            size_bytes: 3 << 19,
            is_builtin,
        };
        let want = "\
NAME             SIZE   DIGEST     BUILT IN
localhost/a:1    1.5Mi  sha256:0a  yes
localhost/web:3  1.5Mi  sha256:0a  no
";
        assert_eq!(view(&[image("localhost/a:1", true), image("localhost/web:3", false)]), want);
    }
}
