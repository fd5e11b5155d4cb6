//! `paddock admin rekey`: rotates the key that encrypts stored secrets.

use std::time::Duration;

use serde_json::json;
use wire::encryption::{EncryptionKeys, Rekey};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::table::Table;
use crate::client::wait::Wait;

/// Pause between two polls of `--wait`.
const POLL: Duration = Duration::from_secs(1);

/// `paddock admin rekey`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only add a key, to be copied to the other servers on this database before it is used
    #[arg(long, conflicts_with = "wait")]
    prepare: bool,
    #[command(flatten)]
    wait: Wait,
}

/// Hint if other servers may lack the new key.
const PREPARE_HINT: &str = r#"run "paddock admin rekey --prepare" first"#;

/// Runs the command.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let body = json!(Rekey { prepare: Some(args.prepare) });
    let call = Call::post(&["admin", "encryption", "rekey"], Some(body));
    let mut response = api.send(&call).await.map_err(|error| match error.status() {
        Some(409) if !args.prepare => error.or_hint(PREPARE_HINT),
        _ => error,
    })?;
    let mut keys: EncryptionKeys = api.read(&response)?;
    let mut seconds = args.wait.limit().map_or(0, |limit| limit.as_secs());
    while !keys.previous.is_empty() && seconds > 0 {
        tokio::time::sleep(POLL).await;
        seconds -= 1;
        response = api.send(&Call::get(&["admin", "encryption"])).await?;
        keys = api.read(&response)?;
    }
    if args.wait.limit().is_some() && !keys.previous.is_empty() {
        let older = keys.previous.join(", ");
        return Err(Error::failed_with_hint(
            format!("some secrets are still encrypted with {older}"),
            "see the server's log for secrets that cannot be decrypted",
        ));
    }
    printer.response(&response, || Ok(table(&keys)))
}

fn table(keys: &EncryptionKeys) -> String {
    let rows = std::iter::once((&keys.current, "current"))
        .chain(keys.previous.iter().map(|id| (id, "previous")))
        .chain(keys.prepared.iter().map(|id| (id, "prepared")));
    let row = |table: Table, (id, state): (&String, &str)| table.row([id.clone(), state.into()]);
    rows.fold(Table::new(&["KEY", "STATE"]), row).render()
}
